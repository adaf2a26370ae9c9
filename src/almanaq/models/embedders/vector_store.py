"""Vectors of texts, embedded once ever: a store keyed by the embedder's name and the text's hash.

Each vector is stored with a checksum over it and its key: a damaged one is computed again, never returned.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import sqlite3
import threading
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from almanaq.errors import ModelError, SourceError
from almanaq.models.embedders.base import as_embedder
from almanaq.models.private_files import UNUSABLE, make_private
from almanaq.models.protocols import Embedder

Vectors = NDArray[np.float32]
Kind = Literal["question", "document"]

_CHUNK = 512  # texts embedded between two writes: what a killed process loses at most
_VARIABLES = 500  # keys looked up per statement, below SQLite's smallest limit
_BUSY_SECONDS = 60.0  # a writer holds the lock for milliseconds


class VectorStore:
    """Gives vectors of texts and remembers them, on disk when it has a folder, else in memory.

    One SQLite file per embedder: rows are only added, several processes may share it, and a crash loses no
    vector that was written.

    Args:
        folder: where the file lies, made on first use; None keeps the vectors in memory.
        embedder: makes the vectors that are not there yet; its name is the store's key, so it must name the weights.
            One that tells questions from documents has vectors of each.
        part: what texts it is for, where they are kept in a file of their own.
        most: how many vectors are kept; the oldest give way. None: all.
    """

    def __init__(self, folder: Path | None, embedder: Embedder, *, part: str = "", most: int | None = None) -> None:
        self.embedder, self._most = as_embedder(embedder), most
        name = _file_name(embedder.name) + (f"-{part}" if part else "")
        self.file = None if folder is None else folder / f"{name}.sqlite"
        self._memory: dict[bytes, bytes] = {}

    def question_vectors(self, texts: Sequence[str]) -> Vectors:
        """Return the unit vectors of what is searched with. Raises as `vectors` does."""
        return self._vectors(texts, "question")

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """Return the unit vectors of what is searched, shape (len(texts), dimensions); equal texts are embedded once.

        Vectors of an embedder that says it is `cheap` are made anew each time rather than kept.

        Raises:
            SourceError: the store's file cannot be read or written.
            ModelError: the embedder gives another number of vectors, another width, or a value that is no number.
        """
        return self._vectors(texts, "document")

    def _vectors(self, texts: Sequence[str], kind: Kind) -> Vectors:
        if getattr(self.embedder, "cheap", False):
            return _embed(self.embedder, texts, kind)
        keys = self._keys(texts, kind)
        found = self._read(keys)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        # Texts of like length together: an embedder pads those of a batch to the longest.
        for chunk in _chunks(sorted(missing, key=lambda key: len(missing[key])), _CHUNK):
            made = _embed(self.embedder, [missing[key] for key in chunk], kind)
            new = {key: vector.tobytes() for key, vector in zip(chunk, made, strict=True)}
            self._write(new)
            found.update(new)
        return _stack([found[key] for key in keys], self.embedder.name)

    def find_missing(self, texts: Sequence[str]) -> list[str]:
        """Return the texts that would have to be embedded, each once. Raises SourceError as `vectors` does."""
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
            for chunk in _chunks(list(dict.fromkeys(keys)), _VARIABLES):
                marks = ",".join("?" * len(chunk))
                kept = connection.execute(f"SELECT key, vector, sum FROM vectors WHERE key IN ({marks})", chunk)
                # Vectors that an earlier version kept have no sum.
                found.update(
                    {k: v for k, v, checksum in kept if isinstance(v, bytes) and checksum in (None, _checksum(k, v))}
                )
        return found

    def _write(self, new: Mapping[bytes, bytes]) -> None:
        if self.file is None:
            self._memory.update(new)
            while self._most is not None and len(self._memory) > self._most:
                self._memory.pop(next(iter(self._memory)))
            return
        with self._open() as connection, connection:
            # Another process may have embedded the same text meanwhile; what is damaged must give way.
            rows = [(key, vector, _checksum(key, vector)) for key, vector in new.items()]
            connection.executemany("INSERT OR REPLACE INTO vectors (key, vector, sum) VALUES (?, ?, ?)", rows)
            if self._most is not None:
                newest = "(SELECT max(rowid) FROM vectors)"
                connection.execute(f"DELETE FROM vectors WHERE rowid <= {newest} - ?", (self._most,))

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """Connect for one call: cheap (a millisecond), and safe with threads and forks."""
        assert self.file is not None
        try:
            make_private(self.file)
            with closing(sqlite3.connect(self.file, timeout=_BUSY_SECONDS)) as connection:
                connection.execute(
                    "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL, sum INTEGER)"
                )
                if len(connection.execute("PRAGMA table_info(vectors)").fetchall()) == 2:
                    with suppress(sqlite3.OperationalError):  # another process was quicker
                        connection.execute("ALTER TABLE vectors ADD COLUMN sum INTEGER")
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
        raise ModelError(f"embedder {embedder.name!r} gave a vector with values that are no numbers")
    return made


def _stack(rows: Sequence[bytes], name: str) -> Vectors:
    if not rows:
        return np.zeros((0, 0), dtype=np.float32)
    if len({len(row) for row in rows}) > 1:
        raise ModelError(f"embedder {name!r} gives vectors of other widths than the cache holds: rename it or clear it")
    return np.frombuffer(b"".join(rows), dtype=np.float32).reshape(len(rows), -1).copy()


def _file_name(name: str) -> str:
    """Return a file name that people can read and no two embedders share."""
    return f"{re.sub(r'[^A-Za-z0-9._-]+', '-', name)[:60]}-{hashlib.sha256(name.encode()).hexdigest()[:10]}"


def _chunks(items: Sequence[bytes], size: int) -> Iterator[Sequence[bytes]]:
    return (items[start : start + size] for start in range(0, len(items), size))


_TEXTS_PER_BATCH = 256
"""Texts that are embedded between two looks at what else is wanted: a fraction of a second."""


@dataclass(eq=False)
class _PendingTexts:
    """What the calls of one event loop wait for."""

    vectors: dict[str, asyncio.Future[Vectors]] = field(default_factory=dict)
    task: asyncio.Task[None] | None = None


class VectorBatcher:
    """Gives calls the vectors of their texts; what comes up in several calls is embedded once.

    A vector hangs on its text alone (minilm.py), so it is the same whatever calls happen to be under way.
    """

    def __init__(self, store: VectorStore) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _PendingTexts] = WeakKeyDictionary()

    async def get_vectors(self, texts: Sequence[str]) -> Mapping[str, Vectors]:
        """Return the unit vector of each text. Raises as VectorStore.vectors does."""
        loop = asyncio.get_running_loop()
        with self._lock:
            wanted = self._loops.setdefault(loop, _PendingTexts())
        waiting = {
            text: wanted.vectors.get(text) or wanted.vectors.setdefault(text, loop.create_future()) for text in texts
        }
        if wanted.task is None or wanted.task.done():
            wanted.task = loop.create_task(self._embed(wanted))
        await asyncio.wait(waiting.values())
        return {text: vector.result() for text, vector in waiting.items()}

    async def _embed(self, wanted: _PendingTexts) -> None:
        """Embed what is wanted until nothing is."""
        await asyncio.sleep(0)  # the calls that were begun along with the first say what they need
        try:
            while wanted.vectors:
                # Texts of like length together: an embedder pads those of a batch to the longest.
                chunk = sorted(wanted.vectors, key=len)[:_TEXTS_PER_BATCH]
                try:
                    found = await asyncio.to_thread(self._store.vectors, chunk)
                except Exception as problem:
                    for text in chunk:
                        _set_error(wanted.vectors.pop(text), problem)
                    continue
                for text, vector in zip(chunk, found, strict=True):
                    wanted.vectors.pop(text).set_result(vector)
        finally:
            for left in wanted.vectors.values():
                left.cancel()
            wanted.vectors.clear()


def _set_error(waiting: asyncio.Future[Vectors], problem: Exception) -> None:
    waiting.set_exception(problem)
    waiting.exception()  # looked at, so that asyncio does not report one that nobody waits for any more
