import pytest
from small_corpora import CORPUS, BagOfWords

from almanaq.errors import UsageError
from almanaq.retrieval.bm25 import BM25
from almanaq.retrieval.retriever_names import RetrieverParts, check_fields_apply, open_retriever
from almanaq.testing import ScriptedModel
from almanaq_bench.retrievers.openers import NAMES

GOLD = {"which film?": (CORPUS[0].id,)}
WRITER = ScriptedModel(lambda prompt: {"title": "a table", "summary": prompt.messages[1].content[-60:]})
PARTS = RetrieverParts(BagOfWords, seed=3, gold=GOLD, language=WRITER)


@pytest.mark.parametrize("name", NAMES)
def test_every_retriever_keeps_the_seam(name: str) -> None:
    opened = open_retriever(name, PARTS)
    index = opened.retriever.index(CORPUS, ["title", "cells"])
    questions = ["which film?", "rivers", ""]
    rankings = index.search(questions, 2)
    assert rankings == index.search(questions, 2)
    assert len(rankings) == 3
    for ranking in rankings:
        assert len(ranking) <= 2
        assert len({hit.id for hit in ranking}) == len(ranking)
        assert [hit.score for hit in ranking] == sorted((hit.score for hit in ranking), reverse=True)
    assert index.search([], 2) == []
    assert opened.retriever.name == opened.name == name


@pytest.mark.parametrize(("name", "resolved"), [("hybrid", "bm25"), ("rerank", "rerank-lexical")])
def test_without_an_embedder_of_meaning_words_alone_decide_and_it_is_said(name: str, resolved: str) -> None:
    class Lexical(BagOfWords):
        name = "lexical"

    opened = open_retriever(name, RetrieverParts(Lexical))
    assert opened.name == resolved
    assert opened.embedder == ""
    assert opened.note.startswith(f"{name} runs ")


def test_oracle_finds_the_gold_and_random_depends_on_the_seed() -> None:
    oracle = open_retriever("oracle", PARTS).retriever.index(CORPUS, ["title"])
    assert [hit.id for hit in oracle.search(["which film?"], 5)[0]] == [CORPUS[0].id]
    drawn = {
        tuple(
            hit.id.table
            for hit in open_retriever("random", RetrieverParts(BagOfWords, seed=seed))
            .retriever.index(CORPUS, [])
            .search(["q"], 3)[0]
        )
        for seed in range(20)
    }
    assert len(drawn) > 2


def test_retrievers_of_others_by_module_and_object() -> None:
    assert isinstance(open_retriever("almanaq.retrieval.bm25:BM25", PARTS).retriever, BM25)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("hybird", "did you mean 'hybrid'"),
        ("no_such_module:x", "cannot import 'no_such_module'"),
        ("almanaq.retrieval.bm25:BM26", "has no 'BM26'; did you mean 'BM25'"),
        ("almanaq.retrieval.bm25:WEIGHTS", "is not a retriever"),
    ],
)
def test_wrong_names(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        open_retriever(name, PARTS)


def test_declared_fields_do_not_go_with_retrievers_that_see_their_own_text() -> None:
    check_fields_apply("bm25")
    with pytest.raises(UsageError, match="--fields cannot be combined with --retriever target-bm25"):
        check_fields_apply("target-bm25")
