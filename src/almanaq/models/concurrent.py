"""ConcurrentModel: so many calls under way at once, and no more."""

from __future__ import annotations

import asyncio

from almanaq.models.clients import PerLoop
from almanaq.models.protocols import Completion, LanguageModel, Prompt


class ConcurrentModel:
    """Lets at most `limit` calls be under way at once in an event loop; the others wait their turn, in order."""

    def __init__(self, model: LanguageModel, limit: int = 64) -> None:
        self.name = model.name
        self._model = model
        self._slots = PerLoop(lambda: _Slots(limit))

    async def complete(self, prompt: Prompt) -> Completion:
        """Give the reply, once there was a free slot."""
        slots = await self._slots.get()
        async with slots.semaphore:
            return await self._model.complete(prompt)


class _Slots:
    def __init__(self, limit: int) -> None:
        self.semaphore = asyncio.Semaphore(limit)

    async def close(self) -> None:
        """Nothing is held."""
