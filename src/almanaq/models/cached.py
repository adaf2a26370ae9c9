"""CachedModel: identical requests are sent once, ever; concurrent ones share one call. Failures are not cached.

ReplyCache is an SQLite file of replies by request key, shared by processes, with leases for calls in flight. Each reply
is stored with a checksum over it and its key: a damaged one is asked for again, never returned. The file is readable by
its owner alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import os
import sqlite3
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Generic, TypeVar

from almanaq.errors import ModelCallError, SourceError
from almanaq.event_loops import PerLoop
from almanaq.models.budget import record_usage
from almanaq.models.private_files import UNUSABLE, add_column, find_rows, is_process_alive, open_sqlite, process_mark
from almanaq.models.prompts import write_schema
from almanaq.models.protocols import NO_USAGE, Completion, LanguageModel, Prompt, Usage

VERSION = 1
LEASE_SECONDS = 300.0
_SCHEMA = """
CREATE TABLE IF NOT EXISTS reply (
  key BLOB PRIMARY KEY, text TEXT NOT NULL, model TEXT NOT NULL, made REAL NOT NULL, sum BLOB) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS lease (
  key BLOB PRIMARY KEY, owner TEXT NOT NULL, pid INTEGER NOT NULL, host TEXT NOT NULL, until REAL NOT NULL,
  mark TEXT NOT NULL DEFAULT '') WITHOUT ROWID;
"""
_LEASE = """
INSERT INTO lease (key, owner, pid, host, until, mark) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE SET owner = excluded.owner, pid = excluded.pid, host = excluded.host,
  until = excluded.until, mark = excluded.mark
WHERE owner = excluded.owner OR NOT until BETWEEN ? AND excluded.until OR
  (host = excluded.host AND NOT is_alive(pid, mark))
