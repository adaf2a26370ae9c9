"""Reranking by models: a language model over a real server, and a cross-encoder that the test makes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from small_corpora import CORPUS, FILMS, RIVERS, TEAMS, BagOfWords

from almanaq.errors import BudgetExceeded, ModelError, UsageError
from almanaq.models.budget import Budget
from almanaq.models.model_names import ModelSettings, open_models
from almanaq.retrieval.bm25 import BM25
from almanaq.retrieval.retriever_names import RetrieverParts, open_retriever
from almanaq_bench.retrievers.model_reranker import CrossEncoder, CrossEncoderJudge, JudgeReranker, LanguageModelJudge
from almanaq_bench.testing import StandInServer

FIELDS = ("title", "header", "cells")
QUESTION = "films, rivers and clubs of 1950"


class Backwards:
    """Judges the last candidate best; counts what it reads."""

    name = "backwards"

    def __init__(self) -> None:
        self.read: list[Sequence[str]] = []

    def judge(self, questions: Sequence[str], texts: Sequence[Sequence[str]]) -> list[list[float]]:
        self.read.extend(texts)
        return [[float(place) for place in range(len(own))] for own in texts]


def ids(retriever, question: str = QUESTION, k: int = 3) -> list[object]:
    (ranking,) = retriever.index(CORPUS, FIELDS).search([question], k)
    scores = [hit.score for hit in ranking]
    assert scores == sorted(scores, reverse=True)
    return [hit.id for hit in ranking]


def test_the_judge_orders_the_candidates_and_the_others_follow() -> None:
    first, second, third = ids(BM25())
    judge = Backwards()
    judged = JudgeReranker(BM25(), judge, candidates=2)
    assert ids(judged) == [second, first, third]
    assert [len(texts) for texts in judge.read] == [2]
    assert ids(judged, k=1) == [second]
    assert ids(judged, "walrus") == []


def rivers_first(request) -> dict[str, object]:
    """Reply as a model would that puts the table on rivers first, names one that is not there, and leaves one out."""
    shown = re.findall(r"\[table (\d+)\]\n(.*)", request["messages"][-1]["content"])
    number = next(int(number) for number, line in shown if "rivers" in line)
    return {"tables": [number, 99, number]}


@pytest.fixture
def server():
    with StandInServer(rivers_first) as running:
        yield running


def language_model(server: StandInServer, calls: int | None = None):
    settings = ModelSettings(base_url=server.url, api_key="k", budget=Budget(calls))
    return open_models("openai:stand-in", embedder="lexical", cache=False, settings=settings).language


def test_a_language_model_orders_the_candidates_in_one_call(server: StandInServer) -> None:
    rest = [table for table in ids(BM25()) if table != RIVERS.id]
    assert ids(JudgeReranker(BM25(), LanguageModelJudge(language_model(server)))) == [RIVERS.id, *rest]
    assert server.ledger.calls == 1


def test_a_language_model_is_asked_within_the_budget(server: StandInServer) -> None:
    index = JudgeReranker(BM25(), LanguageModelJudge(language_model(server, calls=1))).index(CORPUS, FIELDS)
    with pytest.raises(BudgetExceeded):
        index.search([QUESTION, "rivers and films"], 2)
    assert server.ledger.calls <= 1


@pytest.mark.parametrize("said", ['{"order": [1]}', '{"tables": "1, 2"}', "I would rather not."])
def test_where_a_reply_is_no_order_the_tables_keep_theirs(said: str) -> None:
    def reply(request) -> object:
        return said if QUESTION in request["messages"][1]["content"] else rivers_first(request)

    questions = [QUESTION, "clubs and rivers, and films"]
    with StandInServer(reply) as server:
        index = JudgeReranker(BM25(), LanguageModelJudge(language_model(server))).index(CORPUS, FIELDS)
        unusable, used = index.find(questions, 3)
    assert unusable.ranking == BM25().index(CORPUS, FIELDS).search([QUESTION], 3)[0]
    assert "cannot be used, twice" in unusable.fault
    assert (used.fault, used.ranking[0].id) == ("", RIVERS.id)


def test_a_server_that_refuses_is_an_error() -> None:
    with StandInServer(rivers_first, key="another") as server:
        index = JudgeReranker(BM25(), LanguageModelJudge(language_model(server))).index(CORPUS, FIELDS)
        with pytest.raises(ModelError):
            index.search([QUESTION], 2)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a cross-encoder of random weights with a vocabulary of its own, as sentence-transformers saves it."""
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("sentence_transformers")
    torch = pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("model") / "tiny"
    folder.mkdir()
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "films", "rivers", "clubs", "of", "kurosawa"]
    (folder / "vocab.txt").write_text("\n".join(words))
    transformers.BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    config = transformers.BertConfig(vocab_size=len(words), num_labels=1, **sizes)
    transformers.BertForSequenceClassification(config).save_pretrained(folder)
    return folder


@pytest.mark.nightly
def test_a_cross_encoder_is_loaded_and_asked(tiny: Path) -> None:
    encoder = CrossEncoder(str(tiny))
    scores = encoder.scores("films of kurosawa", ["films of kurosawa", "clubs", "rivers of of of"])
    assert scores.shape == (3,)
    assert len(set(scores.tolist())) == 3
    assert encoder.scores("films", []).shape == (0,)
    found = ids(JudgeReranker(BM25(), CrossEncoderJudge(encoder)))
    assert set(found) == {FILMS.id, RIVERS.id, TEAMS.id}
    with pytest.raises(ModelError, match="cannot be loaded"):
        CrossEncoder("/no/such/folder").scores("a", ["b"])


def test_names(server: StandInServer) -> None:
    parts = RetrieverParts(BagOfWords, model=lambda _: language_model(server))
    assert open_retriever("rerank:some/model", parts).retriever.judge.name == "some/model"
    opened = open_retriever("rerank:openai:stand-in", parts)
    assert opened.name == "rerank:openai:stand-in"
    assert ids(opened.retriever)[0] == RIVERS.id
    with pytest.raises(UsageError, match="slash"):
        open_retriever("rerank:gpt", parts)
    with pytest.raises(UsageError, match="language model"):
        open_retriever("rerank:openai:x", RetrieverParts(BagOfWords))
