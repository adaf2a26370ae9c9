"""LexicalEmbedder: unit vectors of hashed words and letter groups, without any model."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from math import log

import numpy as np
from numpy.typing import NDArray

from almanaq.models.embedding import SymmetricEmbedder
from almanaq.models.vectors import normalised
from almanaq.text.stopwords import STOPWORDS
from almanaq.text.words import stem, words

_LETTERS_WEIGHT = 0.25


class LexicalEmbedder(SymmetricEmbedder):
    """An Embedder whose vectors are alike when texts share stems, and a little when they share groups of letters."""

    name = "lexical"

    def __init__(self, dimensions: int = 1024) -> None:
        self._dimensions = dimensions

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors, shape (len(texts), dimensions); a text without words gets a zero vector."""
        vectors = np.zeros((len(texts), self._dimensions), np.float32)
        for row, text in zip(vectors, texts, strict=True):
            counts = Counter(word for word in words(text) if word not in STOPWORDS)
            if counts:
                places, weights = zip(*(_features(word, self._dimensions) for word in counts), strict=True)
                scaled = [
                    w if n == 1 else w * np.float32(1 + log(n)) for w, n in zip(weights, counts.values(), strict=True)
                ]
                np.add.at(row, np.concatenate(places), np.concatenate(scaled))
        return normalised(vectors)


@lru_cache(maxsize=65_536)
def _features(word: str, dimensions: int) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """Return the places and signed weights of a word: its stem, and its groups of four letters."""
    padded = f"<{word}>"
    names = [stem(word), *(padded[i : i + 4] for i in range(len(padded) - 3))]
    weights = [1.0] + [_LETTERS_WEIGHT] * (len(names) - 1)
    # The hash is the same in every process, as Python's own is not.
    hashes = [zlib.crc32(name.encode("utf-8", "surrogatepass")) for name in names]
    places = np.array([value % dimensions for value in hashes], np.intp)
    signed = [w if value & 1 << 31 else -w for value, w in zip(hashes, weights, strict=True)]
    return places, np.array(signed, np.float32)
