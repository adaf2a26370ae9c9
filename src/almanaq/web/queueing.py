"""Turnstile: so many questions at once, the others wait in line and are told how many are before them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from almanaq.web.problems import Busy

_TOLD_EVERY = 1.0


class Turnstile:
    """Lets questions in, first come first served; of each conversation one at a time.

    Args:
        at_once: how many are answered at once.
        waiting: how many may wait.
    """

    def __init__(self, at_once: int, waiting: int) -> None:
        self._slots, self._most_waiting = asyncio.Semaphore(at_once), waiting
        self._line: dict[object, None] = {}
        self._conversations: dict[str, tuple[asyncio.Lock, int]] = {}

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._line)

    async def enter(self, conversation: str | None) -> AsyncIterator[int]:
        """Wait for one's turn; yields how many are before one, from time to time.

        Once it ends, `leave` has to be called; not where it is closed sooner.

        Raises:
            Busy: too many wait already.
        """
        waits = self._slots.locked() or conversation in self._conversations
        if waits and len(self._line) >= self._most_waiting:
            raise Busy
        ticket = object()
        self._line[ticket] = None
        entering = asyncio.ensure_future(self._acquire(conversation))
        try:
            while not (await asyncio.wait((entering,), timeout=_TOLD_EVERY))[0]:
                yield list(self._line).index(ticket)
        except BaseException:
            # It may be one's turn at the very moment of giving up.
            entering.add_done_callback(lambda done: None if done.cancelled() else self.leave(conversation))
            entering.cancel()
            raise
        finally:
            del self._line[ticket]

    def leave(self, conversation: str | None) -> None:
        """Make room for the next."""
        self._slots.release()
        self._unlock(conversation)

    async def _acquire(self, conversation: str | None) -> None:
        if conversation is not None:
            lock, users = self._conversations.get(conversation, (asyncio.Lock(), 0))
            self._conversations[conversation] = (lock, users + 1)
            try:
                await lock.acquire()
            except BaseException:
                self._forget(conversation)
                raise
        try:
            await self._slots.acquire()
        except BaseException:
            self._unlock(conversation)
            raise

    def _unlock(self, conversation: str | None) -> None:
        if conversation is not None:
            self._conversations[conversation][0].release()
            self._forget(conversation)

    def _forget(self, conversation: str) -> None:
        lock, users = self._conversations.pop(conversation)
        if users > 1:
            self._conversations[conversation] = (lock, users - 1)
