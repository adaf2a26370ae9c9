"""CachedModel: identical requests are sent once, ever; concurrent ones share one call. Failures are not cached."""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from concurrent.futures import Future
from dataclasses import replace
from functools import lru_cache
from weakref import WeakKeyDictionary

from almanaq.errors import ModelCallError
from almanaq.models.budget import record_usage
from almanaq.models.http import quote_json, quote_json_once, write_json
from almanaq.models.protocols import Completion, LanguageModel, Prompt, Usage
from almanaq.models.reply_cache import LEASE_SECONDS, ReplyCache


class CacheQueue:
    """Batches cache reads and writes of one event loop: those of the same moment share a transaction.

    A reply is stored before its caller gets it, so that a killed process loses only calls in flight.

    Args:
        model: the name that replies are stored under.
    """

    def __init__(self, cache: ReplyCache, model: str) -> None:
        self._cache, self._model = cache, model
        self._wanted: list[tuple[bytes, asyncio.Future[str | bool]]] = []
        self._sought: list[tuple[bytes, asyncio.Future[str | None]]] = []
        self._replies: list[tuple[bytes, str, asyncio.Future[None]]] = []

    async def look(self, key: bytes) -> str | bool:
        """Return the result of ReplyCache.look for a request; raises as it does."""
        loop = asyncio.get_running_loop()
        found: asyncio.Future[str | bool] = loop.create_future()
        if not self._wanted:
            loop.call_soon(self._look)
        self._wanted.append((key, found))
        return await found

    async def find(self, key: bytes) -> str | None:
        """Return the result of ReplyCache.find for a request; raises as it does."""
        loop = asyncio.get_running_loop()
        found: asyncio.Future[str | None] = loop.create_future()
        if not self._sought:
            loop.call_soon(self._find)
        self._sought.append((key, found))
        return await found

    async def keep(self, key: bytes, text: str) -> None:
        """Store a reply; return once it is stored."""
        loop = asyncio.get_running_loop()
        stored: asyncio.Future[None] = loop.create_future()
        if not self._replies:
            loop.call_soon(self._keep)
        self._replies.append((key, text, stored))
        await stored

    def _look(self) -> None:
        wanted, self._wanted = self._wanted, []
        try:
            found: list[str | bool] = self._cache.look([key for key, _ in wanted])
        except Exception:
            for key, future in wanted:  # perhaps only one of them is at fault
                self._look_for(key, future)
            return
        for (_, future), each in zip(wanted, found, strict=True):
            if not future.done():
                future.set_result(each)

    def _find(self) -> None:
        sought, self._sought = self._sought, []
        waiting = [(key, future) for key, future in sought if not future.done()]
        try:
            found = self._cache.find([key for key, _ in waiting])
        except Exception as problem:  # the file cannot be read: this concerns all of them
            for _, future in waiting:
                future.set_exception(problem)
            return
        for (_, future), each in zip(waiting, found, strict=True):
            future.set_result(each)

    def _look_for(self, key: bytes, future: asyncio.Future[str | bool]) -> None:
        try:
            found = self._cache.look([key])[0]
        except Exception as problem:  # handed to the call that waits for it
            if not future.done():
                future.set_exception(problem)
        else:
            if not future.done():
                future.set_result(found)

    def _keep(self) -> None:
        replies, self._replies = self._replies, []
        try:
            self._cache.keep([(key, text) for key, text, _ in replies], model=self._model)
        finally:
            for _, _, stored in replies:
                if not stored.done():  # the caller may have been cancelled; the reply is stored anyway
                    stored.set_result(None)


_POLL = 0.02
"""Seconds between two looks at a reply that another process is waiting for."""
_CACHE_HIT, _NOTHING = Usage(cached_calls=1), Usage()


def request_key(model: str, prompt: Prompt) -> bytes:
    """Return the identity of a request: model, prompt version, messages without their random fence, and schema.

    The hashed text equals json.dumps of a list, so that the keys of replies cached by earlier versions stay valid.
    """
    fence, messages = prompt.fence, prompt.messages
    if messages and (not fence or fence not in messages[0].content):
        # Instructions are the same in every request: their hash state is cached.
        first = messages[0]
        digest, more = _start_digest(model, prompt.name, prompt.version, first.role, first.content).copy(), messages[1:]
    else:
        digest, more = hashlib.sha256(_write_head(model, prompt.name, prompt.version).encode("ascii")), messages
    parts = [
        f"[{quote_json(m.role)}, {quote_json(m.content.replace(fence, '') if fence else m.content)}]" for m in more
    ]
    joined = f"{', ' if more and len(more) < len(messages) else ''}{', '.join(parts)}"
    schema = "null" if prompt.schema is None else quote_json_once(write_json(prompt.schema, sort_keys=True))
    # "chances" is the old name of probabilities: cached keys must not change.
    suffix = ', "chances"' if prompt.verdict else ""
    if prompt.stop or prompt.likelihood:
        suffix += f", {json.dumps([prompt.stop, prompt.likelihood])}"
    digest.update(f"{joined}], {schema}, {prompt.max_output_tokens}{suffix}]".encode("ascii"))
    return digest.digest()


