"""No private value leaves in a talk, whatever its queries, its marks and its turns; `make nightly` looks at 20,000."""

from __future__ import annotations

import pytest
from tests.security.canaries import look


def test_no_private_value_leaves_in_any_turn() -> None:
    _, leaks = look(12)
    assert not leaks, leaks[0]


def test_the_search_finds_turns_that_were_made_before_a_column_was_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that cannot find a leak is worth nothing: here the judgement of old turns is left out."""
    monkeypatch.setattr("almanaq.agent.conversation.judge_turns", lambda turns, _: tuple(turns))
    _, leaks = look(12)
    assert leaks
