"""An event loop whose clock moves on when nothing is left to do: waiting takes no time, and nothing comes too late."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Selector(selectors.DefaultSelector):
    """Moves the clock on instead of waiting for a timer."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            return super().select()
        self.now += max(timeout, 0.0)
        return super().select(0)


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._clock = _Selector()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end as `asyncio.run` does; it may wait for timers, for tasks and for nothing outside."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(work)


def now() -> float:
    """Return the seconds that have passed on the running loop's clock."""
    return asyncio.get_running_loop().time()
