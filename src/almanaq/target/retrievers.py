"""The classes that retrievers derive from, and the retrievers of the published package by their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from almanaq.retrieval.paper_classes import (
    AbsCustomEmbeddingRetriever,
    AbsRetrieverBase,
    AbsStandardEmbeddingRetriever,
    RetrievalResultDataModel,
)

__all__ = [
    "AbsCustomEmbeddingRetriever",
    "AbsRetrieverBase",
    "AbsStandardEmbeddingRetriever",
    "E5EmbeddingRetriever",
    "HNSWOpenAIEmbeddingRetriever",
    "LlamaIndexRetriever",
    "NoContextRetriever",
    "OTTQARetriever",
    "OpenAIEmbedder",
    "RetrievalResultDataModel",
    "RowSerializationRetriever",
    "StellaEmbeddingRetriever",
]


class NamedRetriever(AbsRetrieverBase):
    """A retriever that stands in the benchmark under a name: `retriever_name`, as `--retriever` takes it."""

    retriever_name: ClassVar[str]

    def __init__(self, expected_corpus_format: str = "nested array", **kwargs: Any) -> None:  # noqa: ARG002
        super().__init__(expected_corpus_format)

    def name(self) -> str:
        """Give the name."""
        return self.retriever_name

    def retrieve_batch(
        self, queries: Mapping[str, Sequence[Any]], dataset_name: str, top_k: int, **kwargs: Any
    ) -> list[RetrievalResultDataModel]:
        """Refuse: it runs inside of `TARGET.run`, by its name."""
        raise NotImplementedError(f"{type(self).__name__} runs inside TARGET.run; alone, use almanaq.find")


class LlamaIndexRetriever(NamedRetriever):
    """A language model writes a title and summary of each table; these are embedded."""

    retriever_name = "llm-summary"


class HNSWOpenAIEmbeddingRetriever(NamedRetriever):
    """OpenAI's embeddings of tables as markdown, in an HNSW graph; `num_rows` of 0 embeds headers alone."""

    retriever_name = "hnsw-openai"

    def __init__(self, num_rows: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.num_rows = num_rows

    def name(self) -> str:
        """Give the name of the retriever with so many rows."""
        known = {None: self.retriever_name, 100: "openai-embedding", 0: "openai-embedding-header"}
        if self.num_rows not in known:
            raise NotImplementedError(f"num_rows={self.num_rows} is not offered: leave it out for all rows, or 0, 100")
        return known[self.num_rows]


class OpenAIEmbedder(HNSWOpenAIEmbeddingRetriever):
    """The same as `HNSWOpenAIEmbeddingRetriever`."""


class StellaEmbeddingRetriever(NamedRetriever):
    """Stella's embeddings of tables as markdown."""

    retriever_name = "stella"


class E5EmbeddingRetriever(NamedRetriever):
    """E5's embeddings of tables as markdown."""

    retriever_name = "e5"


class RowSerializationRetriever(NamedRetriever):
    """Stella's embeddings of rows, each written as "column is value"; a table is as near as its nearest row."""

    retriever_name = "row-serial"


class OTTQARetriever(NamedRetriever):
    """OTT-QA's TF-IDF, or with `encoding="bm25"` its BM25; without titles where `withtitle` is False."""

    retriever_name = "target-tfidf"

    def __init__(self, encoding: str = "tfidf", withtitle: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._name = f"target-{encoding.lower().replace('-', '')}{'' if withtitle else '-notitle'}"

    def name(self) -> str:
        """Give the name."""
        return self._name


class NoContextRetriever(NamedRetriever):
    """Finds nothing: what a generator knows without tables."""

    retriever_name = "none"
