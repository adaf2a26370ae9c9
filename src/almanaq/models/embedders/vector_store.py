"""Vectors of texts, embedded once ever: a store keyed by the embedder's name and the text's hash.

Each vector is stored with a checksum over it and its key: a damaged one is computed again, never returned.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from almanaq.errors import ModelError, SourceError
from almanaq.models.embedders.base import as_embedder
from almanaq.models.private_files import UNUSABLE, add_column, find_rows, make_private
from almanaq.models.protocols import Embedder

Vectors = NDArray[np.float32]
Kind = Literal["question", "document"]

_CHUNK = 512  # texts embedded between two writes: the most that a killed process loses
_BUSY_SECONDS = 60.0  # a writer holds the lock for milliseconds


class VectorStore:
    """Embeds texts and remembers the vectors: one SQLite file per embedder, or memory.

    Rows are only added, processes may share the file, and a crash loses no written vector.

    Args:
        embedder: its name is the store's key, so it must identify the weights.
    """

    def __init__(self, folder: Path | None, embedder: Embedder) -> None:
        self.embedder = as_embedder(embedder)
        # Readable, and unique to an embedder.
        readable = re.sub(r"[^A-Za-z0-9._-]+", "-", embedder.name)[:60]
        name = f"{readable}-{hashlib.sha256(embedder.name.encode()).hexdigest()[:10]}"
        self.file = None if folder is None else folder / f"{name}.sqlite"
        self._memory: dict[bytes, bytes] = {}

    def question_vectors(self, texts: Sequence[str]) -> Vectors:
        """Return the unit vectors of questions. Raises as `vectors` does."""
        return self.vectors(texts, "question")

    def vectors(self, texts: Sequence[str], kind: Kind = "document") -> Vectors:
        """Return the unit vectors of documents, shape (len(texts), dimensions); equal texts are embedded once.

        Those of a `cheap` embedder are not stored. Raises SourceError for the file, ModelError for the embedder.
        """
        if getattr(self.embedder, "cheap", False):
            return _embed(self.embedder, texts, kind)
        keys = self._keys(texts, kind)
        found = self._read(keys)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        # Sorted by length, as an embedder pads the texts of a batch to the longest.
        waiting = sorted(missing, key=lambda key: len(missing[key]))
        for chunk in (waiting[start : start + _CHUNK] for start in range(0, len(waiting), _CHUNK)):
            made = _embed(self.embedder, [missing[key] for key in chunk], kind)
            new = {key: vector.tobytes() for key, vector in zip(chunk, made, strict=True)}
            self._write(new)
            found.update(new)
        rows, name = [found[key] for key in keys], self.embedder.name
        if len({len(row) for row in rows}) > 1:
            raise ModelError(
                f"embedder {name!r} gives vectors of other widths than the cache holds: rename it or clear it"
            )
        return np.frombuffer(b"".join(rows), np.float32).reshape(len(rows), -1 if rows else 0).copy()

    def find_missing(self, texts: Sequence[str]) -> list[str]:
        """Return the texts without a stored vector, each once. Raises SourceError as `vectors` does."""
        keys = self._keys(texts, "document")
        found = self._read(keys)
        return list({key: text for key, text in zip(keys, texts, strict=True) if key not in found}.values())

    def _keys(self, texts: Sequence[str], kind: Kind) -> list[bytes]:
        prefix = "" if getattr(self.embedder, "symmetric", False) else kind + "\0"
        return [hashlib.sha256((prefix + text).encode("utf-8", "surrogatepass")).digest() for text in texts]

    def _read(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        if self.file is None:
            return {key: self._memory[key] for key in keys if key in self._memory}
        found: dict[bytes, bytes] = {}
        with self._open() as connection:
            for key, vector, sum_ in find_rows(connection, "SELECT key, vector, sum FROM vectors", list(set(keys))):
                # Vectors of earlier versions have no checksum.
                if isinstance(vector, bytes) and sum_ in (None, _checksum(key, vector)):
                    found[key] = vector
        return found

    def _write(self, new: Mapping[bytes, bytes]) -> None:
        if self.file is None:
            self._memory.update(new)
            return
        with self._open() as connection, connection:
            # REPLACE: another process may have embedded the same text meanwhile, and damaged vectors are overwritten.
            rows = [(key, vector, _checksum(key, vector)) for key, vector in new.items()]
            connection.executemany("INSERT OR REPLACE INTO vectors (key, vector, sum) VALUES (?, ?, ?)", rows)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """Connect for one call: this takes a millisecond, and is safe with threads and forks."""
        assert self.file is not None
        try:
            make_private(self.file)
            with closing(sqlite3.connect(self.file, timeout=_BUSY_SECONDS)) as connection:
                connection.execute(
                    "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL, sum INTEGER)"
                )
                add_column(connection, "vectors", "sum INTEGER")
                yield connection
        except (*UNUSABLE, OSError) as error:
            raise SourceError(
                f"cannot use the vector cache {self.file}: {error}; delete it, "
                "or name another folder in ALMANAQ_CACHE_DIR"
            ) from error


def _checksum(key: bytes, vector: bytes) -> int:
    return zlib.crc32(vector, zlib.crc32(key))


def _embed(embedder: Embedder, texts: Sequence[str], kind: Kind) -> Vectors:
    embed = embedder.embed_questions if kind == "question" else embedder.embed_documents
    made = np.ascontiguousarray(embed(texts), dtype=np.float32)
    if made.ndim != 2 or len(made) != len(texts):
        raise ModelError(f"embedder {embedder.name!r} gave an array of shape {made.shape} for {len(texts)} texts")
    if not np.isfinite(made).all():
        raise ModelError(f"embedder {embedder.name!r} gave a vector with values that are not finite")
    return made
