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

_LOOKED_UP = 16
"""Postings that can be added in the time of looking one table up, or of sorting it among others."""

_FEW = 0.03
"""Share of the tables up to which those that were seen are sorted; where they are more, all scores are scanned."""


@dataclass(frozen=True, slots=True)
class Part:
    """A term's postings in one segment, whose first table is number `base` of all.

    Attributes:
        total, squares: the sums of the weights and of their squares.
    """

    base: int
    tables: NDArray[np.int32]
    weights: NDArray[np.float32]
    total: float = 0.0
    squares: float = 0.0


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
        """Add the term's score to the scores of some tables, whose places are given in order."""
        for part in self.parts:
            first, after = np.searchsorted(places, [part.base, part.base + int(part.tables[-1]) + 1])
            wanted = (places[first:after] - part.base).astype(np.int32)
            found = np.searchsorted(part.tables, wanted)
            held = part.tables[found] == wanted
            scores[first:after][held] += part.weights[found[held]] * self.worth


def score_tables(terms: Sequence[Term], places: NDArray[np.intp]) -> Scores:
    """Return the scores of some tables, whose places are given in order."""
    scores = np.zeros(len(places), dtype=np.float32)
    for term in sorted(terms, key=lambda term: -term.worth):
        term.add_to(scores, places)
    return scores


def best_tables(terms: Sequence[Term], size: int, k: int, dead: NDArray[np.int64]) -> tuple[NDArray[np.intp], Scores]:
    """Return the places of the k best of `size` tables that hold a term, best first, and their scores.

    Equal scores are in the order of places; `dead` are places that count no more.
    """
    rarest_first = sorted(terms, key=lambda term: -term.worth)
    left = np.cumsum([term.worth for term in reversed(rarest_first)])[::-1]
    scores = np.zeros(size, dtype=np.float32)
    scores[dead] = -np.inf
    postings = sum(map(len, terms))
    added = 0
    for number, term in enumerate(rarest_first):
        if added and postings - added > min(added * _LOOKED_UP, size):
            seen = _seen(scores, rarest_first[:number], added)
            lacking = _kth_best(scores[seen], k) - left[number] * _ROUNDING
            if lacking > 0:
                places = seen[scores[seen] >= lacking]
                if len(places) * _LOOKED_UP < postings - added:
                    return _ranked(_finished(scores, places, rarest_first[number:]), places, k)
        term.add_all(scores)
        added += len(term)
    places = _seen(scores, rarest_first, added)
    return _ranked(scores[places], places, k)


def _seen(scores: Scores, terms: Sequence[Term], postings: int) -> NDArray[np.intp]:
    """Return the places of the tables that hold one of the terms and count, in order."""
    if postings > _FEW * len(scores) or not postings:
        return np.flatnonzero(scores > 0)
    listed = np.sort(np.concatenate([part.tables + np.int32(part.base) for term in terms for part in term.parts]))
    new = np.concatenate([[True], listed[1:] != listed[:-1]])
    places: NDArray[np.intp] = listed[new & (scores[listed] > 0)].astype(np.intp)
    return places


def _finished(scores: Scores, places: NDArray[np.intp], terms: Sequence[Term]) -> Scores:
    """Return the scores of the places that are left, the last terms looked up."""
    left = scores[places]
    for term in terms:
        term.add_to(left, places)
    return left


def _ranked(scores: Scores, places: NDArray[np.intp], k: int) -> tuple[NDArray[np.intp], Scores]:
    best = top_k(scores, k)
    return places[best], scores[best]


_ROUNDING = 1.000_01
"""Sums of single precision may differ in their last digits from the bound."""


def _kth_best(scores: Scores, k: int) -> float:
    """Return the k-th highest score; 0 where there are fewer."""
    return float(np.partition(scores, len(scores) - k)[len(scores) - k]) if len(scores) >= k else 0.0
