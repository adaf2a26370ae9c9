"""Runs coroutines for code that is not asynchronous, in event loops kept between queries, and cancels them."""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import os
import signal
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from types import FrameType
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")
_MOST_KEPT = 4
_idle: list[asyncio.Runner] = []
"""Runners whose loops have nothing left to do. A loop belongs to the thread that took its runner out."""
_inherited: list[asyncio.Runner] = []
"""Runners of the process that this one was forked from: to close them would disturb it."""


class CancelToken:
    """Ends, when `cancel` is called from any thread, what is under way inside its `scope` blocks.

    What is ended raises `asyncio.CancelledError` there; work that begins afterwards ends at once.

    >>> token = CancelToken()
    >>> with token.scope():
    ...     pass                    # con.sql(…), con.ask(…), in this thread or one that copies its context
    >>> token.cancel()
    >>> token.is_canceled
    True
    """

    def __init__(self) -> None:
        self.is_canceled = False
        self._lock = threading.Lock()
        self._held: dict[asyncio.Task[Any], asyncio.AbstractEventLoop] = {}

    def cancel(self) -> None:
        """End what is under way; calling it again does nothing."""
        with self._lock:
            self.is_canceled = True
            for task, loop in self._held.items():
                loop.call_soon_threadsafe(task.cancel)
            self._held.clear()

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Have queries and model calls that begin in this block end when this is canceled."""
        token = _tokens.set((*_tokens.get(), self))
        try:
            yield
        finally:
            _tokens.reset(token)

    @contextmanager
    def hold_task(self, task: asyncio.Task[Any], loop: asyncio.AbstractEventLoop) -> Iterator[None]:
        with self._lock:
            if self.is_canceled:
                task.cancel()
            else:
                self._held[task] = loop
        try:
            yield
        finally:
            with self._lock:
                self._held.pop(task, None)


_tokens: ContextVar[tuple[CancelToken, ...]] = ContextVar("almanaq_tokens", default=())


@contextmanager
def attach_tokens(task: asyncio.Task[Any], loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Have a task that is about to run end when any CancelToken whose scope the caller is in is canceled."""
    with ExitStack() as held:
        for token in _tokens.get():
            held.enter_context(token.hold_task(task, loop))
        yield


def run_sync(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, also where an event loop runs already (a notebook): then in a thread of its own."""
    if not _loop_is_running():
        return _run(work)
    outcome, token = _Outcome(), CancelToken()

    def run() -> None:
        try:
            with token.scope():
                outcome.value = _run(work)
        except BaseException as error:  # handed to the caller
            outcome.error = error
        finally:
            outcome.there.set()

    thread = threading.Thread(target=contextvars.copy_context().run, args=(run,), name="almanaq")
    _start_and_wait(thread, token, outcome)
    thread.join()
    if outcome.error is not None:
        raise outcome.error
    return outcome.value  # type: ignore[no-any-return]


def _start_and_wait(thread: threading.Thread, token: CancelToken, outcome: _Outcome) -> None:
    """Have a thread work; Ctrl-C ends its work and then is a KeyboardInterrupt, as where there is no other loop."""
    try:
        thread.start()  # which waits too: on a busy machine until after the thread's first calls
        outcome.there.wait()  # Thread.join() takes a thread for ended when it is interrupted itself
    except KeyboardInterrupt:
        token.cancel()
        if thread.is_alive():
            outcome.there.wait()
        if not isinstance(outcome.error, KeyboardInterrupt):
            raise


@dataclass
class _Outcome:
    value: Any = None
    error: BaseException | None = None
    there: threading.Event = field(default_factory=threading.Event)


def _loop_is_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _run(work: Coroutine[Any, Any, T]) -> T:
    """Do what `asyncio.run` does, in a loop that is kept if nothing is left in it: a new one takes 0.3 ms."""
    runner = _take_runner()
    loop = runner.get_loop()
    try:
        task = loop.create_task(work)
        with attach_tokens(task, loop), _cancel_on_interrupt(loop, task):
            return loop.run_until_complete(task)
    finally:
        _put_back_runner(runner)


def _take_runner() -> asyncio.Runner:
    try:
        return _idle.pop()
    except IndexError:
        _watch_for_the_end()
        return asyncio.Runner(loop_factory=asyncio.new_event_loop)


def _put_back_runner(runner: asyncio.Runner) -> None:
    """Keep a runner, or close it where tasks or generators are left, as those that hold a model's connections."""
    loop = runner.get_loop()
    # There is no public way to ask for the generators; where this one is gone, no loop is kept.
    left = asyncio.all_tasks(loop) or len(getattr(loop, "_asyncgens", (None,)))
    if left or len(_idle) >= _MOST_KEPT:
        runner.close()
    else:
        _idle.append(runner)


@contextmanager
def _cancel_on_interrupt(loop: asyncio.AbstractEventLoop, task: asyncio.Task[Any]) -> Iterator[None]:
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    interrupts = 0

    def interrupt(_: int, __: FrameType | None) -> None:
        nonlocal interrupts
        interrupts += 1
        if interrupts > 1 or task.done():
            raise KeyboardInterrupt
        task.cancel()
        loop.call_soon_threadsafe(lambda: None)  # it may be waiting for something else

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    except asyncio.CancelledError:
        if interrupts:
            raise KeyboardInterrupt from None
        raise
    finally:
        if signal.getsignal(signal.SIGINT) is interrupt:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _close_runners() -> None:
    while _idle:
        _idle.pop().close()


def _leave_to_parent() -> None:
    _inherited.extend(_idle)
    _idle.clear()


@cache
def _watch_for_the_end() -> None:
    atexit.register(_close_runners)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_leave_to_parent)


C = TypeVar("C")


class PerLoop(Generic[C]):
    """Gives each event loop its own client, made by `make` at the loop's first use, and closed where it has `close`.

    A client's sockets belong to the loop they were opened on, and every query runs in a loop of its own. The client
    lives in an asynchronous generator, because a loop that ends (`asyncio.run`) closes its generators: so the client
    is closed on its own loop, in time, and nobody has to call anything.
    """

    def __init__(self, make: Callable[[], C]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._held: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[AsyncGenerator[C, None], C]] = (
            WeakKeyDictionary()
        )

    async def get(self) -> C:
        loop = asyncio.get_running_loop()
        with self._lock:
            held = self._held.get(loop)
        if held is None:
            # No other task of this loop can come between: the generator reaches its yield without waiting.
            generator = self._holding()
            held = generator, await anext(generator)
            with self._lock:
                self._held[loop] = held
        return held[1]

    async def close(self) -> None:
        """Close the client of the running loop before the loop ends; the next use makes another."""
        with self._lock:
            held = self._held.pop(asyncio.get_running_loop(), None)
        if held is not None:
            await held[0].aclose()

    async def _holding(self) -> AsyncGenerator[C, None]:
        client = self._make()
        try:
            yield client
        finally:
            # A generator knows the loop that ends it: held here, it would hold the loop for good.
            with self._lock:
                self._held.pop(asyncio.get_running_loop(), None)
            if (close := getattr(client, "close", None)) is not None:
                await close()
