"""ConcurrentModel: so many calls under way at once, and no more."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar

from almanaq.models.clients import PerLoop
from almanaq.models.protocols import Completion, LanguageModel, Prompt

calls_at_once: ContextVar[asyncio.Semaphore | None] = ContextVar("almanaq_calls_at_once", default=None)
"""The slots of the query that a call is made for: fewer than a model has, or the same."""


class ConcurrentModel:
    """Lets at most `limit` calls be under way at once in an event loop, and at most so many of each query as that lets.

    The others wait their turn, in order.
    """

    bounds_calls = True

    def __init__(self, model: LanguageModel, limit: int = 64) -> None:
        self.name = model.name
        self._model = model
        self._slots = PerLoop(lambda: _Slots(limit))

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the reply, once there was a free slot."""
        slots = await self._slots.get()
        query, loop = calls_at_once.get(), asyncio.get_running_loop()
        if query is not None:
            await query.acquire()
        try:
            await slots.semaphore.acquire()
            try:
                return await self._model.complete(prompt)
            finally:
                # Who waits may call once the reply is handed on, so that CachedModel keeps it first: a process that is
                # killed loses no more calls than were under way.
                loop.call_soon(slots.semaphore.release)
        finally:
            if query is not None:
                loop.call_soon(query.release)


class _Slots:
    def __init__(self, limit: int) -> None:
        self.semaphore = asyncio.Semaphore(limit)

    async def close(self) -> None:
        """Nothing is held."""
