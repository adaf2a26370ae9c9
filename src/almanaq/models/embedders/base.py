"""What embedders share: questions and documents, prefixes by model name, unit vectors; and the lexical embedder."""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from almanaq.errors import UsageError
from almanaq.models.protocols import Embedder
from almanaq.text.words import STOPWORDS, stem, words


def normalize(vectors: NDArray[Any]) -> NDArray[np.float32]:
    """Return the rows of a matrix at unit length, in float32; rows of zeros are unchanged."""
    single = np.asarray(vectors, np.float32)
    lengths = np.linalg.norm(single, axis=1, keepdims=True)
    return (single / np.where(lengths > 0, lengths, 1)).astype(np.float32, copy=False)


Vectors = NDArray[np.float32]


class SymmetricEmbedder:
    """An Embedder that treats questions like documents: a subclass only defines `embed`."""

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


class _EmbedderAdapter(SymmetricEmbedder):
    def __init__(self, embedder: object) -> None:
        self._embedder = embedder
        self.name = str(getattr(embedder, "name", type(embedder).__name__))
        self.remote = bool(getattr(embedder, "remote", False))
        self.cheap = bool(getattr(embedder, "cheap", False))

    def embed(self, texts: Sequence[str]) -> Vectors:
        made: Vectors = self._embedder.embed(texts)  # type: ignore[attr-defined]
        return made


def as_embedder(embedder: object) -> Embedder:
    """Return an object as an Embedder; one with only `embed` treats questions like documents. Raises UsageError."""
    if isinstance(embedder, Embedder):
        return embedder
    if callable(getattr(embedder, "embed", None)):
        return _EmbedderAdapter(embedder)
    raise UsageError(
        f"{type(embedder).__name__} is not an embedder: it needs a name, embed_questions(texts) and"
        " embed_documents(texts), or embed(texts) alone"
    )


@dataclass(frozen=True, slots=True)
class Prefixes:
    """The prefixes of questions and documents that a model was trained with."""

    question: str = ""
    document: str = ""


_SEARCH = "Represent this sentence for searching relevant passages: "
_TASK = "Instruct: Given a question, find the tables and passages that answer it\nQuery: "
_PREFIXES: tuple[tuple[str, Prefixes], ...] = (
    (r"e5-.*instruct|e5-mistral", Prefixes(_TASK)),
    (r"\be5\b", Prefixes("query: ", "passage: ")),
    (r"\bbge-(small|base|large)-en", Prefixes(_SEARCH)),
    (r"\bmxbai-embed-(large|xsmall)|snowflake-arctic-embed(?!.*v2)|\bmdbr-leaf-ir", Prefixes(_SEARCH)),
    (r"snowflake-arctic-embed.*v2", Prefixes("query: ")),
    (r"\bnomic-embed-text", Prefixes("search_query: ", "search_document: ")),
    (r"\bembedding-?gemma", Prefixes("task: search result | query: ", "title: none | text: ")),
    (r"\bqwen3-embedding", Prefixes(_TASK)),
    (
        r"\bstella_en",
        Prefixes("Instruct: Given a web search query, retrieve relevant passages that answer the query.\nQuery: "),
    ),
)
"""By pattern of the model's name, from the publishers' model cards; the first match counts."""


def find_prefixes(model: str) -> Prefixes:
    """Return the prefixes of a model; empty for an unknown one."""
    name = model.casefold()
    return next((prefixes for pattern, prefixes in _PREFIXES if re.search(pattern, name)), Prefixes())


_INPUT_TYPES: tuple[tuple[str, tuple[str, str]], ...] = (
    (r"\bvoyage-", ("query", "document")),
    (r"(^|/)embed-(english|multilingual|v\d)", ("search_query", "search_document")),
    (r"\bnv-embed|\bnvidia/|nv-embedqa|\bnemoretriever", ("query", "passage")),
)


def find_input_types(model: str) -> tuple[str, str] | None:
    """Return the `input_type` of questions and documents that servers of a model expect, else None."""
    name = model.casefold()
    return next((types for pattern, types in _INPUT_TYPES if re.search(pattern, name)), None)


_LETTERS_WEIGHT = 0.25


class LexicalEmbedder(SymmetricEmbedder):
    """An Embedder without a model: hashed stems, and with less weight groups of letters."""

    name = "lexical"

    def __init__(self, dimensions: int = 1024) -> None:
        self._dimensions = dimensions

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors, shape (len(texts), dimensions); a text without words gets a zero vector."""
        vectors = np.zeros((len(texts), self._dimensions), np.float32)
        for row, text in zip(vectors, texts, strict=True):
            counts = Counter(word for word in words(text) if word not in STOPWORDS)
            if counts:
                places, weights = zip(*(_hash_word(word, self._dimensions) for word in counts), strict=True)
                scaled = [
                    w if n == 1 else w * np.float32(1 + log(n)) for w, n in zip(weights, counts.values(), strict=True)
                ]
                np.add.at(row, np.concatenate(places), np.concatenate(scaled))
        return normalize(vectors)


@lru_cache(maxsize=65_536)
def _hash_word(word: str, dimensions: int) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    padded = f"<{word}>"
    names = [stem(word), *(padded[i : i + 4] for i in range(len(padded) - 3))]
    weights = [1.0] + [_LETTERS_WEIGHT] * (len(names) - 1)
    # Unlike Python's hash, crc32 is the same in every process.
    hashes = [zlib.crc32(name.encode("utf-8", "surrogatepass")) for name in names]
    places = np.array([value % dimensions for value in hashes], np.intp)
    signed = [w if value & 1 << 31 else -w for value, w in zip(hashes, weights, strict=True)]
    return places, np.array(signed, np.float32)
