"""Retrievers of other libraries, by faithful small ones of their shape: none of the libraries is a dependency."""

from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest
from small_corpora import CORPUS, FILMS, RIVERS, BagOfWords, table

from almanaq.corpus.table import TableId
from almanaq.errors import BenchmarkError, MissingExtraError, SourceError, UsageError
from almanaq.retrieval.bm25 import BM25
from almanaq.retrieval.protocols import Hit
from almanaq.retrieval.retriever_names import RetrieverParts, open_retriever
from almanaq_bench.retrievers.adapters import TableText
from almanaq_bench.retrievers.paper_retrievers import adapt

FIELDS = ["title", "header", "cells"]


def ids(ranking):
    return [hit.id for hit in ranking]


class Paper:
    """The two methods of the paper's API, as its appendix has them: counts shared words."""

    def embed_corpus(self, corpus):
        self.batches = list(corpus)
        self.words = {}
        for batch in self.batches:
            for database, name, grid in zip(batch["database_id"], batch["table_id"], batch["table"], strict=True):
                self.words[database, name] = {word.lower() for row in grid for cell in row for word in cell.split()}

    def retrieve(self, query, top_k):
        asked = {word.lower() for word in query.split()}
        ranked = sorted(self.words, key=lambda name: -len(asked & self.words[name]))
        return ranked[:top_k]


class PaperNamed(Paper):
    """The same as the published code has them: with a dataset's name, and a format that is asked for."""

    expected_corpus_format = "dictionary"

    def embed_corpus(self, dataset_name, corpus):
        self.named = dataset_name
        self.entries = [row for batch in corpus for table in batch["table"] for row in table]
        self.words = {("d", "films"): {"seven"}}

    def retrieve(self, query, dataset_name, top_k, **kwargs):
        assert dataset_name == self.named
        return super().retrieve(query, top_k)


def test_the_papers_two_methods() -> None:
    found = Paper()
    index = adapt(found, "x").index(CORPUS, FIELDS)
    (ranking,) = index.search(["Seven Samurai"], 2)
    assert ids(ranking)[0] == FILMS.id
    assert [hit.score for hit in ranking] == [1.0, 0.5]
    (batch,) = found.batches
    assert batch["table"][1] == [["River", "length_km"], ["Nile", "6,650"], ["Amazon", "6,400"]]
    assert list(batch) == ["database_id", "table_id", "table", "context"]


def test_with_a_dataset_name_and_another_format() -> None:
    found = PaperNamed()
    index = adapt(found, "x").index(CORPUS, FIELDS)
    assert found.entries[0] == {"Year": "1950", "Film": "Rashomon"}
    assert ids(index.search(["seven"], 1)[0]) == [FILMS.id]
    first = found.named
    adapt(found, "x").index([*CORPUS, table("more")], FIELDS)
    assert found.named != first  # such classes keep vectors by it
    adapt(found, "x", dataset="ottqa").index(CORPUS, FIELDS)
    assert found.named == "ottqa"


def test_as_data_frames() -> None:
    class Framed(Paper):
        expected_corpus_format = "dataframe"

        def embed_corpus(self, corpus):
            self.frames = [frame for batch in corpus for frame in batch["table"]]

    found = Framed()
    adapt(found, "x").index(CORPUS, FIELDS)
    assert found.frames[0].to_dict("records")[1] == {"Year": "1954", "Film": "Seven Samurai"}


def test_the_papers_other_class_gives_vectors() -> None:
    class Embedding:
        def embed_query(self, query, dataset_name):
            return BagOfWords().embed([query])[0]

        def embed_corpus(self, dataset_name, corpus_entry):
            return BagOfWords().embed([" ".join(cell for row in corpus_entry["table"] for cell in row)])

    index = adapt(Embedding, "x").index(CORPUS, FIELDS)
    (ranking,) = index.search(["Amazon Nile"], 2)
    assert ranking[0].id == RIVERS.id
    assert ranking[0].score > ranking[1].score


@dataclass
class LlamaIndexShaped:
    """As llama_index's retrievers: nodes with scores, as many as `similarity_top_k` says."""

    nodes: list = field(default_factory=list)
    similarity_top_k: int = 2

    def retrieve(self, query):
        return self.nodes[: self.similarity_top_k]


def scored(table, score):
    metadata = {"database_id": table.id.database, "table_id": table.id.table}
    return SimpleNamespace(node=SimpleNamespace(metadata=metadata), score=score)


def test_a_llama_index_retriever() -> None:
    found = LlamaIndexShaped([scored(FILMS, 0.9), scored(FILMS, 0.8), scored(RIVERS, 0.7)])
    (ranking,) = adapt(found, "x").index(CORPUS, FIELDS).search(["q"], 3)
    assert [(hit.id, hit.score) for hit in ranking] == [(FILMS.id, 0.9), (RIVERS.id, 0.7)]
    assert found.similarity_top_k == 2


