"""How well turns did: turn accuracy and false negatives as the SUQL paper has them, by what the turns need."""

from __future__ import annotations

from collections.abc import Sequence

from almanaq_bench.restaurants.play import TurnRecord
from almanaq_bench.restaurants.wanted import COMBINED, STRUCTURED
from almanaq_bench.stages import count_stages

NOTE = (
    "turn_accuracy: right restaurants / restaurants given, at most 3 of a turn; "
    "false_negatives: turns that gave none though some are right / turns that search"
)


def score_turns(turns: Sequence[TurnRecord]) -> dict[str, float]:
    """Return the measures; one that has nothing to be measured on is left out."""
    found = _searches(turns, "")
    for needs in (STRUCTURED, COMBINED):
        found |= _searches([turn for turn in turns if turn.needs == needs], f"_{needs}")
    for name, judged in (("count_accuracy", "count"), ("declined", "no data")):
        chosen = [turn for turn in turns if turn.judged == judged]
        if chosen:
            found[name] = sum(turn.good for turn in chosen) / len(chosen)
    found["turns"] = len(turns)
    for judged in ("skipped", "unjudged", "broken"):
        found[f"{judged}_turns"] = sum(turn.judged == judged for turn in turns)
    found["failed_turns"] = sum(bool(turn.fault) and turn.judged != "broken" for turn in turns)
    return {**found, **count_stages(turn.stage for turn in turns)}


def hits(turns: Sequence[TurnRecord]) -> tuple[int, int]:
    """Return how many entities were right, and how many were given."""
    searches = [turn for turn in turns if turn.judged == "entities"]
    return sum(i in turn.right for turn in searches for i in turn.given), sum(len(turn.given) for turn in searches)


def _searches(turns: Sequence[TurnRecord], ending: str) -> dict[str, float]:
    searches = [turn for turn in turns if turn.judged == "entities"]
    right, given = hits(turns)
    found: dict[str, float] = {f"turn_accuracy{ending}": right / given} if given else {}
    if searches:
        empty = sum(not turn.given and bool(turn.right) for turn in searches)
        found[f"false_negatives{ending}"] = empty / len(searches)
    return found | {f"entities{ending}": given, f"search_turns{ending}": len(searches)}
