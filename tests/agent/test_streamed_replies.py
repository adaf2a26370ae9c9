"""The agent's reply is shown while a server writes it, and is the same as when it is not."""

from __future__ import annotations

import pytest

from almanaq.agent.responder import Found, PromptedResponder
from almanaq.models.openai import OpenAIModel
from almanaq_bench.testing import Faults, StandInServer

FOUND = Found("Which rivers are long?", "long rivers", ("river", "km"), (("Rhine", 1233),), relaxed="in Asia")
SAID = "The Rhine is 1,233 km long."


@pytest.mark.parametrize("pause", [0.0, None])
def test_the_words_come_one_after_another_behind_what_was_left_out(pause: float | None) -> None:
    with StandInServer(lambda _: SAID, pause=pause) as server:
        first, *pieces = PromptedResponder(OpenAIModel("m", server.url)).found(FOUND)
    assert "in Asia" in first
    assert "".join(pieces) == SAID
    assert len(pieces) == (1 if pause is None else 6)


def test_a_reply_that_breaks_off_is_followed_by_the_rows_as_they_are() -> None:
    with StandInServer(lambda _: SAID, faults=Faults(["cut"] * 9)) as server:
        text = "".join(PromptedResponder(OpenAIModel("m", server.url)).found(FOUND))
    assert "The Rhine is\n\n" in text
    assert "could not word this" in text
    assert text.count("in Asia") == 2
    assert "Rhine (km: 1233)" in text
