"""Cancelling the reading of a source: whoever waits for it can, and its readers look between pieces of work.

`almanaq.event_loops` cancels what runs in an event loop; what reads files has none.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TypeVar

_LOOK = 1 << 12  # items between two looks whether the reading is to end
_T = TypeVar("_T")


class ReadCancelled(Exception):
    """Nobody waits any more for what is read here."""


class ReadCancellation:
    """Whether the reading of a source is to end, and which engines are interrupted then."""

    def __init__(self) -> None:
        self.granted = 0.0  # seconds that parts of it take by a bound of their own, which are no part of its deadline
        self._event = threading.Event()
        self._interrupts: list[Callable[[], object]] = []

    @property
    def cancelled(self) -> bool:
        return self._event.is_set()

    def cancel(self) -> None:
        """End it: engines at work are interrupted, again each time that this is called."""
        self._event.set()
        for interrupt in list(self._interrupts):
            with suppress(Exception):  # a connection that was closed in this moment
                interrupt()

    @contextmanager
    def interrupting(self, interrupt: Callable[[], object]) -> Iterator[None]:
        """Interrupt an engine, too, if it is cancelled within the block."""
        self._interrupts.append(interrupt)
        try:
            yield
        finally:
            self._interrupts.remove(interrupt)

    @contextmanager
    def granting(self, seconds: float) -> Iterator[None]:
        """Let the block take so many seconds beyond the deadline, or as few as it needs."""
        started = time.monotonic()
        self.granted += seconds
        try:
            yield
        finally:
            self.granted -= seconds - min(seconds, time.monotonic() - started)


_current: ContextVar[ReadCancellation | None] = ContextVar("almanaq_read_cancellation", default=None)


def current_read() -> ReadCancellation:
    """Return the cancellation of the reading that this thread does; one that nobody cancels where none waits."""
    return _current.get() or ReadCancellation()


def raise_if_cancelled() -> None:
    """Raise ReadCancelled where the reading that this thread does is to end."""
    reading = _current.get()
    if reading is not None and reading.cancelled:
        raise ReadCancelled


def until_cancelled(items: Iterable[_T]) -> Iterator[_T]:
    """Yield items; raise ReadCancelled between them where the reading that this thread does is to end."""
    for number, item in enumerate(items):
        if number % _LOOK == 0:
            raise_if_cancelled()
        yield item


def cancellable_by(cancellation: ReadCancellation) -> None:
    _current.set(cancellation)
