"""LexicalEmbedder: unit vectors of hashed words and letter groups, without any model."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from almanaq.models.vectors import normalised
from almanaq.models.words import STOPWORDS, stem, words

_LETTERS_WEIGHT = 0.25


class LexicalEmbedder:
    """An Embedder whose vectors are alike when texts share stems, and a little when they share groups of letters."""

    name = "lexical"

    def __init__(self, dimensions: int = 1024) -> None:
        self._dimensions = dimensions

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Give unit vectors, shape (len(texts), dimensions); a text without words gets a zero vector."""
        vectors = np.zeros((len(texts), self._dimensions), np.float32)
        for row, text in zip(vectors, texts, strict=True):
            for word, count in Counter(words(text)).items():
                if word not in STOPWORDS:
                    places, weights = _features(word, self._dimensions)
                    np.add.at(row, places, weights * np.float32(1 + np.log(count)))
        return normalised(vectors)


@lru_cache(maxsize=65_536)
def _features(word: str, dimensions: int) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """Give the places and signed weights of a word: its stem, and its groups of four letters."""
    padded = f"<{word}>"
    names = [stem(word), *(padded[i : i + 4] for i in range(len(padded) - 3))]
    weights = [1.0] + [_LETTERS_WEIGHT] * (len(names) - 1)
    # The hash is the same in every process, as Python's own is not.
    hashes = [zlib.crc32(name.encode("utf-8", "surrogatepass")) for name in names]
    signs = [1.0 if value & 1 << 31 else -1.0 for value in hashes]
    places = np.array([value % dimensions for value in hashes], np.intp)
    return places, np.array([s * w for s, w in zip(signs, weights, strict=True)], np.float32)
