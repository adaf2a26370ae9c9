"""Scores of passages against text constraints: by an embedder, its vectors kept while the process lives."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Embed = Callable[[Sequence[str]], NDArray[np.float32]]

MOST_KEPT = 20_000
"""Vectors that are kept in memory, 30 MB of 384 dimensions; a store on disk keeps the others."""
_MOST_SCORES = 100_000


class EmbedderSimilarity:
    """Cosine similarity of an embedder's vectors; a text is embedded once, and anew when others have pushed it out.

    Args:
        embed: gives unit vectors for passages: of an embedder, or of a store that keeps them on disk.
        embed_questions: gives those of constraints; None: `embed` does.
    """

    def __init__(self, embed: Embed, embed_questions: Embed | None = None, *, remote: bool = False) -> None:
        self.remote = remote
        self._embed, self._embed_questions = embed, embed_questions or embed
        # By the text's hash, the one used last at the end. Two texts of one hash, in 2^64, cost an order of trial.
        self._scores: dict[tuple[int, int], float] = {}
        self._vectors: dict[int, NDArray[np.float32]] = {}
        self._asked: dict[int, NDArray[np.float32]] = {}
        self._lock = threading.Lock()

    def vector(self, constraint: str) -> NDArray[np.float32]:
        """Return the vector of a text constraint, for a database that compares it with its own."""
        key = hash(constraint)
        vector = self._asked.get(key)
        if vector is None:
            if len(self._asked) >= MOST_KEPT:
                self._asked.clear()
            vector = self._asked[key] = self._embed_questions([constraint])[0]
        return vector

    def scores(self, constraint: str, passages: Sequence[str]) -> NDArray[np.float32]:
        """Return one score per passage; those of a constraint that was asked for before are kept."""
        asked = hash(constraint)
        keys = [(asked, hash(passage)) for passage in passages]
        known = self._scores
        missing = [passage for key, passage in zip(keys, passages, strict=True) if key not in known]
        if missing:
            if len(known) > _MOST_SCORES:
                known = self._scores = {}
                missing = list(passages)
            # One product is too small to be worth the threads that `@` wakes.
            found = np.einsum("ij,j->i", self._vectors_of(missing), self.vector(constraint)).tolist()
            known.update(zip(((asked, hash(passage)) for passage in missing), found, strict=True))
        return np.fromiter((known[key] for key in keys), np.float32, len(keys))

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of texts that are compared with one another."""
        return self._vectors_of(texts)

    def _vectors_of(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of texts; those used last are kept."""
        keys = list(map(hash, texts))
        with self._lock:
            vectors = {key: self._vectors[key] for key in keys if key in self._vectors}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in vectors}
        if missing:
            vectors.update(zip(missing, self._embed(list(missing.values())), strict=True))
        self._keep(vectors)
        return np.stack([vectors[key] for key in keys])

    def _keep(self, used: dict[int, NDArray[np.float32]]) -> None:
        with self._lock:
            for key, vector in used.items():
                self._vectors.pop(key, None)
                self._vectors[key] = vector.copy() if vector.base is not None else vector
            while len(self._vectors) > MOST_KEPT:
                del self._vectors[next(iter(self._vectors))]
