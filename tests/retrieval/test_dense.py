import numpy as np
import pytest
from small_corpora import CORPUS, FILMS, RIVERS, BagOfWords, table

from almanaq.corpus.table import Field, parse_fields, table_text
from almanaq.errors import SourceError
from almanaq.models.embedders.vector_store import VectorStore
from almanaq.retrieval.bm25 import BM25
from almanaq.retrieval.dense import Dense, row_texts
from almanaq.retrieval.protocols import standardize
from almanaq_bench.retrievers.variants import DenseParts, Hybrid, column_texts

FIELDS = ["title", "header", "cells"]


def dense() -> Dense:
    return Dense(VectorStore(None, BagOfWords()))


def parts(**options) -> DenseParts:
    return DenseParts(VectorStore(None, BagOfWords()), **options)


def test_scores_are_cosines() -> None:
    index = dense().index(CORPUS, FIELDS)
    questions = ["films of Akira", "the Nile"]
    embedder = BagOfWords()
    tables = embedder.embed([table_text(table, parse_fields(FIELDS)) for table in CORPUS])
    np.testing.assert_allclose(index.scores(questions), embedder.embed(questions) @ tables.T, atol=1e-6)


def test_a_row_is_found_in_a_long_table() -> None:
    rows = [(f"word{number} other{number}",) for number in range(200)] + [("needle thread",)]
    long, short = table("long", "Sewing", ("things",), rows), table("short", "needle", ("things",), [("pin",)])
    index = parts(rows=True).index([short, long, *CORPUS], FIELDS)
    assert index.vectors.shape[0] > index.scores(["q"]).shape[1] == 5
    assert index.search(["Sewing things needle thread"], 1)[0][0].id == long.id


def test_a_column_is_found_in_a_wide_table() -> None:
    header = [f"name{number}" for number in range(100)]
    rows = [tuple(f"cell{number}-{row}" for number in range(100)) for row in range(3)]
    wide, short = table("wide", "Sewing", header, rows), table("short", "name70", ("things",), [("pin",)])
    question = "Sewing name70: cell70-0, cell70-1, cell70-2"
    with_columns, without = (parts(columns=each).index([short, wide, *CORPUS], FIELDS) for each in (True, False))
    assert with_columns.search([question], 1)[0][0].id == wide.id
    assert with_columns.scores([question])[0, 1] > without.scores([question])[0, 1] + 0.2


def test_rows_and_columns_are_pooled_by_their_maximum() -> None:
    def scores(**options):
        return parts(**options).index(CORPUS, FIELDS).scores(["Kurosawa", "Nile length_km", "Lyon"])

    pooled = np.maximum(scores(rows=True), scores(columns=True))
    np.testing.assert_allclose(scores(rows=True, columns=True), pooled, atol=1e-6)


def test_column_texts_hold_what_is_declared() -> None:
    stars = table("t", "Stars", ("name", "", "kind"), [("Sun", "", "G"), ("Rigil", "", "G")])
    assert column_texts(stars, list(Field)) == ["Stars\nname: Sun, Rigil", "Stars\nkind: G"]
    assert column_texts(stars, [Field.CELLS]) == ["Sun, Rigil", "G"]
    assert column_texts(stars, [Field.HEADER]) == ["name", "kind"]
    assert column_texts(stars, [Field.TITLE]) == []
    assert column_texts(table("n", "", (), [("1", "2"), ("3", "2")]), list(Field)) == ["1, 3", "2"]
    assert column_texts(table("e", "Empty", ("a", "b"), []), list(Field)) == ["Empty\na", "Empty\nb"]


def test_row_texts_name_columns_only_where_the_header_is_declared() -> None:
    assert row_texts(RIVERS, list(Field))[0] == "Longest rivers\nRiver: Nile; length_km: 6,650"
    assert row_texts(RIVERS, [Field.CELLS])[0] == "Nile; 6,650"
    assert row_texts(RIVERS, [Field.TITLE]) == []


def test_hybrid_is_the_sum_of_standardized_scores() -> None:
    index = Hybrid(BM25(), dense()).index(CORPUS, FIELDS)
    question = ["Kurosawa's films"]
    expected = standardize(index.lexical.sums(question)) + standardize(index.dense.scores(question))
    np.testing.assert_allclose(index.scores(question), expected)
    assert index.search(question, 1)[0][0].id == FILMS.id


def test_a_flat_row_says_nothing() -> None:
    assert standardize(np.full((1, 4), 0.3, dtype=np.float32)).tolist() == [[0, 0, 0, 0]]


def test_hybrid_still_ranks_when_no_word_is_known() -> None:
    (ranking,) = Hybrid(BM25(), dense()).index(CORPUS, FIELDS).search(["zzz"], 10)
    assert len(ranking) == len(CORPUS)


def test_batches_and_single_questions_agree() -> None:
    index = Hybrid(BM25(), dense()).index(CORPUS, FIELDS)
    questions = ["films", "rivers", "football in Lyon"]
    for together, question in zip(index.search(questions, 3), questions, strict=True):
        (alone,) = index.search([question], 3)
        assert [hit.id for hit in together] == [hit.id for hit in alone]
        np.testing.assert_allclose([hit.score for hit in together], [hit.score for hit in alone], rtol=1e-5)


def test_an_empty_corpus_is_refused() -> None:
    with pytest.raises(SourceError, match="no table"):
        dense().index([], FIELDS)