@lru_cache(maxsize=64)
def _start_digest(model: str, name: str, version: str, role: str, content: str) -> hashlib._Hash:
    text = f"{_write_head(model, name, version)}[{quote_json(role)}, {quote_json(content)}]"
    return hashlib.sha256(text.encode("ascii"))


def _write_head(model: str, name: str, version: str) -> str:
    return f"[{quote_json(model)}, {quote_json(name)}, {quote_json(version)}, ["


class CachedModel:
    """A language model in front of a cache that threads, event loops and processes share.

    Args:
        identity: distinguishes this model's replies from others', e.g. its name and its server's address.
    """

    def __init__(self, model: LanguageModel, cache: ReplyCache, *, identity: str | None = None) -> None:
        self.name = model.name
        self.bounds_calls = bool(getattr(model, "bounds_calls", False))
        self._model, self.cache = model, cache
        self.identity = identity or str(getattr(model, "identity", model.name))
        self._lock = threading.Lock()
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, CacheQueue] = WeakKeyDictionary()
        self._under_way: dict[bytes, list[Future[Completion | None]]] = {}

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the reply; `usage.cached_calls` is 1 where another call paid for it."""
        completion = await self._complete(request_key(self.identity, prompt), prompt)
        # Physical calls are recorded by MeteredModel, however they end.
        record_usage(
            self.name, _CACHE_HIT if completion.usage.cached_calls else _NOTHING, virtual=1, purpose=prompt.name
        )
        return completion

    def forget(self, prompt: Prompt) -> None:
        """Drop an unusable reply, so that the prompt is sent again next time."""
        self.cache.drop(request_key(self.identity, prompt))

    def cache_only(self) -> CacheOnlyModel:
        """Return a model that only knows the replies in the cache now."""
        return CacheOnlyModel(self.name, self.identity, self._turns_of_loop())

    async def _complete(self, key: bytes, prompt: Prompt) -> Completion:
        while True:
            with self._lock:
                waiters = self._under_way.get(key)
                if waiters is None:
                    self._under_way[key] = []
                else:
                    mine: Future[Completion | None] = Future()
                    waiters.append(mine)
            if waiters is None:
                return await self._lead(key, prompt)
            shared = await asyncio.wrap_future(mine)
            if shared is not None:
                return replace(shared, usage=_CACHE_HIT)

    async def _lead(self, key: bytes, prompt: Prompt) -> Completion:
        completion: Completion | None = None
        try:
            completion = await self._ask(key, prompt)
            return completion
        finally:
            # After a failure or a cancellation the waiters get None, and one of them becomes the next leader: it sends
            # its own request rather than share an error that may not concern it.
            with self._lock:
                waiters = self._under_way.pop(key)
            for waiter in waiters:
                if waiter.set_running_or_notify_cancel():  # False for a cancelled waiter
                    waiter.set_result(completion)

    async def _ask(self, key: bytes, prompt: Prompt) -> Completion:
        turns, waited = self._turns_of_loop(), 0.0
        found = await turns.look(key)
        # Clocks may differ between processes: never wait longer than a lease can last.
        while found is False and waited < LEASE_SECONDS:
            await asyncio.sleep(_POLL)
            waited += _POLL
            found = await turns.look(key)
        if isinstance(found, str):
            return _from_cache_text(found, prompt)
        try:
            completion = await self._model.complete(prompt)
        except BaseException:
            self.cache.release(key)
            raise
        await turns.keep(key, _to_cache_text(completion, prompt))
        return completion

    def _turns_of_loop(self) -> CacheQueue:
        loop = asyncio.get_running_loop()
        turns = self._turns.get(loop)
        if turns is None:
            with self._lock:
                turns = self._turns.setdefault(loop, CacheQueue(self.cache, self.identity))
        return turns


class CacheMiss(ModelCallError):
    """The cache has no reply to a request."""


class CacheOnlyModel:
    """A language model that returns cached replies only; it sends, counts and records nothing."""

    def __init__(self, name: str, identity: str, turns: CacheQueue) -> None:
        self.name, self._identity, self._turns = name, identity, turns

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the cached reply; raises CacheMiss where there is none."""
        found = await self._turns.find(request_key(self._identity, prompt))
        if found is None:
            raise CacheMiss("the reply is not in the cache")
        return _from_cache_text(found, prompt)


def _to_cache_text(completion: Completion, prompt: Prompt) -> str:
    """Return what the cache stores of a reply: its text, and what was requested with it."""
    if prompt.likelihood:
        return json.dumps([completion.text, completion.likelihood])
    return json.dumps([completion.text, completion.probabilities]) if prompt.verdict else completion.text


def _from_cache_text(text: str, prompt: Prompt) -> Completion:
    if prompt.likelihood:
        text, likelihood = json.loads(text)
        return Completion(text, _CACHE_HIT, likelihood=likelihood)
    probabilities = None
    if prompt.verdict:
        text, probabilities = json.loads(text)
    return Completion(text, _CACHE_HIT, probabilities)
