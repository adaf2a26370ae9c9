"""Lexical and dense evidence in one score: the sum of both, each in standard deviations above its mean.

A table also gains by its database's other tables: questions of a database speak of several of its tables at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from almanaq.corpus.table import Corpus, TableId
from almanaq.retrieval.bm25 import BM25, BM25Index
from almanaq.retrieval.dense import Dense, DenseIndex
from almanaq.retrieval.protocols import Ranking
from almanaq.retrieval.ranking import Scores, search
from almanaq.retrieval.sibling_tables import Databases, group_by_database


@dataclass(frozen=True)
class Hybrid:
    """Makes indexes that fuse BM25 and dense scores.

    Args:
        weight: the worth of the dense score beside BM25's 1.
        company: the worth of the best scores of a table's database beside its own.
    """

    lexical: BM25
    dense: Dense
    weight: float = 1.0
    company: float = 0.5
    name: str = "hybrid"

    def index(self, corpus: Corpus, fields: Sequence[str]) -> HybridIndex:
        """Index a corpus both ways. Raises as BM25 and Dense do."""
        lexical, dense = self.lexical.index(corpus, fields), self.dense.index(corpus, fields)
        return HybridIndex(lexical, dense, group_by_database(lexical.ids), self.weight, self.company)


@dataclass(frozen=True)
class HybridIndex:
    """The two indexes of one corpus, and which of its tables share a database."""

    lexical: BM25Index
    dense: DenseIndex
    databases: Databases
    weight: float
    company: float

    @property
    def ids(self) -> Sequence[TableId]:
        return self.lexical.ids

    def search(self, questions: Sequence[str], k: int) -> list[Ranking]:
        """Return for each question the k tables of the highest fused score."""
        return search(self, questions, k)

    def scores(self, questions: Sequence[str]) -> Scores:
        """Return the fused scores, shape (questions, tables)."""
        own = standardized(self.lexical.sums(questions)) + self.weight * standardized(self.dense.scores(questions))
        return own + self.company * self.databases.pooled(own) if self.company else own


def standardized(scores: Scores) -> Scores:
    """Return each row in standard deviations above its mean; zeros for a row that tells no table from another."""
    centred = scores - scores.mean(axis=1, keepdims=True)
    spread = scores.std(axis=1, keepdims=True)
    spread[spread < 1e-6] = 1.0
    standard: Scores = centred / spread
    return standard
