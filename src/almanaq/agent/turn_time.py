"""How long a turn may take: its queries, its calls of a language model and what stands between them, together."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, replace
from typing import Any, ParamSpec, TypeVar

from almanaq.errors import DeadlineExceeded
from almanaq.options import Options

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TurnTime:
    """When a turn ends at the latest.

    Attributes:
        seconds: what it may take from its beginning on.
        ends: the moment, of `time.monotonic`.
    """

    seconds: float
    ends: float

    @classmethod
    def of(cls, options: Options | None) -> TurnTime | None:
        """Return the time of a turn that begins now; None where it has no deadline."""
        seconds = options.deadline if options is not None else None
        return None if seconds is None else cls(seconds, time.monotonic() + seconds)

    def left(self) -> float:
        """Return the seconds that are left; raises DeadlineExceeded where none are."""
        left = self.ends - time.monotonic()
        if left <= 0:
            raise self.over()
        return left

    def over(self) -> DeadlineExceeded:
        """Return the error that says that the time is over."""
        message = f"the turn took longer than {self.seconds:g} s and was stopped; give it more with --deadline"
        return DeadlineExceeded(message)


_time: ContextVar[TurnTime | None] = ContextVar("turn_time", default=None)


def within(time_: TurnTime | None, step: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do a step of a turn; what it does asks here how much time is left. Between steps, nobody is bound by it."""

    def run() -> T:
        _time.set(time_)
        return step(*args, **kwargs)

    return copy_context().run(run)


def options_of_turn(options: Options | None) -> Options | None:
    """Return the options of a query of the turn: it may take what is left of the turn."""
    time_ = _time.get()
    return options if time_ is None or options is None else replace(options, deadline=time_.left())


async def in_turn(work: Coroutine[Any, Any, T]) -> T:
    """Return what a coroutine gives; raises DeadlineExceeded when the turn is over before."""
    time_ = _time.get()
    if time_ is None:
        return await work
    try:
        async with asyncio.timeout(max(0.0, time_.ends - time.monotonic())) as limit:
            return await work
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise time_.over() from error
