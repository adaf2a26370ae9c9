"""CacheTurns: what the calls of an event loop look up and keep at the same moment, done in one transaction.

A reply is kept before anybody is given it, so that a process that is killed loses only calls that were under way.
"""

from __future__ import annotations

import asyncio

from almanaq.models.reply_cache import ReplyCache


class CacheTurns:
    """Looks for replies and keeps them, for the calls of one event loop.

    Args:
        model: under which name replies are kept.
    """

    def __init__(self, cache: ReplyCache, model: str) -> None:
        self._cache, self._model = cache, model
        self._wanted: list[tuple[bytes, asyncio.Future[str | bool]]] = []
        self._sought: list[tuple[bytes, asyncio.Future[str | None]]] = []
        self._replies: list[tuple[bytes, str, asyncio.Future[None]]] = []

    async def look(self, key: bytes) -> str | bool:
        """Return what ReplyCache.look gives for a request; raises as it does."""
        loop = asyncio.get_running_loop()
        found: asyncio.Future[str | bool] = loop.create_future()
        if not self._wanted:
            loop.call_soon(self._look)
        self._wanted.append((key, found))
        return await found

    async def find(self, key: bytes) -> str | None:
        """Return what ReplyCache.find gives for a request; raises as it does."""
        loop = asyncio.get_running_loop()
        found: asyncio.Future[str | None] = loop.create_future()
        if not self._sought:
            loop.call_soon(self._find)
        self._sought.append((key, found))
        return await found

    async def keep(self, key: bytes, text: str) -> None:
        """Keep a reply; returns when it is kept."""
        loop = asyncio.get_running_loop()
        written: asyncio.Future[None] = loop.create_future()
        if not self._replies:
            loop.call_soon(self._keep)
        self._replies.append((key, text, written))
        await written

    def _look(self) -> None:
        wanted, self._wanted = self._wanted, []
        try:
            found: list[str | bool] = self._cache.look([key for key, _ in wanted])
        except Exception:
            for key, future in wanted:  # the fault may be in one of them
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
        except Exception as problem:  # the file is of no use to any of them
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
            for _, _, written in replies:
                if not written.done():  # who asked may have been cancelled; the reply is kept all the same
                    written.set_result(None)
