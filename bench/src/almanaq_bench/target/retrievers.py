"""The classes that retrievers derive from, and the retrievers of the published package by their names."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from almanaq.errors import UsageError, suggest
from almanaq_bench.retrievers.paper_retrievers import (
    AbsCustomEmbeddingRetriever,
    AbsRetrieverBase,
    AbsStandardEmbeddingRetriever,
    RetrievalResultDataModel,
)


def check_keywords(kind: type, given: Iterable[str], ignored: Collection[str] = ()) -> None:
    """Check the names of what is left of a class's arguments.

    Args:
        ignored: names that are taken and change nothing.

    Raises:
        UsageError: the class and those it derives from have no argument of that name.
    """
    for name in given:
        if name not in ignored:
            known = [each for each in _arguments(kind) if each not in ignored]
            raise UsageError(f"{kind.__name__} has no argument {name!r}{suggest(name, known)}")


def _arguments(kind: type) -> list[str]:
    """Return the names of the arguments that a class and those it derives from take."""
    signatures = (inspect.signature(base.__init__) for base in kind.__mro__ if "__init__" in vars(base))  # type: ignore[misc]
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    found = (each.name for signature in signatures for each in signature.parameters.values() if each.kind in named)
    return [name for name in dict.fromkeys(found) if name != "self"]


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


_OPENAI_MODEL = "text-embedding-3-small"
_OF_ROWS = {None: "hnsw-openai", 100: "openai-embedding", 0: "openai-embedding-header"}
_ENCODINGS = ("tfidf", "bm25")

OF_THEIR_MACHINERY = frozenset({"out_dir", "embeddings_dir", "batch_size"})
"""Arguments that say where and how the published retrievers keep their files; here they change nothing."""


class NamedRetriever(AbsRetrieverBase):
    """A retriever that stands in the benchmark under a name: `retriever_name`, as `--retriever` takes it.

    Raises:
        UsageError: there is no such argument, or it asks for something that is not offered.
    """

    retriever_name: ClassVar[str]

    def __init__(self, expected_corpus_format: str = "nested array", **kwargs: Any) -> None:
        check_keywords(type(self), kwargs, OF_THEIR_MACHINERY)
        super().__init__(expected_corpus_format)

    def name(self) -> str:
        """Return the name."""
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
    """OpenAI's embeddings of tables as markdown, in an HNSW graph; `num_rows` of 0 embeds headers alone.

    >>> HNSWOpenAIEmbeddingRetriever(num_rows=0).name()
    'openai-embedding-header'
    """

    retriever_name = "hnsw-openai"

    def __init__(
        self, out_dir: str | None = None, embedding_model_id: str = _OPENAI_MODEL,
        expected_corpus_format: str = "nested array", num_rows: int | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        del out_dir
        super().__init__(expected_corpus_format, **kwargs)
        if embedding_model_id != _OPENAI_MODEL:
            raise UsageError(
                f"embedding_model_id={embedding_model_id!r} is not the published one, {_OPENAI_MODEL!r}; for another, "
                f"say TARGET.run(…, embedder='openai:{embedding_model_id}')"
            )
        if num_rows not in _OF_ROWS:
            raise UsageError(f"num_rows={num_rows} is not offered: leave it out for all rows, or say 0 or 100")
        self.num_rows = num_rows

    def name(self) -> str:
        """Return the name of the retriever with so many rows."""
        return _OF_ROWS[self.num_rows]


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
    """OTT-QA's TF-IDF, or with `encoding="bm25"` its BM25; with the tables' titles where `withtitle` is True.

    >>> OTTQARetriever().name(), OTTQARetriever(encoding="bm25", withtitle=True).name()
    ('target-tfidf-notitle', 'target-bm25')
    """

    retriever_name = "target-tfidf"

    def __init__(
        self, out_dir: str | None = None, encoding: str = "tfidf", withtitle: bool = False,
        expected_corpus_format: str = "nested array", **kwargs: Any,
    ) -> None:  # fmt: skip
        del out_dir
        super().__init__(expected_corpus_format, **kwargs)
        if encoding not in _ENCODINGS:
            raise UsageError(f"the encoding {encoding!r} is unknown{suggest(encoding, _ENCODINGS)}")
        self._name = f"target-{encoding}{'' if withtitle else '-notitle'}"

    def name(self) -> str:
        """Return the name."""
        return self._name


class NoContextRetriever(NamedRetriever):
    """Finds nothing: what a generator knows without tables."""

    retriever_name = "none"
