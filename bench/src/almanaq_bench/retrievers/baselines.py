"""Bounds of every comparison: nothing, chance, and the gold itself.

The seam hands them more than they look at, hence the unused arguments.
"""

# ruff: noqa: ARG002

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from almanaq.corpus.table import Corpus, TableId
from almanaq.retrieval.protocols import Hit, Ranking


@dataclass(frozen=True)
class NoRetriever:
    """Finds nothing: a generator after it answers without tables."""

    name: str = "none"

    def index(self, corpus: Corpus, fields: Sequence[str]) -> _EmptyIndex:
        """Return an index without tables."""
        return _EmptyIndex()


@dataclass(frozen=True)
class RandomRetriever:
    """Ranks tables by chance; the same seed and question give the same ranking."""

    seed: int = 0
    name: str = "random"

    def index(self, corpus: Corpus, fields: Sequence[str]) -> _Chance:
        """Read the ids of a corpus."""
        return _Chance(tuple(table.id for table in corpus), self.seed)


@dataclass(frozen=True)
class Oracle:
    """Ranks the gold tables of each question, and nothing else.

    Args:
        gold: gold tables by the question's text; questions of equal text share theirs.
    """

    gold: Mapping[str, Sequence[TableId]]
    name: str = "oracle"

    def index(self, corpus: Corpus, fields: Sequence[str]) -> _Gold:
        """Return an index that knows the answers."""
        return _Gold(self.gold)


class _EmptyIndex:
    def search(self, questions: Sequence[str], k: int) -> list[Ranking]:
        return [() for _ in questions]


@dataclass(frozen=True)
class _Chance:
    ids: Sequence[TableId]
    seed: int

    def search(self, questions: Sequence[str], k: int) -> list[Ranking]:
        return [self._ranking(question, k) for question in questions]

    def _ranking(self, question: str, k: int) -> Ranking:
        # Seeded by the question too, so that a resumed or batched run draws as an uninterrupted one.
        digest = hashlib.sha256(f"{self.seed}\n{question}".encode()).digest()
        drawn = Random(digest).sample(range(len(self.ids)), min(k, len(self.ids)))
        return tuple(Hit(self.ids[number], 1.0 / rank) for rank, number in enumerate(drawn, 1))


@dataclass(frozen=True)
class _Gold:
    gold: Mapping[str, Sequence[TableId]]

    def search(self, questions: Sequence[str], k: int) -> list[Ranking]:
        return [gold_ranking(self.gold.get(question, ()), k) for question in questions]


def gold_ranking(gold: Sequence[TableId], k: int) -> Ranking:
    """Rank gold tables, in their order."""
    return tuple(Hit(table, 1.0 / rank) for rank, table in enumerate(gold[:k], 1))
