"""The vectors of an index on disk: some of them, the cosines of all, the nearest by codes, and how many codes find."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from almanaq.models.embedders.vector_store import Vectors
from almanaq.retrieval.ranking import Scores, top_k
from almanaq.retrieval.stored import StoredIndex

_CHUNK = 65_536
_ASKED, _NEAREST = 100, 10
"""Tables whose nearest are looked for when codes are measured, and how many of them."""
_RESCORED = 30
"""Tables that are compared again by their vectors for each that is wanted."""


@dataclass(frozen=True)
class StoredVectors:
    """The vectors of an opened index that has them.

    Args:
        exact: tables up to which all vectors are held in memory once they are read.
    """

    index: StoredIndex
    exact: int = 0

    @property
    def coded(self) -> bool:
        """Tell whether there are codes, which all are compared in."""
        return self.index.recipe.vectors.code_type is not None

    def at(self, places: NDArray[np.intp]) -> Vectors:
        """Return the vectors at some places, given in order, in single precision."""
        cuts = np.searchsorted(places, self.index.bases()[1:])
        parts = zip(np.split(places, cuts), self.index.bases(), self.index.segments, strict=True)
        found = [segment.vectors.at(part - base) for part, base, segment in parts if segment.vectors is not None]
        return np.concatenate(found).astype(np.float32)

    def cosines(self, vector: Vectors) -> Scores:
        """Return the cosine of every table; above `exact` piece by piece, so that memory stays small.

        `vector` may be several, one in a column.
        """
        if self.index.size <= self.exact:
            cosines: Scores = self._matrix @ vector
            return cosines
        every = np.arange(self.index.size)
        starts = range(0, self.index.size, _CHUNK)
        return np.concatenate([self.at(every[start : start + _CHUNK]) @ vector for start in starts])

    def nearest(self, vector: Vectors, count: int) -> NDArray[np.intp]:
        """Return the places, in order, of so many tables that are nearest by codes and then by vectors."""
        precision, found = self.index.recipe.vectors, []
        for base, segment in zip(self.index.bases(), self.index.segments, strict=True):
            if segment.codes is not None:
                codes = segment.codes.all()
                found.append(base + precision.nearest(codes, vector, min(count * precision.spare, len(codes))))
        places = np.setdiff1d(np.concatenate(found), self.index.gone())
        return np.sort(places[top_k(self.at(places) @ vector, count)])

    @cached_property
    def _matrix(self) -> Vectors:
        return self.at(np.arange(self.index.size))


def recall_of_codes(index: StoredIndex, asked: int = _ASKED, nearest: int = _NEAREST) -> float:
    """Return what share of the tables nearest to a table, by cosine, the codes of an index find.

    The tables that are asked about are spread over the index; a table is not its own neighbour.
    """
    stored, live = StoredVectors(index), np.setdiff1d(np.arange(index.size), index.gone())
    questions = live[:: max(1, len(live) // asked)][:asked]
    vectors = stored.at(questions)
    cosines = stored.cosines(vectors.T)
    cosines[index.gone()] = -np.inf
    found = wanted = 0
    for number, place in enumerate(questions):
        own = cosines[:, number].copy()
        own[place] = -np.inf
        right = top_k(own, min(nearest, len(live) - 1))
        near = stored.nearest(vectors[number], nearest * _RESCORED)
        found += int((own[near][:, None] == own[right][None]).any(axis=0).sum())
        wanted += len(right)
    return found / max(1, wanted)