"""
"""Takes a lease where nobody has it, or who has it has ended; one that ends later than possible is of another clock."""
_own_mark = lru_cache(maxsize=1)(process_mark)
_log = logging.getLogger("almanaq")


@dataclass(frozen=True, slots=True)
class CacheStats:
    """The contents of a cache file; `bytes` is its size on disk."""

    file: str
    replies: int
    by_model: dict[str, int]
    bytes: int


class ReplyCache:
    """Replies by request key; `file` None keeps them in memory."""

    def __init__(self, file: Path | None = None) -> None:
        self.file = file
        self._owner, self._host = uuid.uuid4().hex, os.uname().nodename if hasattr(os, "uname") else ""
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._unwritten: dict[bytes, str] = {}

    def get(self, key: bytes) -> str | None:
        """Return the reply to a request, None where there is none or it is damaged."""
        return self.find([key])[0]

    def find(self, keys: Sequence[bytes]) -> list[str | None]:
        """Return the replies to several requests, as `get` does, without reserving any."""
        with self._lock:
            found = self._find_all(self._open(), keys)
        return [found.get(key) for key in keys]

    def _find_all(self, connection: sqlite3.Connection, keys: Sequence[bytes]) -> dict[bytes, str]:
        found = {key: self._unwritten[key] for key in keys if key in self._unwritten} if self._unwritten else {}
        try:
            for key, text, sum_ in find_rows(connection, "SELECT key, text, sum FROM reply", keys):
                # Replies of earlier versions have no checksum.
                if isinstance(text, str) and (sum_ is None or sum_ == _checksum(key, text)):
                    found.setdefault(key, text)
        except sqlite3.OperationalError:
            pass  # locked or unreadable for the moment: a cache miss
        except UNUSABLE as problem:
            raise _unusable_error(self.file, problem) from problem
        return found

    def look(self, keys: Sequence[bytes]) -> list[str | bool]:
        """Find the replies to several requests, and reserve the missing ones, in one transaction.

        Returns for each request its reply; True where this process has reserved it; False while another live process
        has it in flight. Raises SourceError where the file is damaged.
        """
        with self._lock:
            connection = self._open()
            cached = self._find_all(connection, keys)
            found: list[str | bool] = [cached.get(key, True) for key in keys]
            missing = [number for number, text in enumerate(found) if text is True]
            if missing and self.file is not None:
                # A lease only prevents duplicate calls: where it cannot be written, the call is made anyway.
                with contextlib.suppress(*UNUSABLE), connection:
                    connection.execute("BEGIN IMMEDIATE")
                    reserved = self._try_leases(connection, [keys[number] for number in missing])
                    for number, each in zip(missing, reserved, strict=True):
                        found[number] = each
        return found

    def _try_leases(self, connection: sqlite3.Connection, keys: Sequence[bytes]) -> list[str | bool]:
        # Another process may have stored a reply between the look-up and the lease.
        cached = self._find_all(connection, keys)
        now = time.time()
        lease = (self._owner, os.getpid(), self._host, now + LEASE_SECONDS, _own_mark(os.getpid()), now)
        return [
            cached[key] if key in cached else connection.execute(_LEASE, (key, *lease)).rowcount == 1 for key in keys
        ]

    def keep(self, replies: Sequence[tuple[bytes, str]], *, model: str = "") -> None:
        """Store replies and end their leases, in one transaction.

        Replies that cannot be written stay in memory, with a warning: they are paid for, and a full disk or a damaged
        file must not lose them.
        """
        now = time.time()
        rows = [(key, text, model, now, _checksum(key, text)) for key, text in replies]
        try:
            with self._lock, self._open() as connection:
                connection.executemany(
                    "INSERT OR REPLACE INTO reply (key, text, model, made, sum) VALUES (?, ?, ?, ?, ?)", rows
                )
                connection.executemany("DELETE FROM lease WHERE key = ?", [(key,) for key, _ in replies])
        except UNUSABLE as problem:
            if len(replies) > 1:  # perhaps only one of them is at fault
                for reply in replies:
                    self.keep([reply], model=model)
                return
            with self._lock:
                if not self._unwritten:
                    _log.warning(
                        "replies cannot be kept in %s (%s): they will be asked again. Set ALMANAQ_CACHE to a file on"
                        " another disk, make room, or delete the file where it is damaged",
                        self.file,
                        problem,
                    )
                self._unwritten.update(replies)

    def drop(self, key: bytes) -> None:
        """Delete one reply."""
        with self._lock:
            self._unwritten.pop(key, None)
            self._delete("reply WHERE key = ?", key)

    def release(self, key: bytes) -> None:
        """End the lease of a request that failed; one that cannot be ended ends by itself."""
        if self.file is not None:
            with self._lock:
                self._delete("lease WHERE key = ? AND owner = ?", key, self._owner)

    def _delete(self, rows: str, *values: object) -> None:
        try:
            with self._open() as connection:
                connection.execute(f"DELETE FROM {rows}", values)
        except UNUSABLE as problem:
            _log.debug("a row of %s could not be deleted: %s", self.file, problem)

    def stats(self) -> CacheStats:
        """Count the replies, in total and by model. Raises SourceError where the file is damaged."""
        with self._lock, self._raise_unusable() as connection:
            rows = connection.execute("SELECT model, count(*) FROM reply GROUP BY model ORDER BY model").fetchall()
        size = self.file.stat().st_size if self.file else 0
        return CacheStats(str(self.file or "memory"), sum(n for _, n in rows), {str(name): n for name, n in rows}, size)

    def clear(self) -> int:
        """Delete every reply; return how many there were. Raises SourceError where the file is damaged."""
        with self._lock, self._raise_unusable() as connection:
            with connection:
                count = int(connection.execute("DELETE FROM reply").rowcount)
                connection.execute("DELETE FROM lease")
            connection.execute("VACUUM")
        return count

    @contextmanager
    def _raise_unusable(self) -> Iterator[sqlite3.Connection]:
        try:
            yield self._open()
        except UNUSABLE as problem:
            raise _unusable_error(self.file, problem) from problem

    def close(self) -> None:
        """Close the file; it is reopened when needed."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def __del__(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            try:
                self._connection = open_sqlite(self.file, _SCHEMA, VERSION, _add_columns)
                # No method of this cache: SQLite would keep it, and the file open, until it is closed.
                self._connection.create_function("is_alive", 2, is_process_alive)
                # Keys are hashes, so new rows are spread over all pages: checkpoint rarely, when each page has many
                # new rows, instead of after every hundred replies.
                self._connection.execute("PRAGMA wal_autocheckpoint = 8000")
                # In kilobytes: SQLite's own cache grows with the file up to this, beside the system's page cache,
                # and the memory of a server must stay bounded.
                self._connection.execute("PRAGMA cache_size = -8000")
            except (OSError, *UNUSABLE) as problem:
                raise _unusable_error(self.file, problem) from problem
        return self._connection


