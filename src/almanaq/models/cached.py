"""CachedModel: identical requests are asked once, ever; those under way share one call. Failures are not kept."""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from concurrent.futures import Future

from almanaq.models.protocols import Completion, LanguageModel, Prompt, Usage
from almanaq.models.reply_cache import LEASE_SECONDS, ReplyCache
from almanaq.models.spending import record

_POLL = 0.02
"""Seconds between two looks at a reply that another process is waiting for."""


def request_key(model: str, prompt: Prompt) -> bytes:
    """Give the identity of a request: model, prompt version, messages without their random fence, and schema."""
    contents = [(m.role, m.content.replace(prompt.fence, "") if prompt.fence else m.content) for m in prompt.messages]
    schema = None if prompt.schema is None else json.dumps(prompt.schema, sort_keys=True)
    identity = json.dumps([model, prompt.name, prompt.version, contents, schema, prompt.max_output_tokens])
    return hashlib.sha256(identity.encode("utf-8", "surrogatepass")).digest()


class CachedModel:
    """Replies from a cache that threads, event loops and processes share; asks the model for what is not there.

    Args:
        identity: what tells this model's replies from another's, e.g. its name and its server's address.
    """

    def __init__(self, model: LanguageModel, cache: ReplyCache, *, identity: str | None = None) -> None:
        self.name = model.name
        self._model, self.cache = model, cache
        self.identity = identity or str(getattr(model, "identity", model.name))
        self._lock = threading.Lock()
        self._under_way: dict[bytes, Future[Completion | None]] = {}

    async def complete(self, prompt: Prompt) -> Completion:
        """Give the reply; `usage.cached_calls` is 1 where another call paid for it."""
        completion = await self._complete(request_key(self.identity, prompt), prompt)
        # What was really called is recorded where it is made (MeteredModel), however it ends.
        record(self.name, Usage(cached_calls=completion.usage.cached_calls), virtual=1, purpose=prompt.name)
        return completion

    def forget(self, prompt: Prompt) -> None:
        """Drop the reply to a prompt that turned out to be of no use, so that it is asked for anew another time."""
        self.cache.drop(request_key(self.identity, prompt))

    async def _complete(self, key: bytes, prompt: Prompt) -> Completion:
        while True:
            text = self.cache.get(key)
            if text is not None:
                return Completion(text, Usage(cached_calls=1))
            with self._lock:
                leader = self._under_way.get(key)
                if leader is None:
                    mine = self._under_way[key] = Future()
            if leader is None:
                return await self._lead(key, prompt, mine)
            # Shielded: a waiter that is cancelled must not cancel the call for the others.
            shared = await asyncio.shield(asyncio.wrap_future(leader))
            if shared is not None:
                return Completion(shared.text, Usage(cached_calls=1))

    async def _lead(self, key: bytes, prompt: Prompt, mine: Future[Completion | None]) -> Completion:
        completion: Completion | None = None
        try:
            completion = await self._ask(key, prompt)
            return completion
        finally:
            # After a failure or a cancellation the waiters get None, and one of them becomes the next leader: it asks
            # again rather than share an error that need not be its own.
            with self._lock:
                del self._under_way[key]
            mine.set_result(completion)

    async def _ask(self, key: bytes, prompt: Prompt) -> Completion:
        waited = 0.0
        # Whatever the clocks say, nobody is waited for longer than a lease can run.
        while not self.cache.lease(key) and waited < LEASE_SECONDS:
            await asyncio.sleep(_POLL)
            waited += _POLL
            text = self.cache.get(key)
            if text is not None:
                return Completion(text, Usage(cached_calls=1))
        # Another process may have finished between our look and our lease.
        text = self.cache.get(key)
        if text is not None:
            self.cache.release(key)
            return Completion(text, Usage(cached_calls=1))
        try:
            completion = await self._model.complete(prompt)
        except BaseException:
            self.cache.release(key)
            raise
        self.cache.put(key, completion.text, model=self.identity)
        return completion
