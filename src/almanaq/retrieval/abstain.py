"""Whether any table fits a question: the chance that those found hold the answer, and when to say that none does.

The chance is a logistic function of what the best table and the question have in common, how far it stands above the
next, and how much of the question the corpus knows at all. It is learned by taking the right tables away
(`benchmarks/retrieval/doubt.py`); `weights.json` holds it beside the weights it belongs to.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from almanaq.retrieval.protocols import Ranking, TableIndex

MORE_FIGURES = (
    "unknown",  # share of the question's words that stand in no table
    "cosine",  # the best cosine between the question and the best table; 0 without vectors
    "margin",  # how far its score is above the next one's
    "share",  # its share of the candidates' odds
    "tables",  # logarithm of the corpus' size over 10
)
"""The figures that the chance is made of, beside those of `features`."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """A logistic function of figures, by name; below `threshold` no table is said to fit."""

    worth: Mapping[str, float]
    bias: float
    threshold: float

    def chance(self, figures: Mapping[str, float]) -> float:
        """Return the chance, between 0 and 1, that one of the best tables answers."""
        total = self.bias + sum(worth * figures.get(name, 0.0) for name, worth in self.worth.items())
        return 1 / (1 + math.exp(-max(-50.0, min(50.0, total))))

    def passes(self, chance: float) -> bool:
        """Return whether a chance is high enough."""
        return chance >= self.threshold


@dataclass(frozen=True, slots=True)
class Found:
    """A ranking, and whether it holds an answer.

    Attributes:
        chance: that one of the best tables answers; None where the retriever cannot tell.
        fits: whether it is high enough. Without a chance, any table found fits.
        fault: why the ranking is not in the order that was asked for; "" where it is.
    """

    ranking: Ranking
    chance: float | None
    fits: bool
    fault: str = ""


@runtime_checkable
class DoubtingIndex(Protocol):
    """An index that can tell how sure it is."""

    def find(self, questions: Sequence[str], k: int) -> list[Found]:
        """Return rankings as `search` does, each with the chance that it holds an answer."""


def find(index: TableIndex, questions: Sequence[str], k: int) -> list[Found]:
    """Search any index; one that cannot doubt finds a fitting table whenever it finds any."""
    if isinstance(index, DoubtingIndex):
        return index.find(questions, k)
    return [Found(ranking, None, bool(ranking)) for ranking in index.search(questions, k)]
