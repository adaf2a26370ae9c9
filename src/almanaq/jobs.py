"""Jobs: blocking work for asynchronous callers, which tells what goes on, has a deadline, and ends when nobody waits.

The HTTP API and the MCP server run every query as a job; the command line and notebooks show the same progress.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from almanaq.errors import AlmanaqError, DeadlineExceeded
from almanaq.event_loops import CancelToken, one_event_loop
from almanaq.models.budget import Budget, spending
from almanaq.suql.execution.forecast import Forecast, Tell, watched

Event = tuple[str, dict[str, Any]]
"""The name of an event and its data."""
Emit = Callable[[str, dict[str, Any]], None]
Work = Callable[[Emit], dict[str, Any]]
"""Does what was asked, emits events on the way, and returns the response."""

_SECONDS_TO_END = 1.0
SECONDS_TO_HEED = 10.0
"""Within so many seconds a canceled job gives its thread back, unless an engine heeds nothing any more."""
_QUEUE_SECONDS = 1.0
PROGRESS_SECONDS = 0.25


class Busy(AlmanaqError):
    """More jobs wait than are worth waiting for."""

    def __init__(self) -> None:
        super().__init__("too many questions are waiting: try again in a few seconds")


@dataclass(frozen=True, slots=True)
class Job:
    """What one request wants done.

    Attributes:
        conversation: of one conversation one job at a time is done.
        deadline: seconds from when the work begins; None: the work has its own.
        budgets: what may be spent; several may be shared with other jobs.
    """

    work: Work
    deadline: float | None = None
    conversation: str | None = None
    budgets: tuple[Budget, ...] = ()


class JobRunner:
    """Runs jobs in threads, `at_once` at a time; of those beyond, `waiting` may wait in line."""

    def __init__(self, threads: Executor, at_once: int, waiting: int) -> None:
        self._queue = RequestQueue(at_once, waiting)
        self._threads, self._at_once = threads, at_once
        self._running: dict[CancelToken, tuple[asyncio.Future[None], asyncio.Queue[Event | BaseException]]] = {}
        self._canceled: dict[CancelToken, float] = {}

    @property
    def running(self) -> int:
        return len(self._running)

    @property
    def is_stuck(self) -> bool:
        """Whether every thread is held by a job that was canceled and does not end."""
        late = time.monotonic() - SECONDS_TO_HEED
        return sum(when < late for when in self._canceled.values()) >= self._at_once

    async def run(self, job: Job, *, last_only: bool = False) -> AsyncIterator[Event]:
        """Yield what goes on, and last `response`; raises what the work raises. Closing the iterator ends the work.

        Args:
            last_only: leave out what the work emits on its way: each such event wakes the loop's thread.
        """
        async for before in self._queue.enter(job.conversation):
            others = "question is" if before == 1 else "questions are"
            place = f"{before} {others} ahead of yours" if before else "yours is next"
            yield "progress", {"message": f"waiting: {place}", "waiting": before}
        token, events = CancelToken(), asyncio.Queue[Event | BaseException]()
        self._start(job, token, events, last_only)

        def end_late() -> None:
            self._cancel(token)
            message = f"stopped after {job.deadline:g} s: ask for less, or raise the deadline"
            events.put_nowait(DeadlineExceeded(message))

        loop = asyncio.get_running_loop()
        timer = None if job.deadline is None else loop.call_later(job.deadline, end_late)
        try:
            while True:
                event = await events.get()
                if isinstance(event, BaseException):
                    raise event
                yield event
                if event[0] == "response":
                    return
        finally:
            if timer is not None:
                timer.cancel()
            self._cancel(token)

    def end_oldest(self, error: AlmanaqError) -> None:
        """End the job that has run for longest with an error."""
        for token, (_, events) in list(self._running.items()):
            if token not in self._canceled:
                self._cancel(token)
                events.put_nowait(error)
                return

    async def close(self, error: AlmanaqError) -> None:
        """End all jobs with an error, and give their threads a moment."""
        for token, (_, events) in list(self._running.items()):
            token.cancel()
            events.put_nowait(error)
        if self._running:
            await asyncio.wait([future for future, _ in self._running.values()], timeout=_SECONDS_TO_END)
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _start(
        self, job: Job, token: CancelToken, events: asyncio.Queue[Event | BaseException], last_only: bool
    ) -> None:
        loop = asyncio.get_running_loop()

        def put(event: Event | BaseException) -> None:
            wanted = not last_only or isinstance(event, BaseException) or event[0] == "response"
            if wanted and not token.is_canceled:
                loop.call_soon_threadsafe(events.put_nowait, event)

        def finish(future: asyncio.Future[None]) -> None:
            del self._running[token]
            self._canceled.pop(token, None)
            self._queue.leave(job.conversation)
            if not future.cancelled():
                future.exception()

        context = contextvars.copy_context()
        future = loop.run_in_executor(self._threads, context.run, _do, job, token, put)
        self._running[token] = (future, events)
        future.add_done_callback(finish)

    def _cancel(self, token: CancelToken) -> None:
        token.cancel()
        if token in self._running:
            self._canceled.setdefault(token, time.monotonic())


def start_threads(count: int, name: str) -> ThreadPoolExecutor:
    """Return a pool whose threads all run: one that is begun where memory is short might never come to that.

    Whoever starts a thread waits until it runs, for ever if need be, and a server has nobody to spare for that.
    """
    pool, begun = ThreadPoolExecutor(count, thread_name_prefix=name), threading.Barrier(count + 1)
    for _ in range(count):
        pool.submit(begun.wait)
    begun.wait()
    return pool


def _do(job: Job, token: CancelToken, put: Callable[[Event | BaseException], None]) -> None:
    def emit(name: str, data: dict[str, Any]) -> None:
        if token.is_canceled:
            raise asyncio.CancelledError
        put((name, data))

    try:
        with ExitStack() as around:
            around.enter_context(one_event_loop())
            around.enter_context(token.scope())
            for budget in job.budgets:
                around.enter_context(spending(budget))
            response = job.work(emit)
        put(("response", response))
    except asyncio.CancelledError:
        return
    except Exception as error:
        put(error)


class RequestQueue:
    """Lets requests in, first come first served; of each conversation one at a time."""

    def __init__(self, at_once: int, waiting: int) -> None:
        self._free, self._most_waiting = at_once, waiting
        self._line: list[tuple[asyncio.Future[None], str | None]] = []
        self._busy: set[str | None] = set()

    async def enter(self, conversation: str | None) -> AsyncIterator[int]:
        """Wait for one's turn; yields how many are before one. Once it ends, `leave` has to be called."""
        if (not self._free or conversation in self._busy) and len(self._line) >= self._most_waiting:
            raise Busy
        turn = asyncio.get_running_loop().create_future()
        ticket = turn, conversation
        self._line.append(ticket)
        self._admit()
        try:
            while not turn.done() and not (await asyncio.wait((turn,), timeout=_QUEUE_SECONDS))[0]:
                yield self._line.index(ticket)
        except BaseException:
            if turn.done():  # at the very moment of giving up
                self.leave(conversation)
            else:
                self._line.remove(ticket)
            raise

    def leave(self, conversation: str | None) -> None:
        self._free += 1
        self._busy.discard(conversation)
        self._admit()

    def _admit(self) -> None:
        for ticket in list(self._line):
            turn, conversation = ticket
            if self._free and conversation not in self._busy:
                self._line.remove(ticket)
                self._free -= 1
                if conversation is not None:
                    self._busy.add(conversation)
                turn.set_result(None)


@contextmanager
def show_progress(show: Tell, *, keeps: bool = False) -> Iterator[None]:
    """Have the queries of this block show how far they are; `keeps`: one that is interrupted gives its rows so far."""
    last = 0.0

    def tell(done: int, total: int | None, passed: int, forecast: Forecast | None) -> None:
        nonlocal last
        if time.monotonic() - last >= PROGRESS_SECONDS:
            last = time.monotonic()
            show(done, total, passed, forecast)

    with watched(tell, keeps=keeps):
        yield


@contextmanager
def emit_progress(emit: Emit) -> Iterator[None]:
    """Have the queries of this block emit how far they are and what was spent, as events."""
    with spending() as account:

        def show(done: int, total: int | None, passed: int, forecast: Forecast | None) -> None:
            used = account.usage
            spent = {"requests": used.calls, "tokens": used.input_tokens + used.output_tokens, "money": used.money}
            reached = {"message": "reading texts", "done": done, "total": total, "passed": passed, **spent}
            emit("progress", {**reached, "forecast": None if forecast is None else forecast.figures})

        with show_progress(show):
            yield
