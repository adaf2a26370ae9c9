import sys

import numpy as np
import pytest
from small_corpora import CORPUS, BagOfWords, table

from almanaq.errors import MissingExtraError, SourceError
from almanaq.models.embedders.vector_store import VectorStore
from almanaq.retrieval.dense import Dense
from almanaq_bench.retrievers.variants import DenseGraph

FIELDS = ["title", "cells"]
MANY = tuple(table(f"t{n}", f"word{n} other{n * 7 % 300} thing{n % 11}") for n in range(400))


def dense() -> Dense:
    return Dense(VectorStore(None, BagOfWords(96)))


def test_it_finds_nearly_what_the_exact_scan_finds() -> None:
    questions = [f"word{n} thing{n % 11}" for n in range(0, 400, 9)]
    exact, graph = dense().index(MANY, FIELDS), DenseGraph(dense()).index(MANY, FIELDS)
    for mine, theirs in zip(graph.search(questions, 10), exact.search(questions, 10), strict=True):
        # Many vectors are equally near, so scores are compared, not tables.
        np.testing.assert_allclose([hit.score for hit in mine], [hit.score for hit in theirs], atol=1e-2)


def test_equal_input_gives_an_equal_graph() -> None:
    first, second = (DenseGraph(dense()).index(MANY, FIELDS).search(["word5", "word7"], 20) for _ in range(2))
    assert first == second


def test_bounds() -> None:
    index = DenseGraph(dense()).index(CORPUS, FIELDS)
    assert len(index.search(["films"], 100)[0]) == len(CORPUS)
    with pytest.raises(SourceError, match="no table"):
        DenseGraph(dense()).index([], FIELDS)


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "usearch.index", None)
    with pytest.raises(MissingExtraError, match=r"almanaq\[hnsw\]"):
        DenseGraph(dense()).index(CORPUS, FIELDS)
