"""Tables known by the company they keep: how well the rest of a table's database fits the question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from almanaq.corpus.table import TableId
from almanaq.retrieval.ranking import Scores

BEST = 3
"""Tables of a database that count: few questions join more, and a large database must not win by its size."""


@dataclass(frozen=True, slots=True)
class Databases:
    """Which tables share a database: those of database i are `order[starts[i]:starts[i + 1]]`.

    Attributes:
        of: the number of each table's database.
    """

    of: NDArray[np.intp]
    order: NDArray[np.intp]
    starts: NDArray[np.intp]

    def pooled(self, scores: Scores) -> Scores:
        """Return each table the sum of the BEST scores above 0 in its database, shape as `scores`.

        In a corpus of one database all tables get the same, which changes no ranking: zeros are given.
        """
        if len(self.starts) == 2:
            return np.zeros_like(scores)
        remaining = np.maximum(scores[:, self.order], 0)
        sums = np.zeros((len(scores), len(self.starts) - 1), dtype=np.float32)
        for _ in range(BEST):
            best = np.maximum.reduceat(remaining, self.starts[:-1], axis=1)
            sums += best
            # What was counted counts no more; equal scores are few and small enough to fall together.
            remaining[remaining == np.repeat(best, np.diff(self.starts), axis=1)] = 0
        return sums[:, self.of]


def group_by_database(ids: Sequence[TableId]) -> Databases:
    """Return the databases of a corpus' tables."""
    numbers: dict[str, int] = {}
    of = np.array([numbers.setdefault(table.database, len(numbers)) for table in ids], dtype=np.intp)
    starts = np.concatenate([[0], np.cumsum(np.bincount(of, minlength=len(numbers)))])
    return Databases(of, np.argsort(of, kind="stable"), starts.astype(np.intp))
