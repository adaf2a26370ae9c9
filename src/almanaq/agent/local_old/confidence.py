"""How surely a query that uses every word is what was asked: by what kinds of things the words were taken for.

The weights are fitted on questions of other databases, by experiments/local/fit_confidence.py; what it measured stands
beside them, and in docs/local.md.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

CONFIDENCE = 0.7
"""The probability of being right below which a question is declined that was understood whole."""


@dataclass(frozen=True, slots=True)
class Judged:
    """The best query for a question.

    Attributes:
        suql: the query that was understood, else the nearest that could be written; None where none is near.
        probability: that it gives what was asked; 0 where it was not understood.
        unknown: the words that it leaves out; `missing` what else was not understood.
        between: a value and the columns between which it leaves open what is meant.
        named: the relations that the question names, or that hold what it names.
        readings: sentences that say for what unusual words were taken.
    """

    suql: str | None
    probability: float
    unknown: tuple[str, ...] = ()
    missing: str = ""
    between: tuple[str, tuple[str, ...]] | None = None
    named: tuple[str, ...] = ()
    readings: tuple[str, ...] = ()


def probability(told: Mapping[str, float]) -> float:
    """Return the probability that a query with these features is what was asked."""
    weights = _weights()
    score = weights["bias"] + sum(weights.get(name, 0.0) * value for name, value in told.items())
    return 1 / (1 + math.exp(-score))


@cache
def _weights() -> dict[str, float]:
    text = files("almanaq.agent.local_old").joinpath("confidence.json").read_text("utf-8")
    weights: dict[str, float] = json.loads(text)["weights"]
    return weights


def not_sure(judged: Judged, held: str) -> str:
    """Say what was not understood, and give the nearest query to edit; where none is near, what there is."""
    words = ", ".join(f"“{word}”" for word in dict.fromkeys(judged.unknown))
    why = f"I do not know what to make of {words}" if words else "I am not sure that I understood the question"
    if judged.probability:
        rate = f"{100 * judged.probability:.0f} of 100"
        why = f"I can use every word, but a reading that rests on such words is right in about {rate} cases"
    if judged.missing:
        why = f"One thing is not clear to me: {judged.missing}"
    if judged.suql is None:
        return f"{why}, so I ran nothing. Ask again in the words of the tables. {held}"
    return (
        f"{why}, so I ran nothing. The nearest query that I could write is below; edit it, or ask again in the words "
        f"of the tables.\n\n    {judged.suql}"
    )
