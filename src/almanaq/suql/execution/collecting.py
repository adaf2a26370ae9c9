"""Fewer searches for cycles of garbage while a query runs: calls under way are thousands of objects that live on."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_NEW_OBJECTS = 50_000
"""Objects that are made before the next search; Python's own 700 are a dozen calls, and a fifth of a call's time."""


class _Running:
    """How many queries run in the process, and what it had set before the first of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queries = 0
        self._before: tuple[int, int, int] | None = None

    def enter(self) -> None:
        with self._lock:
            self._queries += 1
            now = gc.get_threshold()
            # 0 is off, and somebody else's choice.
            if self._queries == 1 and 0 < now[0] < _NEW_OBJECTS:
                self._before = now
                gc.set_threshold(_NEW_OBJECTS, *now[1:])

    def leave(self) -> None:
        with self._lock:
            self._queries -= 1
            if self._queries == 0 and self._before is not None:
                if gc.get_threshold()[0] == _NEW_OBJECTS:
                    gc.set_threshold(*self._before)
                self._before = None


_running = _Running()


@contextmanager
def collecting_seldom() -> Iterator[None]:
    """Search for cycles seldom inside the block, and as before after the last of such blocks."""
    _running.enter()
    try:
        yield
    finally:
        _running.leave()
