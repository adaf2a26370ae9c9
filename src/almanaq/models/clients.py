"""One HTTP client per event loop, closed when its loop shuts down."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable
from typing import Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary


class Closable(Protocol):
    """Anything with an asynchronous close."""

    async def close(self) -> None: ...


C = TypeVar("C", bound=Closable)


class PerLoop(Generic[C]):
    """Gives each event loop its own client, made by `make` at the loop's first use.

    A client's sockets belong to the loop they were opened on, and every query runs in a loop of its own. The client
    lives in an asynchronous generator, because a loop that ends (`asyncio.run`) closes its generators: so the client
    is closed on its own loop, in time, and nobody has to call anything.
    """

    def __init__(self, make: Callable[[], C]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._held: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[AsyncGenerator[C, None], C]] = (
            WeakKeyDictionary()
        )

    async def get(self) -> C:
        """Return the client of the running loop."""
        loop = asyncio.get_running_loop()
        with self._lock:
            held = self._held.get(loop)
        if held is None:
            # No other task of this loop can come between: the generator reaches its yield without waiting.
            generator = self._holding()
            held = generator, await anext(generator)
            with self._lock:
                self._held[loop] = held
        return held[1]

    async def _holding(self) -> AsyncGenerator[C, None]:
        client = self._make()
        try:
            yield client
        finally:
            # A generator knows the loop that ends it: held here, it would hold the loop for good.
            with self._lock:
                self._held.pop(asyncio.get_running_loop(), None)
            await client.close()
