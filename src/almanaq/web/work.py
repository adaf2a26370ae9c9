"""Desk: does blocking work for one request in a thread, tells what goes on, and ends it when nobody waits any more."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from almanaq.errors import AlmanaqError, DeadlineExceeded
from almanaq.models.budget import Budget
from almanaq.models.spending import spending
from almanaq.stopping import Stop
from almanaq.web.problems import Refused, problem_of
from almanaq.web.queueing import Turnstile

Event = tuple[str, dict[str, Any]]
"""The name of an event and its data."""
Emit = Callable[[str, dict[str, Any]], None]
Work = Callable[[Emit], dict[str, Any]]
"""Does what was asked, tells events on the way, and gives the response; raises AlmanaqError."""

_log = logging.getLogger("almanaq.web")
_LAST = ("response", "error")
_SECONDS_TO_END = 1.0


@dataclass(frozen=True, slots=True)
class Job:
    """What one request wants done.

    Attributes:
        conversation: of one conversation one job at a time is done.
        deadline: seconds from when the work begins.
        budgets: what may be spent; several may be shared with other jobs.
    """

    work: Work
    deadline: float
    conversation: str | None = None
    budgets: tuple[Budget, ...] = ()


class Desk:
    """Does jobs, so many at once.

    Args:
        at_once: threads; the jobs beyond wait in line.
        waiting: jobs that may wait.
    """

    def __init__(self, at_once: int, waiting: int) -> None:
        self._turnstile = Turnstile(at_once, waiting)
        self._threads = ThreadPoolExecutor(at_once, thread_name_prefix="almanaq-web")
        self._under_way: dict[Stop, tuple[asyncio.Future[None], asyncio.Queue[Event]]] = {}

    async def events(self, job: Job) -> AsyncIterator[Event]:
        """Yield what goes on, and last `response` or `error`. Closing the iterator ends the work within a moment."""
        try:
            async for before in self._turnstile.enter(job.conversation):
                yield "progress", {"message": _line(before), "waiting": before}
        except AlmanaqError as error:
            yield "error", problem_of(error).record()
            return
        stop, queue = Stop(), asyncio.Queue[Event]()
        self._start(job, stop, queue)
        timer = asyncio.get_running_loop().call_later(job.deadline, self._out_of_time, job, stop, queue)
        try:
            while True:
                event = await queue.get()
                yield event
                if event[0] in _LAST:
                    return
        finally:
            timer.cancel()
            stop.now()

    async def close(self) -> None:
        """End all jobs, tell whoever waits for one, and give their threads a moment."""
        going = problem_of(Refused(503, "the server is going down: ask again later")).record()
        for stop, (_, queue) in list(self._under_way.items()):
            stop.now()
            queue.put_nowait(("error", going))
        if self._under_way:
            await asyncio.wait([future for future, _ in self._under_way.values()], timeout=_SECONDS_TO_END)
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _start(self, job: Job, stop: Stop, told: asyncio.Queue[Event]) -> None:
        loop = asyncio.get_running_loop()

        def emit(name: str, data: dict[str, Any]) -> None:
            if stop.asked:
                raise asyncio.CancelledError
            loop.call_soon_threadsafe(told.put_nowait, (name, data))

        def done(future: asyncio.Future[None]) -> None:
            del self._under_way[stop]
            self._turnstile.leave(job.conversation)
            if not future.cancelled():
                future.exception()

        context = contextvars.copy_context()
        future = loop.run_in_executor(self._threads, context.run, _do, job, stop, emit)
        self._under_way[stop] = (future, told)
        future.add_done_callback(done)

    def _out_of_time(self, job: Job, stop: Stop, told: asyncio.Queue[Event]) -> None:
        stop.now()
        error = DeadlineExceeded(
            f"it took longer than {job.deadline:g} s, and was stopped: ask for less, or allow more"
        )
        told.put_nowait(("error", problem_of(error).record()))


def _do(job: Job, stop: Stop, emit: Emit) -> None:
    """Do a job in this thread, and tell how it ended."""
    try:
        with ExitStack() as around:
            around.enter_context(stop.covering())
            for budget in job.budgets:
                around.enter_context(spending(budget))
            response = job.work(emit)
        emit("response", response)
    except asyncio.CancelledError:
        return
    except Failed as failure:
        _tell(emit, failure.problem)
    except AlmanaqError as error:
        _tell(emit, problem_of(error).record())
    except Exception as error:
        _log.exception("a request failed unforeseen")
        _tell(emit, problem_of(error).record())


class Failed(Exception):
    """Ends a job with a problem that holds more than its error says."""

    def __init__(self, problem: dict[str, Any]) -> None:
        super().__init__(problem.get("detail"))
        self.problem = problem


def _tell(emit: Emit, problem: dict[str, Any]) -> None:
    try:
        emit("error", problem)
    except asyncio.CancelledError:
        return


def _line(before: int) -> str:
    if before == 0:
        return "waiting: yours is next"
    return f"waiting: {before} {'question is' if before == 1 else 'questions are'} before yours"
