"""The local classifier on our labelled turns."""

from __future__ import annotations

from pathlib import Path

import pytest

EXPERIMENT = Path(__file__).parents[2] / "experiments" / "agent"


@pytest.mark.parametrize("half", ["dev", "held-out", "second-dev", "paraphrases"])
def test_turns_are_told_apart(monkeypatch, half):
    monkeypatch.syspath_prepend(str(EXPERIMENT))
    import classify_turns

    scored = classify_turns.score(half)
    assert scored["turns"] >= 100
    assert scored["macro_f1"] >= 0.9
    assert scored["needs_data_accuracy"] >= 0.95


def test_real_halves_share_nothing(monkeypatch):
    monkeypatch.syspath_prepend(str(EXPERIMENT))
    from halves import half

    words = [f"turn {i}" for i in range(101)]
    assert not set(half(words, str, "dev")) & set(half(words, str, "held-out"))
    assert len(half(words, str, "dev")) == 51
