"""The seam to retrievers, and the values that cross it: hits, rankings, and whether a ranking holds an answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from almanaq.corpus.table import Corpus, TableId


@dataclass(frozen=True, slots=True)
class Hit:
    """One table of a ranking; a higher score is a better match.

    >>> hit = Hit(TableId("zoo", "animals"), 0.9)
    >>> str(hit.id), hit.id.table
    ('zoo/animals', 'animals')
    """

    id: TableId
    score: float


Ranking = tuple[Hit, ...]
"""Hits, best first, without duplicates; scores never increase."""


class TableIndex(Protocol):
    """A searchable corpus. The same search always returns the same rankings."""

    def search(self, questions: Sequence[str], k: int) -> list[Ranking]:
        """Return one ranking of at most k tables for each question, in their order."""


class Retriever(Protocol):
    """Builds indexes over declared fields of a corpus.

    >>> from almanaq.corpus.table import Table
    >>> from almanaq.retrieval.bm25 import BM25
    >>> corpus = [Table(TableId("zoo", name), ("name",), ((name,),)) for name in ("lions", "keepers")]
    >>> found = BM25().index(corpus, ["header", "cells"]).search(["Where is the lion?", "Any keepers?"], k=1)
    >>> [[hit.id.table for hit in ranking] for ranking in found]
    [['lions'], ['keepers']]
    """

    @property
    def name(self) -> str: ...

    def index(self, corpus: Corpus, fields: Sequence[str]) -> TableIndex: ...


@dataclass(frozen=True, slots=True)
class JudgedRanking:
    """A ranking, and whether it holds an answer.

    Attributes:
        chance: the probability that one of the best tables answers; None where the retriever cannot tell.
        fits: whether the chance is high enough. Without a chance, any table found fits.
        fault: why the ranking is not in the requested order; "" where it is.
    """

    ranking: Ranking
    chance: float | None
    fits: bool
    fault: str = ""


@runtime_checkable
class DoubtingIndex(Protocol):
    """An index that estimates whether its best tables answer the question."""

    def find(self, questions: Sequence[str], k: int) -> list[JudgedRanking]:
        """Return rankings as `search` does, each with the chance that it holds an answer."""


def find_tables(index: TableIndex, questions: Sequence[str], k: int) -> list[JudgedRanking]:
    """Search any index; for one without chances, any table found counts as fitting."""
    if isinstance(index, DoubtingIndex):
        return index.find(questions, k)
    return [JudgedRanking(ranking, None, bool(ranking)) for ranking in index.search(questions, k)]
