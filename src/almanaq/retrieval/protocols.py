"""The seam to retrievers, and from scores to rankings: exact top k with ties in corpus order, databases pooled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from almanaq.corpus.table import Corpus, TableId
from almanaq.errors import UsageError

Scores = NDArray[np.float32]

_POOLED_TABLES = 3  # of a database: few questions join more, and size alone must not favour a database
BATCH = 256  # questions scored at once: 256 MB of scores over a corpus of 250,000 tables


@dataclass(frozen=True, slots=True)
class Hit:
    """One table of a ranking; a higher score is a better match."""

    id: TableId
    score: float


Ranking = tuple[Hit, ...]
"""Hits, best first, without duplicates; scores never increase."""


class TableIndex(Protocol):
    """A searchable corpus. The same search always returns the same rankings."""

    def search(self, questions: Sequence[str], k: int) -> list[Ranking]:
        """Return one ranking of at most k tables for each question, in their order."""


class Retriever(Protocol):
    """Builds indexes over declared fields of a corpus."""

    @property
    def name(self) -> str: ...

    def index(self, corpus: Corpus, fields: Sequence[str]) -> TableIndex: ...


@dataclass(frozen=True, slots=True)
class JudgedRanking:
    """A ranking, and whether it holds an answer."""

    ranking: Ranking
    chance: float | None  # that one of the best tables answers; None where the retriever cannot tell
    fits: bool  # whether the chance is high enough; without one, any table found fits
    fault: str = ""  # why the ranking is not in the requested order


def find_tables(index: TableIndex, questions: Sequence[str], k: int) -> list[JudgedRanking]:
    """Search any index, by its `find` where it has one; for one without chances, any table found counts as fitting."""
    find: Callable[[Sequence[str], int], list[JudgedRanking]] | None = getattr(index, "find", None)
    if find is not None:
        return find(questions, k)
    return [JudgedRanking(ranking, None, bool(ranking)) for ranking in index.search(questions, k)]


class Scorer(Protocol):
    """An index that scores every table of the corpus; `ids` names the columns of scores, in corpus order."""

    @property
    def ids(self) -> Sequence[TableId]: ...

    def scores(self, questions: Sequence[str]) -> Scores:
        """Return the scores, shape (questions, tables); -inf for a table that does not match at all."""


def search_by_scores(index: Scorer, questions: Sequence[str], k: int) -> list[Ranking]:
    check_k(k)
    rankings: list[Ranking] = []
    for start in range(0, len(questions), BATCH):
        for scores in index.scores(questions[start : start + BATCH]):
            rankings.append(tuple(Hit(index.ids[place], float(scores[place])) for place in top_k(scores, k)))
    return rankings


def check_k(k: int) -> None:
    if k < 1:
        raise UsageError(f"k must be 1 or more, not {k}")


def top_k(scores: Scores, k: int) -> NDArray[np.intp]:
    """Return the positions of the k highest scores, highest first, ties by position, without -inf."""
    size = len(scores)
    if k < size:
        # All scores above the k-th are in; of those equal to it, the first in corpus order.
        bound = np.partition(scores, size - k)[size - k]
        above = np.flatnonzero(scores > bound)
        chosen = np.concatenate([above, np.flatnonzero(scores == bound)[: k - len(above)]])
    else:
        chosen = np.arange(size)
    chosen = chosen[scores[chosen] > -np.inf]
    ranked: NDArray[np.intp] = chosen[np.lexsort((chosen, -scores[chosen]))]
    return ranked


def standardize(scores: Scores) -> Scores:
    """Return each row in standard deviations above its mean; zeros for a constant row."""
    centred = scores - scores.mean(axis=1, keepdims=True)
    spread = scores.std(axis=1, keepdims=True)
    spread[spread < 1e-6] = 1.0
    standard: Scores = centred / spread
    return standard


@dataclass(frozen=True, slots=True)
class Databases:
    """Which tables share a database: those of database i are `order[starts[i]:starts[i + 1]]`."""

    of: NDArray[np.intp]  # the number of each table's database
    order: NDArray[np.intp]
    starts: NDArray[np.intp]

    def pool(self, scores: Scores) -> Scores:
        """Return for each table the sum of the best positive scores in its database; 0 where there is but one."""
        if len(self.starts) == 2:
            return np.zeros_like(scores)
        remaining = np.maximum(scores[:, self.order], 0)
        sums = np.zeros((len(scores), len(self.starts) - 1), dtype=np.float32)
        for _ in range(_POOLED_TABLES):
            best = np.maximum.reduceat(remaining, self.starts[:-1], axis=1)
            sums += best
            # Remove what was counted; equal scores are removed together, as they are rare and small.
            remaining[remaining == np.repeat(best, np.diff(self.starts), axis=1)] = 0
        return sums[:, self.of]


def group_by_database(ids: Sequence[TableId]) -> Databases:
    numbers: dict[str, int] = {}
    of = np.array([numbers.setdefault(table.database, len(numbers)) for table in ids], dtype=np.intp)
    starts = np.concatenate([[0], np.cumsum(np.bincount(of, minlength=len(numbers)))])
    return Databases(of, np.argsort(of, kind="stable"), starts.astype(np.intp))