@pytest.mark.parametrize("scores", [(None, None), (0.1, 0.9), (None, 0.5)])
def test_scores_that_are_missing_or_rise_become_ranks(scores) -> None:
    found = LlamaIndexShaped([scored(FILMS, scores[0]), scored(RIVERS, scores[1])])
    (ranking,) = adapt(found, "x").index(CORPUS, FIELDS).search(["q"], 3)
    assert [(hit.id, hit.score) for hit in ranking] == [(FILMS.id, 1.0), (RIVERS.id, 0.5)]


class LangChainShaped:
    """As langchain's retrievers: documents without scores; `k` as a keyword, as vector stores' take it."""

    def __init__(self, documents):
        self.documents = documents

    def invoke(self, input, config=None, **kwargs):
        asked = {word.lower() for word in input.split()}
        ranked = sorted(self.documents, key=lambda d: -len(asked & set(d.page_content.lower().split())))
        return ranked[: kwargs.get("k", 4)]


def make(documents: list[TableText]) -> LangChainShaped:
    """What a user names by `module:make`: an index of the run's corpus in their library."""
    return LangChainShaped([SimpleNamespace(page_content=d.text, metadata=dict(d.metadata)) for d in documents])


def test_a_function_makes_a_lang_chain_retriever_of_the_corpus() -> None:
    index = open_retriever(f"{__name__}:make", RetrieverParts(BagOfWords)).retriever.index(CORPUS, ["title"])
    assert ids(index.search(["longest rivers"], 1)[0]) == [RIVERS.id]
    assert len(index.search(["longest rivers"], 3)[0]) == 3


def test_without_the_benchmark_objects_by_their_names_are_refused(monkeypatch) -> None:
    def absent(_):
        raise ModuleNotFoundError(name="almanaq_bench")

    monkeypatch.setattr("almanaq.benchmark.import_module", absent)
    with pytest.raises(MissingExtraError, match=r"retriever .*pip install ./bench"):
        open_retriever(f"{__name__}:make", RetrieverParts(BagOfWords))


def test_ours_stay_ours() -> None:
    ours = BM25()
    assert adapt(ours, "x") is ours
    assert isinstance(adapt(BM25, "x"), BM25)


class NeedsArguments:
    def __init__(self, folder):
        pass


def gives(found):
    return SimpleNamespace(embed_corpus=lambda corpus: None, retrieve=lambda query, top_k: found)


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (object(), "is not a retriever"),
        (NeedsArguments, "cannot be created"),
        (lambda documents: make, "returned a function"),
    ],
)
def test_what_is_no_retriever(found, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        adapt(found, "x").index(CORPUS, FIELDS)


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (LlamaIndexShaped([SimpleNamespace(node=SimpleNamespace(metadata={}), score=1)]), "must hold database_id"),
        (SimpleNamespace(embed_corpus=lambda corpus: None, retrieve=lambda query, top_k: ["films"]), "gave 'films'"),
        (SimpleNamespace(embed_corpus=lambda corpus: None, retrieve=lambda query, top_k: [5]), "gave 5"),
        (gives([("d", "a"), ("d", "b"), ("d", "a")]), "question 'q': it lists d/a twice"),
        (
            gives([("d", "a", 0.5), ("d", "b", float("nan"))]),
            r"question 'q': it scored d/b as nan, which is not finite",
        ),
        (LlamaIndexShaped([scored(FILMS, float("inf"))]), "not finite|not numbers"),
        (
            SimpleNamespace(embed_corpus=lambda entry: np.full(3, np.nan), embed_query=lambda query: np.ones(3)),
            "not finite|not numbers",
        ),
    ],
)
def test_what_is_no_ranking(found, message: str) -> None:
    with pytest.raises(BenchmarkError, match=message):
        adapt(found, "x").index(CORPUS, FIELDS).search(["q"], 3)


def test_a_score_may_stand_after_the_table_or_beside_it() -> None:
    for found in ([("d", "a", 2.0), ["d", "b", 1]], [(("d", "a"), 2.0), (["d", "b"], 1)]):
        (ranking,) = adapt(gives(found), "x").index(CORPUS, FIELDS).search(["q"], 3)
        assert ranking == (Hit(TableId("d", "a"), 2.0), Hit(TableId("d", "b"), 1.0))


def test_an_empty_corpus_is_refused() -> None:
    for found in (Paper(), make):
        with pytest.raises(SourceError, match="no table"):
            adapt(found, "x").index([], FIELDS)


def test_vectors_of_zero_are_no_error() -> None:
    class Zero:
        def embed_query(self, query):
            return np.zeros(3)

        def embed_corpus(self, corpus_entry):
            return np.zeros(3)

    assert len(adapt(Zero, "x").index(CORPUS, FIELDS).search(["q"], 2)[0]) == 2
