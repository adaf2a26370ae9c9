"""Variants of almanaq's retrievers that experiments compare with: more vectors, a graph of vectors, an untuned sum.

Malkov, Yashunin: "Efficient and robust approximate nearest neighbor search using HNSW graphs", 2018.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np

from almanaq.corpus.table import Corpus, Field, Table, TableId, parse_fields, table_text
from almanaq.errors import MissingExtraError
from almanaq.models.embedders.vector_store import Vectors, VectorStore
from almanaq.retrieval.bm25 import BM25, BM25Index
from almanaq.retrieval.dense import MAX_CHARS, PART_CHARS, Dense, DenseIndex, collect_texts, row_texts, title_lines
from almanaq.retrieval.protocols import (
    Databases,
    Hit,
    Ranking,
    Scores,
    check_k,
    group_by_database,
    search_by_scores,
    standardize,
)

NEIGHBOURS, EXPANSION_BUILD, EXPANSION_SEARCH = 16, 200, 50
"""M, ef_construction and ef: as the TARGET benchmark has them."""


@dataclass(frozen=True)
class DenseParts:
    """Makes indexes of a vector for each table and one for each of its rows or columns; a table scores by its best.

    Args:
        store: gives the vectors, each text embedded once ever.
        rows: embed every row with its title and column names.
        columns: embed every column with its title, name and distinct values.
    """

    store: VectorStore
    rows: bool = False
    columns: bool = False
    name: str = "dense-parts"

    def index(self, corpus: Corpus, fields: Sequence[str]) -> DenseIndex:
        """Embed a corpus. Raises as Dense does."""
        chosen = parse_fields(fields)

        def texts_of(table: Table) -> Iterator[str]:
            yield table_text(table, chosen, max_chars=MAX_CHARS)
            if self.rows:
                yield from row_texts(table, chosen)
            if self.columns:
                yield from column_texts(table, chosen)

        ids, texts, starts = collect_texts(corpus, texts_of)
        return DenseIndex(ids, self.store.vectors(texts), starts, self.store)


def column_texts(table: Table, fields: Sequence[Field]) -> list[str]:
    """Return each column as one text: the table's declared titles, then its name and its distinct
    cells, as declared.
    """
    titles = title_lines(table, fields)
    names = table.header if Field.HEADER in fields else ()
    columns: list[tuple[str, ...]] = list(zip(*table.rows, strict=True)) if Field.CELLS in fields else []
    texts = []
    for name, cells in zip_longest(names, columns):
        values = ", ".join(cell for cell in dict.fromkeys(cells or ()) if cell)
        text = ": ".join(part for part in (name, values) if part)
        if text:
            texts.append("\n".join([*titles, text])[:PART_CHARS])
    return texts


@dataclass(frozen=True)
class DenseGraph:
    """Makes graphs of the vectors that `dense` makes, one for each table."""

    dense: Dense
    name: str = "dense-hnsw"

    def index(self, corpus: Corpus, fields: Sequence[str]) -> GraphIndex:
        """Embed a corpus and put it into a graph. Raises as Dense does, and MissingExtraError without usearch."""
        made = self.dense.index(corpus, fields)
        return graph_index(made.ids, made.vectors, made.store)


@dataclass(frozen=True)
class GraphIndex:
    """Tables in a graph by their vectors, and what embeds questions."""

    ids: Sequence[TableId]
    graph: Any
    store: VectorStore

    def search(self, questions: Sequence[str], k: int) -> list[Ranking]:
        """Return for each question k tables of a high cosine, the highest first."""
        check_k(k)
        if not questions:
            return []
        most = min(k, len(self.ids))
        self.graph.expansion_search = max(EXPANSION_SEARCH, most)
        found = self.graph.search(self.store.question_vectors(questions), most, threads=1)
        rows = zip(np.atleast_2d(found.keys), np.atleast_2d(found.distances), strict=True)
        return [
            tuple(Hit(self.ids[key], 1.0 - float(far)) for key, far in zip(keys, distances, strict=True))
            for keys, distances in rows
        ]


def graph_index(ids: Sequence[TableId], vectors: Vectors, store: VectorStore) -> GraphIndex:
    """Put vectors into a graph, one after another: equal input gives an equal graph.

    Raises:
        MissingExtraError: the extra `hnsw` is not installed.
    """
    try:
        from usearch.index import Index
    except ImportError as problem:
        raise MissingExtraError("usearch", "hnsw", "an HNSW index") from problem
    graph = Index(
        ndim=vectors.shape[1],
        metric="cos",
        dtype="f32",
        connectivity=NEIGHBOURS,
        expansion_add=EXPANSION_BUILD,
        expansion_search=EXPANSION_SEARCH,
    )
    graph.add(np.arange(len(vectors), dtype=np.uint64), vectors, threads=1)
    return GraphIndex(ids, graph, store)


@dataclass(frozen=True)
class Hybrid:
    """Makes indexes that fuse BM25 and dense scores.

    Args:
        company: the worth of the best scores of a table's database beside its own.
    """

    lexical: BM25
    dense: Dense
    company: float = 0.5
    name: str = "hybrid"

    def index(self, corpus: Corpus, fields: Sequence[str]) -> HybridIndex:
        """Index a corpus both ways. Raises as BM25 and Dense do."""
        lexical, dense = self.lexical.index(corpus, fields), self.dense.index(corpus, fields)
        return HybridIndex(lexical, dense, group_by_database(lexical.ids), self.company)


@dataclass(frozen=True)
class HybridIndex:
    """The two indexes of one corpus, and which of its tables share a database."""

    lexical: BM25Index
    dense: DenseIndex
    databases: Databases
    company: float

    @property
    def ids(self) -> Sequence[TableId]:
        return self.lexical.ids

    def search(self, questions: Sequence[str], k: int) -> list[Ranking]:
        """Return for each question the k tables of the highest fused score."""
        return search_by_scores(self, questions, k)

    def scores(self, questions: Sequence[str]) -> Scores:
        """Return the fused scores, shape (questions, tables)."""
        own = standardize(self.lexical.sums(questions)) + standardize(self.dense.scores(questions))
        return own + self.company * self.databases.pool(own) if self.company else own
