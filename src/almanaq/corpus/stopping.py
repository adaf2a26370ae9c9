"""Stopping the reading of a source: whoever waits for it can end it, and its readers look between pieces of work."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar

Interrupt = Callable[[], object]
"""Tells an engine to end what it does."""


class Stopped(Exception):
    """Nobody waits any more for what is read here."""


class Stop:
    """Whether the reading of a source is to end, and what is interrupted then.

    Attributes:
        granted: seconds that parts of it take by a bound of their own; they are no part of its deadline.
    """

    def __init__(self) -> None:
        self.granted = 0.0
        self._asked = threading.Event()
        self._interrupts: list[Interrupt] = []

    @property
    def asked(self) -> bool:
        """Whether it is to end."""
        return self._asked.is_set()

    def ask(self) -> None:
        """End it: engines at work are interrupted, again each time that this is called."""
        self._asked.set()
        for interrupt in list(self._interrupts):
            with suppress(Exception):  # a connection that was closed in this moment
                interrupt()

    @contextmanager
    def interrupting(self, interrupt: Interrupt) -> Iterator[None]:
        """Interrupt an engine, too, if the end is asked for within the block."""
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


_NEVER = Stop()
_current: ContextVar[Stop] = ContextVar("almanaq_stop", default=_NEVER)


def current() -> Stop:
    """Give the stop of the reading that this thread does; one that nobody asks for where none waits."""
    return _current.get()


def check() -> None:
    """Raise Stopped where the reading that this thread does is to end."""
    if _current.get().asked:
        raise Stopped


def stoppable_by(stop: Stop) -> None:
    """Let the reading that this thread does be ended by `stop`."""
    _current.set(stop)
