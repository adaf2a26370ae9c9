"""Embedders that see questions and documents apart: what is sent, what is kept, and who searches with which."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import almanaq
from almanaq.errors import UsageError
from almanaq.models.embedders.base import LexicalEmbedder, as_embedder
from almanaq.models.embedders.vector_store import VectorStore
from almanaq.models.openai import OpenAIEmbedder
from almanaq.testing import FunctionModel
from almanaq_bench.testing import StandInServer


class Mirrored:
    """An embedder whose questions look the other way: only a search that tells them apart finds anything."""

    name = "mirrored"

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
        self.asked += [("document", text) for text in texts]
        return LexicalEmbedder(256).embed(texts)

    def embed_questions(self, texts: Sequence[str]) -> np.ndarray:
        self.asked += [("question", text) for text in texts]
        return LexicalEmbedder(256).embed([text.removeprefix("q ") for text in texts])


class Alike:
    """Somebody's embedder with one method."""

    name = "alike"

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        return LexicalEmbedder(256).embed(texts)


def test_the_same_text_is_kept_as_a_question_and_as_a_document(tmp_path: Path) -> None:
    embedder = Mirrored()
    store = VectorStore(tmp_path, embedder)
    one, other = store.vectors(["q river"])[0], store.question_vectors(["q river"])[0]
    assert not np.array_equal(one, other)
    again = VectorStore(tmp_path, embedder)
    np.testing.assert_array_equal(again.vectors(["q river"])[0], one)
    np.testing.assert_array_equal(again.question_vectors(["q river"])[0], other)
    assert embedder.asked == [("document", "q river"), ("question", "q river")]


def test_one_method_serves_both_and_is_kept_once(tmp_path: Path) -> None:
    store = VectorStore(tmp_path, Alike())  # type: ignore[arg-type]
    np.testing.assert_array_equal(store.vectors(["river"]), store.question_vectors(["river"]))
    assert store.find_missing(["river"]) == []


def test_what_is_no_embedder_is_refused() -> None:
    with pytest.raises(UsageError, match="embed_questions"):
        as_embedder(object())


@pytest.mark.parametrize("retriever", ["dense", "hybrid"])
def test_tables_are_documents_and_questions_are_questions(
    retriever: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALMANAQ_CACHE_DIR", str(tmp_path))
    embedder = Mirrored()
    source = {"rivers": {"river": ["Rhine"]}, "peaks": {"peak": ["Eiger"]}}
    tables = almanaq.tables(source, retriever=retriever, embedder=embedder)
    [best, *_] = tables.find("q which peaks are high?", 1)
    assert best.table_id == "peaks"
    kinds = {kind for kind, text in embedder.asked if "high" in text}
    assert kinds == {"question"}
    assert {kind for kind, text in embedder.asked if "Rhine" in text} == {"document"}


def test_the_order_of_similarity_asks_questions() -> None:
    embedder = Mirrored()
    table = {"note": ["a quiet room", "a loud bar"]}
    reader = FunctionModel(lambda text, question: "Yes" if "loud" in text else "No")
    with almanaq.connect({"t": table}, model=reader, embedder=embedder, cache=False) as connection:
        found = connection.sql("SELECT note FROM t WHERE answer(note, 'q is it loud?') = 'Yes' LIMIT 1")
    assert found.rows == [("a loud bar",)]
    assert {kind for kind, text in embedder.asked if "is it loud" in text} == {"question"}


@pytest.mark.parametrize(
    ("model", "question", "document"),
    [
        ("intfloat/multilingual-e5-small", "query: ", "passage: "),
        ("nomic-embed-text:v1.5", "search_query: ", "search_document: "),
        ("BAAI/bge-small-en-v1.5", "Represent this sentence for searching relevant passages: ", ""),
        ("MongoDB/mdbr-leaf-ir", "Represent this sentence for searching relevant passages: ", ""),
        ("ibm-granite/granite-embedding-small-english-r2", "", ""),
        ("text-embedding-3-small", "", ""),
        ("bge-m3", "", ""),
    ],
)
def test_a_server_gets_the_words_that_its_model_wants(model: str, question: str, document: str) -> None:
    with StandInServer() as server:
        embedder = OpenAIEmbedder(model, server.url)
        embedder.embed_questions(["long rivers?"])
        embedder.embed_documents(["Rhine"])
        sent = [request["input"] for request in server.ledger.embedded]
    assert sent == [[question + "long rivers?"], [document + "Rhine"]]
    assert embedder.symmetric is not bool(question or document)


def test_a_server_that_knows_input_types_gets_them_and_one_that_refuses_them_none() -> None:
    with StandInServer() as server:
        embedder = OpenAIEmbedder("voyage-3.5", server.url)
        embedder.embed_questions(["long rivers?"])
        embedder.embed_documents(["Rhine"])
        assert [request["input_type"] for request in server.ledger.embedded] == ["query", "document"]
    with StandInServer(refuses=("input_type",)) as server:
        embedder = OpenAIEmbedder("voyage-3.5", server.url)
        assert embedder.embed_questions(["long rivers?", "b"]).shape == embedder.embed_documents(["Rhine", "c"]).shape
        assert [request.get("input_type") for request in server.ledger.embedded] == [None, None]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "own", "question", "document"),
    [
        ("model", {"query": "ask ", "document": "read "}, ["ask"], ["read"]),
        ("model", {"s2p_query": "ask ", "s2s_query": "same "}, ["ask"], []),
        ("e5-tiny", {}, ["query", ":"], ["passage", ":"]),
        ("model", {}, [], []),
    ],
)
def test_a_model_of_the_hub_gets_its_own_prompts(
    tmp_path: Path, name: str, own: dict[str, str], question: list[str], document: list[str]
) -> None:
    pytest.importorskip("torch")
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    from almanaq.models.hub_models import HubEmbedder

    words = {w: n for n, w in enumerate(["[UNK]", "query", "passage", "ask", "read", "same", "river", ":"])}
    tokenizer = Tokenizer(WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    vectors = np.random.default_rng(1).normal(size=(len(words), 16)).astype(np.float32)
    made = SentenceTransformer(
        modules=[StaticEmbedding(tokenizer, embedding_weights=vectors)], prompts=own, device="cpu"
    )
    made.save(str(tmp_path / name))
    embedder = HubEmbedder(str(tmp_path / name))
    got = np.concatenate([embedder.embed_questions(["river"]), embedder.embed_documents(["river"])])
    summed = [vectors[[words[w] for w in [*before, "river"]]].mean(axis=0) for before in (question, document)]
    # Where the processor has bfloat16, the model is computed in it.
    np.testing.assert_allclose(got, [v / np.linalg.norm(v) for v in summed], atol=0.02)
