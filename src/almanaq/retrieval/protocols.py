"""The seam to retrievers, and the values that cross it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from almanaq.corpus.table import Corpus, TableId


@dataclass(frozen=True, slots=True)
class Hit:
    """One table of a ranking; a higher score is a better match."""

    id: TableId
    score: float


Ranking = tuple[Hit, ...]
"""Hits, best first, without duplicates; scores never increase."""


class TableIndex(Protocol):
    """A corpus made searchable. Searching with the same arguments gives the same rankings."""

    def search(self, questions: Sequence[str], k: int) -> list[Ranking]:
        """Give one ranking of at most k tables for each question."""


class Retriever(Protocol):
    """Makes indexes over declared fields of a corpus."""

    @property
    def name(self) -> str: ...

    def index(self, corpus: Corpus, fields: Sequence[str]) -> TableIndex: ...
