"""The k best tables by summed term scores, without reading the long lists of common words where that can be avoided.

Turtle and Flood: "Query evaluation: strategies and optimizations", 1995 (MaxScore). Terms are added rarest first. As
soon as all that is left could not lift a table over the k-th best of those seen, the tables that were not seen are out,
and the common terms are only looked up for the few that are left. The result is that of adding everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from almanaq.retrieval.ranking import Scores, top_k

_LONG = 5_000
"""Postings from which on it pays to ask first whether they are needed."""

_LOOKED_UP = 16
"""Postings that can be added in the time of looking one table up."""


@dataclass(frozen=True, slots=True)
class Part:
    """A term's postings in one segment, whose first table is number `base` of all."""

    base: int
    tables: NDArray[np.int32]
    weights: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Term:
    """A term of a question; no table has a weight of more than 1 for it.

    Attributes:
        worth: what a weight of 1 adds to a score.
    """

    worth: np.float32
    parts: Sequence[Part]

    def __len__(self) -> int:
        return sum(len(part.tables) for part in self.parts)

    def add_all(self, scores: Scores) -> None:
        """Add the term's score to every table that holds it."""
        for part in self.parts:
            scores[part.base : part.base + int(part.tables[-1]) + 1][part.tables] += part.weights * self.worth

    def add_to(self, scores: Scores, places: NDArray[np.intp]) -> None:
        """Add the term's score to those of some tables, given in order."""
        for part in self.parts:
            first, after = np.searchsorted(places, [part.base, part.base + int(part.tables[-1]) + 1])
            wanted = (places[first:after] - part.base).astype(np.int32)
            found = np.searchsorted(part.tables, wanted)
            held = part.tables[found] == wanted
            scores[places[first:after][held]] += part.weights[found[held]] * self.worth


def best_tables(
    terms: Sequence[Term], size: int, k: int, dead: NDArray[np.int64]
) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """Give the places of the k best of `size` tables that hold a term, best first, and their scores.

    Equal scores are in the order of places; `dead` are places that count no more.
    """
    rarest_first = sorted(terms, key=lambda term: -term.worth)
    left = np.cumsum([term.worth for term in reversed(rarest_first)])[::-1]
    scores = np.zeros(size, dtype=np.float32)
    scores[dead] = -np.inf
    places: NDArray[np.intp] | None = None
    for number, term in enumerate(rarest_first):
        if places is None and number and len(term) > _LONG:
            lacking = _kth_best(scores, k) - left[number] * _ROUNDING
            if lacking > 0:
                places = np.flatnonzero(scores >= lacking)
        if places is None or len(places) * _LOOKED_UP > len(term):
            term.add_all(scores)
        else:
            term.add_to(scores, places)
    if places is None:
        places = np.flatnonzero(scores > 0)
    ranked = places[top_k(scores[places], k)]
    return ranked, scores[ranked]


_ROUNDING = 1.000_01
"""Sums of single precision may differ in their last digits from the bound."""


def _kth_best(scores: Scores, k: int) -> float:
    """Give the k-th highest score; 0 where fewer tables have one."""
    found = scores[scores > 0]
    return float(np.partition(found, len(found) - k)[len(found) - k]) if len(found) >= k else 0.0
