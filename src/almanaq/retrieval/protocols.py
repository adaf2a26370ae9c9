"""The seam to retrievers, and the values that cross it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

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
    """A corpus made searchable. Searching with the same arguments gives the same rankings."""

    def search(self, questions: Sequence[str], k: int) -> list[Ranking]:
        """Return one ranking of at most k tables for each question, in their order."""


class Retriever(Protocol):
    """Makes indexes over declared fields of a corpus.

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