def _add_columns(connection: sqlite3.Connection) -> None:
    add_column(connection, "reply", "sum BLOB")  # empty for old rows
    add_column(connection, "lease", "mark TEXT NOT NULL DEFAULT ''")


def _checksum(key: bytes, text: str) -> bytes:
    return hashlib.blake2b(key + text.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def _unusable_error(file: Path | None, problem: Exception) -> SourceError:
    return SourceError(
        f"the reply cache {file} cannot be used ({problem}): delete it, set ALMANAQ_CACHE to another file,"
        " or turn the cache off"
    )


T = TypeVar("T")
R = TypeVar("R")


class _Moment(Generic[T, R]):
    def __init__(self, work: Callable[[Sequence[T]], Sequence[R]]) -> None:
        self._work = work
        self._wanted: list[tuple[T, asyncio.Future[R]]] = []

    def add(self, item: T) -> asyncio.Future[R]:
        """Return the future result for an item; it raises what the work for it alone raises."""
        loop = asyncio.get_running_loop()
        result: asyncio.Future[R] = loop.create_future()
        if not self._wanted:
            loop.call_soon(self._run)
        self._wanted.append((item, result))
        return result

    def _run(self) -> None:
        wanted, self._wanted = self._wanted, []
        self._settle(wanted)

    def _settle(self, wanted: Sequence[tuple[T, asyncio.Future[R]]]) -> None:
        try:
            results = self._work([item for item, _ in wanted])
        except Exception as problem:
            if len(wanted) > 1:  # perhaps only one of them is at fault
                for one in wanted:
                    self._settle([one])
            elif not wanted[0][1].done():
                wanted[0][1].set_exception(problem)
            return
        for (_, future), result in zip(wanted, results, strict=True):
            if not future.done():  # who asked may have been cancelled
                future.set_result(result)


class CacheQueue:
    """Batches cache reads and writes of one event loop; a reply is stored before its caller gets it."""

    def __init__(self, cache: ReplyCache, model: str) -> None:
        def keep(replies: Sequence[tuple[bytes, str]]) -> Sequence[None]:
            cache.keep(replies, model=model)
            return [None] * len(replies)

        self._kept = _Moment(keep)
        # They return the future result for one request, and raise as the cache does.
        self.look, self.find = _Moment(cache.look).add, _Moment(cache.find).add

    def keep(self, key: bytes, text: str) -> asyncio.Future[None]:
        """Store a reply; the future ends once it is stored, which a cancelled caller does not prevent."""
        return self._kept.add((key, text))


_POLL = 0.02
"""Seconds between two looks at a reply that another process is waiting for."""
_CACHE_HIT = Usage(cached_calls=1)


def request_key(model: str, prompt: Prompt) -> bytes:
    """Return the identity of a request: model, prompt version, messages without their random fence, and schema.

    Its form never changes, so that replies cached by earlier versions are found.
    """
    fence = prompt.fence
    messages = [(m.role, m.content.replace(fence, "") if fence else m.content) for m in prompt.messages]
    schema = None if prompt.schema is None else prompt.schema_text or write_schema(prompt.schema)
    identity: list[object] = [model, prompt.name, prompt.version, messages, schema, prompt.max_output_tokens]
    if prompt.verdict:
        identity.append("chances")  # the old name of probabilities
    if prompt.stop or prompt.likelihood:
        identity.append([prompt.stop, prompt.likelihood])
    return hashlib.sha256(json.dumps(identity).encode("ascii")).digest()


class CachedModel:
    """A language model in front of a cache that threads, event loops and processes share."""

    def __init__(self, model: LanguageModel, cache: ReplyCache, *, identity: str | None = None) -> None:
        self.name = model.name
        self.bounds_calls = bool(getattr(model, "bounds_calls", False))
        self._model, self.cache = model, cache
        self.identity = identity or str(getattr(model, "identity", model.name))
        self._lock = threading.Lock()
        self._queues = PerLoop(lambda: CacheQueue(cache, self.identity))
        self._under_way: dict[bytes, list[Future[Completion | None]]] = {}

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the reply; `usage.cached_calls` is 1 where another call paid for it."""
        key, completion = request_key(self.identity, prompt), None
        while completion is None:
            if (waiter := self._wait_for_other(key)) is None:
                completion = await self._lead(key, prompt)
            elif (shared := await asyncio.wrap_future(waiter)) is not None:
                completion = replace(shared, usage=_CACHE_HIT)
        # Physical calls are recorded by MeteredModel, however they end.
        hit = _CACHE_HIT if completion.usage.cached_calls else NO_USAGE
        record_usage(self.name, hit, virtual=1, purpose=prompt.name)
        return completion

    def forget(self, prompt: Prompt) -> None:
        """Drop an unusable reply, so that the prompt is sent again next time."""
        self.cache.drop(request_key(self.identity, prompt))

    def cache_only(self) -> CacheOnlyModel:
        """Return a model that only knows the replies in the cache now."""
        return CacheOnlyModel(self.name, self.identity, self._queues)

    def _wait_for_other(self, key: bytes) -> Future[Completion | None] | None:
        """Return the future reply to the same request under way; None where there is none, and this one leads."""
        with self._lock:
            if key not in self._under_way:
                self._under_way[key] = []
                return None
            waiter: Future[Completion | None] = Future()
            self._under_way[key].append(waiter)
            return waiter

    async def _lead(self, key: bytes, prompt: Prompt) -> Completion:
        completion: Completion | None = None
        try:
            queue, waited = self._queues.get(), 0.0
            found = await queue.look(key)
            # Clocks may differ between processes: never wait longer than a lease can last.
            while found is False and waited < LEASE_SECONDS:
                await asyncio.sleep(_POLL)
                waited += _POLL
                found = await queue.look(key)
            if isinstance(found, str):
                completion = _from_cache_text(found, prompt)
            else:
                completion = await self._ask(key, prompt, queue)
            return completion
        finally:
            # After a failure or a cancellation the waiters get None, and one of them becomes the next leader: it sends
            # its own request rather than share an error that may not concern it.
            with self._lock:
                waiters = self._under_way.pop(key)
            for waiter in waiters:
                if waiter.set_running_or_notify_cancel():  # False for a cancelled waiter
                    waiter.set_result(completion)

    async def _ask(self, key: bytes, prompt: Prompt, queue: CacheQueue) -> Completion:
        try:
            completion = await self._model.complete(prompt)
        except BaseException:
            self.cache.release(key)
            raise
        beside = completion.likelihood if prompt.likelihood else completion.probabilities
        plain = not (prompt.likelihood or prompt.verdict)
        await queue.keep(key, completion.text if plain else json.dumps([completion.text, beside]))
        return completion


class CacheMiss(ModelCallError):
    """The cache has no reply to a request."""


class CacheOnlyModel:
    """A language model that returns cached replies only; it sends, counts and records nothing."""

    def __init__(self, name: str, identity: str, queues: PerLoop[CacheQueue]) -> None:
        self.name, self._identity, self._queues = name, identity, queues

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the cached reply; raises CacheMiss where there is none."""
        found = await self._queues.get().find(request_key(self._identity, prompt))
        if found is None:
            raise CacheMiss("the reply is not in the cache")
        return _from_cache_text(found, prompt)


def _from_cache_text(text: str, prompt: Prompt) -> Completion:
    if not (prompt.likelihood or prompt.verdict):
        return Completion(text, _CACHE_HIT)
    text, beside = json.loads(text)
    return Completion(text, _CACHE_HIT, **{"likelihood" if prompt.likelihood else "probabilities": beside})
