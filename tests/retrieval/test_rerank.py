import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from small_corpora import CORPUS, FILMS, BagOfWords, table

from almanaq.corpus.table import TableId, parse_fields
from almanaq.errors import SourceError, UsageError
from almanaq.models.embedders.vector_store import VectorStore
from almanaq.retrieval.dense import Aspects
from almanaq.retrieval.features import FEATURES
from almanaq.retrieval.rerank import DOUBT_FEATURES, Rerank, Weights, choose_weights, is_statement

ROOT = Path(__file__).parents[2]
FIELDS = ["title", "header", "cells"]
KINDS = {
    "titled": "title,header",
    "untitled": "header,cells",
    "databases": "title,header,description",
    "bare-databases": "title,header",
}
SIGHTS = ("lexical", "short", "rows")


def rerank(**options) -> Rerank:
    return Rerank(aspects=Aspects(VectorStore(None, BagOfWords())), **options)


def test_the_weighted_feature_decides() -> None:
    whole = table("whole", "other", ("x",), [("red fox runs",)])
    parted = table("parted", "red red fox fox runs", ("x",), [("runs",), ("fox",)])
    index = rerank(weights=Weights("test", {"values": 1.0})).index([parted, whole, *CORPUS], FIELDS)
    (ranking,) = index.search(["the red fox runs"], 2)
    assert ranking[0].id == whole.id
    assert ranking[0].score == pytest.approx(1.0)


def test_tables_behind_the_candidates_keep_their_order() -> None:
    index = rerank(candidates=1).index(CORPUS, FIELDS)
    (short,), (long,) = index.search(["Kurosawa films"], 1), index.search(["Kurosawa films"], 3)
    assert [hit.id for hit in long][:1] == [hit.id for hit in short] == [FILMS.id]
    assert len(long) == 3
    assert all(one.score > other.score for one, other in pairwise(long))


def test_a_table_gains_by_its_database() -> None:
    corpus = [
        table("school/people", "people", ("name", "age")),
        table("hospital/people", "people", ("name", "age")),
        table("hospital/wards", "wards", ("beds",)),
        table("school/classes", "classes", ("room",)),
    ]
    (ranking,) = rerank().index(corpus, ["title", "header"]).search(["age of people by wards with beds"], 2)
    assert {hit.id for hit in ranking} == {TableId("hospital", "people"), TableId("hospital", "wards")}


def test_batches_and_single_questions_agree() -> None:
    index = rerank().index(CORPUS, FIELDS)
    questions = ["films", "rivers", "football in Lyon", ""]
    for together, question in zip(index.search(questions, 3), questions, strict=True):
        (alone,) = index.search([question], 3)
        assert [hit.id for hit in together] == [hit.id for hit in alone]
        np.testing.assert_allclose([hit.score for hit in together], [hit.score for hit in alone], rtol=1e-4)


def test_rows_are_spread_over_a_long_table() -> None:
    embedder = BagOfWords()
    rows = [(f"word{number}",) for number in range(100)]
    index = Aspects(VectorStore(None, embedder), rows=4).index([table("long", "t", ("a",), rows)], FIELDS)
    assert len(index.vectors["dense_row"]) == 4
    assert "a: word75" in embedder.embedded


def test_by_words_alone_a_table_that_shares_none_is_not_found() -> None:
    (ranking,) = Rerank().index(CORPUS, FIELDS).search(["Which films are there?"], 3)
    assert [hit.id for hit in ranking] == [FILMS.id]


def test_bad_input() -> None:
    with pytest.raises(SourceError, match="no table"):
        rerank().index([], FIELDS)
    with pytest.raises(UsageError, match="1 or more"):
        rerank().index(CORPUS, FIELDS).search(["films"], 0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sight", SIGHTS)
def test_the_learned_weights_name_what_there_is(kind: str, sight: str) -> None:
    several = kind.endswith("databases")
    styles = choose_weights(parse_fields(KINDS[kind]), several=several, sight=sight)
    assert styles.questions.name == f"{kind}-{sight}"
    assert styles.statements.name == (f"{kind}-{sight}" if several else f"{kind}-statements-{sight}")
    known = {*FEATURES, "bm25", "bm25_title", "company"}
    if sight != "lexical":
        known |= {"dense", "dense_title", "dense_header", "dense_description"}
    for weights in (styles.questions, styles.statements):
        assert set(weights.worth) <= (known | {"dense_row"} if sight == "rows" else known)
        assert weights.doubt is not None
        assert (weights.association is not None) == (kind == "untitled")
        assert set(weights.doubt.worth) <= {*FEATURES, *DOUBT_FEATURES}


def test_the_weights_say_where_they_come_from() -> None:
    told = json.loads((ROOT / "benchmarks/retrieval/results/weights.json").read_text(encoding="utf-8"))
    assert told["split"] == "validation"
    assert set(told["measured"]) >= {f"{kind}-{sight}" for kind in KINDS for sight in SIGHTS}


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("the film fall up be nominate for the best actress", True),
        ("Who was nominated for the best actress", False),
        ("the film fall up was nominated for the best actress?", False),
        ("Show the names of all singers by age", False),
        ("films of Akira Kurosawa", False),
        ("", False),
    ],
)
def test_statements_are_told_from_questions(text: str, statement: bool) -> None:
    assert is_statement(text) is statement
