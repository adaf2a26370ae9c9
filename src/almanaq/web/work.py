"""Desk: does blocking work for one request in a thread, tells what goes on, and ends it when nobody waits any more.

Turnstile: so many at once, the others wait in line and are told how many are before them.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from almanaq.errors import AlmanaqError, DeadlineExceeded
from almanaq.models.budget import Budget, spending
from almanaq.stopping import Stop
from almanaq.web.problems import Busy, Refused, is_lack_of_memory, problem_of

Event = tuple[str, dict[str, Any]]
"""The name of an event and its data."""
Emit = Callable[[str, dict[str, Any]], None]
Work = Callable[[Emit], dict[str, Any]]
"""Does what was asked, tells events on the way, and gives the response; raises AlmanaqError."""

_log = logging.getLogger("almanaq.web")
_LAST = ("response", "error")
_SECONDS_TO_END = 1.0
_SECONDS_TO_HEED = 10.0
"""Within so many seconds a job that was stopped gives its thread back, unless an engine heeds nothing any more."""
_TOLD_EVERY = 1.0


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
        self._threads, self._at_once = start_threads(at_once, "almanaq-web"), at_once
        self._under_way: dict[Stop, tuple[asyncio.Future[None], asyncio.Queue[Event]]] = {}
        self._stopped: dict[Stop, float] = {}

    @property
    def under_way(self) -> int:
        """How many jobs have a thread."""
        return len(self._under_way)

    @property
    def is_stuck(self) -> bool:
        """Whether every thread is held by a job that was stopped and does not end."""
        late = time.monotonic() - _SECONDS_TO_HEED
        return sum(when < late for when in self._stopped.values()) >= self._at_once

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
            self._stop(stop)

    def shed(self) -> None:
        """End the job that goes on for longest, as the process has hardly any memory left: most take a moment."""
        short = "the server ran short of memory, and ended what went on for longest: ask for less, or ask again later"
        for stop, (_, queue) in list(self._under_way.items()):
            if stop not in self._stopped:
                self._stop(stop)
                queue.put_nowait(("error", problem_of(Refused(503, short)).record()))
                return

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
            self._stopped.pop(stop, None)
            self._turnstile.leave(job.conversation)
            if not future.cancelled():
                future.exception()

        context = contextvars.copy_context()
        future = loop.run_in_executor(self._threads, context.run, _do, job, stop, emit)
        self._under_way[stop] = (future, told)
        future.add_done_callback(done)

    def _out_of_time(self, job: Job, stop: Stop, told: asyncio.Queue[Event]) -> None:
        self._stop(stop)
        error = DeadlineExceeded(
            f"it took longer than {job.deadline:g} s, and was stopped: ask for less, or allow more"
        )
        told.put_nowait(("error", problem_of(error).record()))

    def _stop(self, stop: Stop) -> None:
        stop.now()
        if stop in self._under_way:
            self._stopped.setdefault(stop, time.monotonic())


def start_threads(count: int, name: str) -> ThreadPoolExecutor:
    """Return a pool whose threads all run: one that began where memory is short might never come to that.

    Whoever starts a thread waits until it runs, for ever if need be, and a server has nobody to spare for that.
    """
    pool, begun = ThreadPoolExecutor(count, thread_name_prefix=name), threading.Barrier(count + 1)
    for _ in range(count):
        pool.submit(begun.wait)
    begun.wait()
    return pool


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
        if is_lack_of_memory(error):
            _log.warning("a request failed for lack of memory")
        else:
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


class Turnstile:
    """Lets questions in, first come first served; of each conversation one at a time.

    Args:
        at_once: how many are answered at once.
        waiting: how many may wait.
    """

    def __init__(self, at_once: int, waiting: int) -> None:
        self._slots, self._most_waiting = asyncio.Semaphore(at_once), waiting
        self._line: dict[object, None] = {}
        self._conversations: dict[str, tuple[asyncio.Lock, int]] = {}

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._line)

    async def enter(self, conversation: str | None) -> AsyncIterator[int]:
        """Wait for one's turn; yields how many are before one, from time to time.

        Once it ends, `leave` has to be called; not where it is closed sooner.

        Raises:
            Busy: too many wait already.
        """
        waits = self._slots.locked() or conversation in self._conversations
        if waits and len(self._line) >= self._most_waiting:
            raise Busy
        ticket = object()
        self._line[ticket] = None
        entering = asyncio.ensure_future(self._acquire(conversation))
        try:
            while not (await asyncio.wait((entering,), timeout=_TOLD_EVERY))[0]:
                yield list(self._line).index(ticket)
        except BaseException:
            # It may be one's turn at the very moment of giving up.
            entering.add_done_callback(lambda done: None if done.cancelled() else self.leave(conversation))
            entering.cancel()
            raise
        finally:
            del self._line[ticket]

    def leave(self, conversation: str | None) -> None:
        """Make room for the next."""
        self._slots.release()
        self._unlock(conversation)

    async def _acquire(self, conversation: str | None) -> None:
        if conversation is not None:
            lock, users = self._conversations.get(conversation, (asyncio.Lock(), 0))
            self._conversations[conversation] = (lock, users + 1)
            try:
                await lock.acquire()
            except BaseException:
                self._forget(conversation)
                raise
        try:
            await self._slots.acquire()
        except BaseException:
            self._unlock(conversation)
            raise

    def _unlock(self, conversation: str | None) -> None:
        if conversation is not None:
            self._conversations[conversation][0].release()
            self._forget(conversation)

    def _forget(self, conversation: str) -> None:
        lock, users = self._conversations.pop(conversation)
        if users > 1:
            self._conversations[conversation] = (lock, users - 1)
