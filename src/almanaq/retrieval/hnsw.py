"""Vectors in a navigable graph (HNSW) instead of an exact scan: quicker in large corpora, and a little less sure.

Rows of small numbers are scanned here as well.

Malkov, Yashunin: "Efficient and robust approximate nearest neighbor search using HNSW graphs", 2018. The only module
that imports usearch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from almanaq.corpus.table import Corpus, TableId
from almanaq.errors import MissingExtraError
from almanaq.models.vector_store import Vectors, VectorStore
from almanaq.retrieval.dense import Dense
from almanaq.retrieval.protocols import Hit, Ranking
from almanaq.retrieval.ranking import check_k

NEIGHBOURS, EXPANSION_BUILD, EXPANSION_SEARCH = 16, 200, 50
"""M, ef_construction and ef: as the TARGET benchmark has them."""


@dataclass(frozen=True)
class DenseGraph:
    """Makes graphs of the vectors that `dense` makes, one for each table."""

    dense: Dense
    name: str = "dense-hnsw"

    def index(self, corpus: Corpus, fields: Sequence[str]) -> GraphIndex:
        """Embed a corpus and put it into a graph. Raises as Dense does, and MissingExtraError without `hnsw`."""
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


def nearest_rows(
    rows: NDArray[Any], row: NDArray[Any], count: int, metric: Literal["cos", "hamming"]
) -> NDArray[np.intp]:
    """Return the numbers of the rows of bytes that are nearest to one, all of them compared.

    Raises:
        MissingExtraError: the extra `hnsw` is not installed.
    """
    try:
        from usearch.compiled import MetricKind
        from usearch.index import search
    except ImportError as problem:
        raise MissingExtraError("usearch", "hnsw", "an index with codes of vectors") from problem
    kind = MetricKind.Cos if metric == "cos" else MetricKind.Hamming
    found = search(rows, row[None], count, kind, exact=True, threads=1)
    return np.ravel(found.keys).astype(np.intp)
