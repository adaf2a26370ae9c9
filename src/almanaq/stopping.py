"""Stopping from outside what runs in another thread: its model calls and its work in a database end within a moment."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import Any


class Stop:
    """Ends, when `now` is called from any thread, what is under way inside its `covering` blocks.

    What is ended raises `asyncio.CancelledError` there; work that begins afterwards ends at once.

    >>> stop = Stop()
    >>> with stop.covering():
    ...     pass                    # con.sql(…), con.ask(…), in this thread or one that copies its context
    >>> stop.now()
    >>> stop.asked
    True
    """

    def __init__(self) -> None:
        self.asked = False
        self._lock = threading.Lock()
        self._held: dict[asyncio.Task[Any], asyncio.AbstractEventLoop] = {}

    def now(self) -> None:
        """End what is under way; calling it again does nothing."""
        with self._lock:
            self.asked = True
            for task, loop in self._held.items():
                loop.call_soon_threadsafe(task.cancel)
            self._held.clear()

    @contextmanager
    def covering(self) -> Iterator[None]:
        """Have queries and model calls that begin in this block end when this is asked to."""
        token = _stops.set((*_stops.get(), self))
        try:
            yield
        finally:
            _stops.reset(token)

    @contextmanager
    def holding(self, task: asyncio.Task[Any], loop: asyncio.AbstractEventLoop) -> Iterator[None]:
        """Have a task end when this is asked to."""
        with self._lock:
            if self.asked:
                task.cancel()
            else:
                self._held[task] = loop
        try:
            yield
        finally:
            with self._lock:
                self._held.pop(task, None)


_stops: ContextVar[tuple[Stop, ...]] = ContextVar("almanaq_stops", default=())


@contextmanager
def stoppable(task: asyncio.Task[Any], loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Have a task that is about to run end when any Stop that covers the caller is asked to."""
    with ExitStack() as held:
        for stop in _stops.get():
            held.enter_context(stop.holding(task, loop))
        yield
