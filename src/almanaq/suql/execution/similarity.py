"""Scores of passages against text constraints: by an embedder, its vectors kept while the process lives."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray


class EmbedderSimilarity:
    """Cosine similarity of an embedder's vectors; each distinct text is embedded once.

    Args:
        embed: gives unit vectors for texts: an embedder's `embed`, or the `vectors` of a store that keeps them on disk.
    """

    def __init__(self, embed: Callable[[Sequence[str]], NDArray[np.float32]], *, remote: bool = False) -> None:
        self.remote = remote
        self._embed = embed
        self._vectors: dict[bytes, NDArray[np.float32]] = {}

    def vector(self, constraint: str) -> NDArray[np.float32]:
        """Give the vector of a text constraint, for a database that compares it with its own."""
        vector: NDArray[np.float32] = self._vectors_of([constraint])[0]
        return vector

    def scores(self, constraint: str, passages: Sequence[str]) -> NDArray[np.float32]:
        """Give one score per passage."""
        # One product is too small to be worth the threads that `@` wakes.
        scores: NDArray[np.float32] = np.einsum("ij,j->i", self._vectors_of(passages), self.vector(constraint))
        return scores

    def _vectors_of(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Give the vectors of texts, each embedded once."""
        keys = [hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in texts]
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._vectors}
        if missing:
            self._vectors.update(zip(missing, self._embed(list(missing.values())), strict=True))
        return np.stack([self._vectors[key] for key in keys])
