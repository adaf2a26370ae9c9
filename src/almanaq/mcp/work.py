"""Blocking work for asynchronous callers: in a thread, with progress told, and ended when the caller goes away."""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Protocol, TypeVar

from almanaq.stopping import Stop
from almanaq.suql.execution.report import watched

T = TypeVar("T")
Tell = Callable[[float, float | None, str], Awaitable[None]]
"""Takes how far the work is, how far it will go (None: not known), and what is done, in a few words."""
_THREADS = 16
_SECONDS_BETWEEN = 0.25


class Say(Protocol):
    """Tells that the work goes on with something else."""

    def __call__(self, message: str) -> None: ...


@dataclass(eq=False)
class Course:
    """How far some work is, told from its thread; what is told never goes back, as the protocol wants it."""

    put: Callable[[tuple[float, float | None, str]], None]
    base: float = 0.0
    last: float = 0.0
    told: float = 0.0

    def say(self, message: str) -> None:
        """Tell of a next step."""
        self.base = self.last = self.last + 1
        self.put((self.last, None, message))

    def rows(self, done: int, total: int | None, passed: int) -> None:
        """Tell how many rows were read, not more often than somebody can follow."""
        if self.base + done < self.last:
            self.base = self.last
        self.last = self.base + done
        now = time.monotonic()
        if now - self.told >= _SECONDS_BETWEEN:
            self.told = now
            of = "" if total is None else f" of {total:,}"
            whole = None if total is None else self.base + total
            self.put((self.last, whole, f"{done:,}{of} rows read, {passed:,} found"))


async def run_apart(work: Callable[[Say], T], tell: Tell) -> T:
    """Return what a function gives, run in a thread. When this is cancelled, its queries and model calls end."""
    loop, stop = asyncio.get_running_loop(), Stop()
    steps: asyncio.Queue[tuple[float, float | None, str]] = asyncio.Queue()

    def put(step: tuple[float, float | None, str]) -> None:
        loop.call_soon_threadsafe(steps.put_nowait, step)

    course = Course(put)

    def run() -> T:
        with stop.covering(), watched(course.rows, keeps=False):
            return work(course.say)

    async def pump() -> None:
        while True:
            await tell(*await steps.get())

    pumping = asyncio.ensure_future(pump())
    try:
        return await loop.run_in_executor(_pool(), contextvars.copy_context().run, run)
    finally:
        stop.now()  # there is nothing left to end where the work is done
        pumping.cancel()
        await asyncio.gather(pumping, return_exceptions=True)


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_THREADS, thread_name_prefix="almanaq-mcp")
