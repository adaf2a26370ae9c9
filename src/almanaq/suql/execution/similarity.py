"""Scores of passages against text constraints: by an embedder, its vectors kept while the process lives."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from almanaq.models.protocols import Embedder


class EmbedderSimilarity:
    """Cosine similarity of an embedder's vectors; each distinct text is embedded once."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._vectors: dict[bytes, NDArray[np.float32]] = {}

    def scores(self, constraint: str, passages: Sequence[str]) -> NDArray[np.float32]:
        """Give one score per passage."""
        keys = [hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in passages]
        missing = {key: text for key, text in zip(keys, passages, strict=True) if key not in self._vectors}
        if missing:
            self._vectors.update(zip(missing, self._embedder.embed(list(missing.values())), strict=True))
        question = self._embedder.embed([constraint])[0]
        scores: NDArray[np.float32] = np.stack([self._vectors[key] for key in keys]) @ question
        return scores
