from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small_corpora import CORPUS, FILMS, RIVERS, BagOfWords, table

from almanaq.errors import UsageError
from almanaq.models.embedders.vector_store import VectorStore
from almanaq.retrieval.bm25 import BM25
from almanaq.retrieval.dense import Dense
from almanaq.retrieval.stored import IndexChange, build_index, open_index, update_index
from almanaq.retrieval.stored_search import StoredHybrid
from almanaq_bench.retrievers.variants import Hybrid

FIELDS = ["title", "header", "cells"]
MANY = (*CORPUS, *(table(f"t{n}", f"walk {n} of {n % 7}", ("a", "b"), [(f"x{n}", "y")]) for n in range(60)))
QUESTIONS = ["films of Kurosawa", "longest rivers", "walk 12 of 5", "Seven Samurai x3"]


def store() -> VectorStore:
    return VectorStore(None, BagOfWords())


def ids(ranking) -> list[str]:
    return [hit.id.table for hit in ranking]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    build_index(MANY, tmp_path / "i", FIELDS, store=store())
    return tmp_path / "i"


@pytest.mark.parametrize("exact", [1000, 0])
def test_it_finds_what_the_index_in_memory_finds(folder: Path, exact: int) -> None:
    memory = Hybrid(BM25(), Dense(store()), company=0).index(MANY, FIELDS)
    stored = StoredHybrid(open_index(folder), BagOfWords(), exact=exact)
    for mine, theirs in zip(stored.search(QUESTIONS, 3), memory.search(QUESTIONS, 3), strict=True):
        assert ids(mine)[0] == ids(theirs)[0]
        assert [hit.score for hit in mine] == sorted((hit.score for hit in mine), reverse=True)


@pytest.mark.parametrize("exact", [1000, 0])
def test_without_a_known_word_the_vectors_decide(folder: Path, exact: int) -> None:
    stored = StoredHybrid(open_index(folder), BagOfWords(), exact=exact)
    (ranking,) = stored.search(["zzz"], 100)
    assert len(ranking) == len(MANY)


def test_an_update_embeds_what_changed(folder: Path) -> None:
    changed = (
        *(replace(t, title=f"A heron {n}") if n in (3, 9) else t for n, t in enumerate(MANY)),
        table("new", "owl"),
    )
    embedder = BagOfWords()
    index, change = update_index(changed, folder, store=VectorStore(None, embedder))
    assert change == IndexChange(added=1, changed=2, kept=len(MANY) - 2)
    assert len(embedder.embedded) == 3
    for exact in (1000, 0):
        stored = StoredHybrid(index, BagOfWords(), exact=exact)
        assert {named.id.table for named, _ in stored.best("heron", 2)} == {MANY[3].id.table, MANY[9].id.table}
        assert [named.id.table for named, _ in stored.best("owl", 1)] == ["new"]
        listed = [hit.id for hit in stored.search(["a heron"], 100)[0]]
        assert len(set(listed)) == len(listed)


def test_another_embedder_is_refused(folder: Path) -> None:
    other = BagOfWords()
    other.name = "other"
    for wrong in (None, VectorStore(None, other)):
        with pytest.raises(UsageError, match="holds vectors of 'bag-of-words'"):
            update_index(MANY, folder, store=wrong)


def test_vectors_are_those_of_the_embedder_in_half_precision(folder: Path) -> None:
    (segment,) = open_index(folder).segments
    np.testing.assert_allclose(np.linalg.norm(segment.vectors.all(), axis=1), 1, atol=2e-3)
    assert segment.vectors.all().dtype == np.float16


def test_k_beyond_the_corpus(folder: Path) -> None:
    (ranking,) = StoredHybrid(open_index(folder), BagOfWords()).search(["films"], 10_000)
    assert len(ranking) == len(MANY)
    assert ranking[0].id == FILMS.id
    assert StoredHybrid(open_index(folder), BagOfWords()).search([], 3) == []
    assert StoredHybrid(open_index(folder), BagOfWords()).search(["rivers"], 1)[0][0].id == RIVERS.id
