"""Replies that come in the order in which they came once before."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field


@dataclass
class ReplyOrder:
    """Lets the calls that wait go on one after the other, the one first that replied first then."""

    _waiting: dict[int, asyncio.Future[None]] = field(default_factory=dict)
    _pump: asyncio.Task[None] | None = None

    async def turn(self, place: int) -> None:
        """Wait for one's turn."""
        mine = self._waiting[place] = asyncio.get_running_loop().create_future()
        if self._pump is None or self._pump.done():
            self._pump = asyncio.create_task(self._run())
        try:
            await mine
        finally:
            self._waiting.pop(place, None)

    async def _run(self) -> None:
        while self._waiting:
            seen = -1
            while seen != len(self._waiting):
                # Until nobody joins any more: whoever would be asked for next has then been asked for.
                seen = len(self._waiting)
                await asyncio.sleep(0.001)
            first = min(self._waiting, default=None)
            if first is not None and not self._waiting[first].done():
                self._waiting[first].set_result(None)
            await asyncio.sleep(0)

    async def close(self) -> None:
        """Stop; whoever still waits is cancelled with the loop."""
        if self._pump is not None:
            self._pump.cancel()
            with suppress(asyncio.CancelledError):
                await self._pump
