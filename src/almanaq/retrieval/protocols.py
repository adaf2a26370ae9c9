"""The seam to retrievers, and the values that cross it: hits, rankings, and whether a ranking holds an answer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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


DOUBT_FEATURES = (
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


def find_tables(index: TableIndex, questions: Sequence[str], k: int) -> list[Found]:
    """Search any index; one that cannot doubt finds a fitting table whenever it finds any."""
    if isinstance(index, DoubtingIndex):
        return index.find(questions, k)
    return [Found(ranking, None, bool(ranking)) for ranking in index.search(questions, k)]
