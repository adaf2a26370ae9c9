"""CachedModel: identical requests are sent once, ever; concurrent ones share one call. Failures are not cached."""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Generic, TypeVar

from almanaq.errors import ModelCallError
from almanaq.event_loops import PerLoop
from almanaq.models.budget import record_usage
from almanaq.models.protocols import Completion, LanguageModel, Prompt, Usage
from almanaq.models.reply_cache import LEASE_SECONDS, ReplyCache

T = TypeVar("T")
R = TypeVar("R")


class _Moment(Generic[T, R]):
    def __init__(self, work: Callable[[Sequence[T]], Sequence[R]]) -> None:
        self._work = work
        self._wanted: list[tuple[T, asyncio.Future[R]]] = []

    async def add(self, item: T) -> R:
        """Return the result for an item; raises what the work for it alone raises."""
        loop = asyncio.get_running_loop()
        result: asyncio.Future[R] = loop.create_future()
        if not self._wanted:
            loop.call_soon(self._run)
        self._wanted.append((item, result))
        return await result

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

        self._looks, self._finds, self._kept = _Moment(cache.look), _Moment(cache.find), _Moment(keep)

    async def look(self, key: bytes) -> str | bool:
        """Return the result of ReplyCache.look for a request; raises as it does."""
        return await self._looks.add(key)

    async def find(self, key: bytes) -> str | None:
        """Return the result of ReplyCache.find for a request; raises as it does."""
        return await self._finds.add(key)

    async def keep(self, key: bytes, text: str) -> None:
        """Store a reply; return once it is stored, which a cancelled caller does not prevent."""
        await self._kept.add((key, text))


_POLL = 0.02
"""Seconds between two looks at a reply that another process is waiting for."""
_CACHE_HIT, _NOTHING = Usage(cached_calls=1), Usage()


def request_key(model: str, prompt: Prompt) -> bytes:
    """Return the identity of a request: model, prompt version, messages without their random fence, and schema.

    Its form never changes, so that replies cached by earlier versions are found.
    """
    fence = prompt.fence
    messages = [(m.role, m.content.replace(fence, "") if fence else m.content) for m in prompt.messages]
    schema = None if prompt.schema is None else json.dumps(prompt.schema, sort_keys=True)
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
        return CacheOnlyModel(self.name, self.identity, self._queues)

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
        turns, waited = await self._queues.get(), 0.0
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
        beside = completion.likelihood if prompt.likelihood else completion.probabilities
        plain = not (prompt.likelihood or prompt.verdict)
        await turns.keep(key, completion.text if plain else json.dumps([completion.text, beside]))
        return completion


class CacheMiss(ModelCallError):
    """The cache has no reply to a request."""


class CacheOnlyModel:
    """A language model that returns cached replies only; it sends, counts and records nothing."""

    def __init__(self, name: str, identity: str, queues: PerLoop[CacheQueue]) -> None:
        self.name, self._identity, self._queues = name, identity, queues

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the cached reply; raises CacheMiss where there is none."""
        found = await (await self._queues.get()).find(request_key(self._identity, prompt))
        if found is None:
            raise CacheMiss("the reply is not in the cache")
        return _from_cache_text(found, prompt)


def _from_cache_text(text: str, prompt: Prompt) -> Completion:
    if not (prompt.likelihood or prompt.verdict):
        return Completion(text, _CACHE_HIT)
    text, beside = json.loads(text)
    return Completion(text, _CACHE_HIT, **{"likelihood" if prompt.likelihood else "probabilities": beside})
