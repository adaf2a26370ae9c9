"""Questions and documents: how an embedder that tells them apart is asked, and what each kind of model wants to see."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from almanaq.errors import UsageError
from almanaq.models.protocols import Embedder

Vectors = NDArray[np.float32]


class SymmetricEmbedder:
    """An Embedder for which questions are texts like any other: a subclass has `embed` alone."""

    symmetric = True

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors, shape (len(texts), dimensions)."""
        raise NotImplementedError

    def embed_questions(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of `embed`."""
        return self.embed(texts)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of `embed`."""
        return self.embed(texts)


class _Adapted(SymmetricEmbedder):
    """Somebody's object that has `embed` alone."""

    def __init__(self, embedder: object) -> None:
        self._embedder = embedder
        self.name = str(getattr(embedder, "name", type(embedder).__name__))
        self.remote = bool(getattr(embedder, "remote", False))
        self.cheap = bool(getattr(embedder, "cheap", False))

    def embed(self, texts: Sequence[str]) -> Vectors:
        made: Vectors = self._embedder.embed(texts)  # type: ignore[attr-defined]
        return made


def as_embedder(embedder: object) -> Embedder:
    """Return an object as an Embedder; one that has `embed` alone embeds questions as it does documents.

    Raises:
        UsageError: it has neither `embed` nor the two methods of an Embedder.
    """
    if isinstance(embedder, Embedder):
        return embedder
    if callable(getattr(embedder, "embed", None)):
        return _Adapted(embedder)
    raise UsageError(
        f"{type(embedder).__name__} is no embedder: it needs a name, embed_questions(texts) and embed_documents(texts),"
        " or embed(texts) alone"
    )


@dataclass(frozen=True, slots=True)
class Prefixes:
    """What a model was trained to see before a question and before a document."""

    question: str = ""
    document: str = ""


_SEARCH = "Represent this sentence for searching relevant passages: "
_TASK = "Instruct: Given a question, find the tables and passages that answer it\nQuery: "
_PREFIXES: tuple[tuple[str, Prefixes], ...] = (
    (r"e5-.*instruct|e5-mistral", Prefixes(_TASK)),
    (r"\be5\b", Prefixes("query: ", "passage: ")),
    (r"\bbge-(small|base|large)-en", Prefixes(_SEARCH)),
    (r"\bmxbai-embed-(large|xsmall)|snowflake-arctic-embed(?!.*v2)", Prefixes(_SEARCH)),
    (r"snowflake-arctic-embed.*v2", Prefixes("query: ")),
    (r"\bnomic-embed-text", Prefixes("search_query: ", "search_document: ")),
    (r"\bembedding-?gemma", Prefixes("task: search result | query: ", "title: none | text: ")),
    (r"\bqwen3-embedding", Prefixes(_TASK)),
    (
        r"\bstella_en",
        Prefixes("Instruct: Given a web search query, retrieve relevant passages that answer the query.\nQuery: "),
    ),
)
"""By the model's name, as the publishers' model cards ask for it; the first that fits counts."""


def prefixes_of(model: str) -> Prefixes:
    """Return what a model of this name wants to see before its texts; empty for one that is not known to want any."""
    name = model.casefold()
    return next((prefixes for pattern, prefixes in _PREFIXES if re.search(pattern, name)), Prefixes())


_INPUT_TYPES: tuple[tuple[str, tuple[str, str]], ...] = (
    (r"\bvoyage-", ("query", "document")),
    (r"(^|/)embed-(english|multilingual|v\d)", ("search_query", "search_document")),
    (r"\bnv-embed|\bnvidia/|nv-embedqa|\bnemoretriever", ("query", "passage")),
)


def input_types_of(model: str) -> tuple[str, str] | None:
    """Return the `input_type` of questions and documents that servers of such a model ask for, else None."""
    name = model.casefold()
    return next((types for pattern, types in _INPUT_TYPES if re.search(pattern, name)), None)
