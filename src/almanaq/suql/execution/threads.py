"""Where a query works: blocking work off the event loop, products of matrices, and when garbage is searched for."""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import gc
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from functools import cache, partial
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar

from threadpoolctl import threadpool_limits

from almanaq.engines.interruption import silence_stderr
from almanaq.errors import OperationalError

P = ParamSpec("P")
T = TypeVar("T")
_MOST_THREADS = 64
_SETTLING_SECONDS = 0.2
"""How long the interpreter's exit waits for threads that let go of what they worked with; most take no time at all."""
_given_up: contextvars.ContextVar[threading.Event] = contextvars.ContextVar("almanaq_given_up")


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return what a function gives, run in a thread.

    Like `asyncio.to_thread`, whose threads end with the event loop.
    """
    context, ended = contextvars.copy_context(), threading.Event()
    context.run(_given_up.set, ended)
    call = partial(context.run, work, *args, **kwargs)
    try:
        return await asyncio.get_running_loop().run_in_executor(_pool(), call)
    except asyncio.CancelledError:
        ended.set()
        raise


def given_up() -> threading.Event:
    """Return what is set when nobody waits any longer for what this thread does.

    Threads that it starts are to ask it.
    """
    return _given_up.get(None) or threading.Event()


def refuse_given_up(ended: threading.Event) -> None:
    if ended.is_set():
        raise OperationalError("the query was stopped while it compared texts")


class DaemonThreads(Executor):
    """Runs work in threads that do not keep the process alive: an engine may not listen when it is stopped.

    The standard library's pool is waited for at exit, however long what it runs takes.
    """

    def __init__(self, most: int) -> None:
        self._most, self._started = most, 0
        self._work: SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._starting = threading.Lock()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Have a function run by a thread that has nothing to do, or by a new one."""
        future: Future[T] = Future()
        self._work.put((future, partial(fn, *args, **kwargs)))
        if not self._idle.acquire(blocking=False):
            with self._starting:
                if self._started < self._most:
                    self._started += 1
                    threading.Thread(target=self._run, name=f"almanaq_{self._started}", daemon=True).start()
        return future

    def settle(self, seconds: float) -> bool:
        """Wait until no thread works, or holds what it worked with; tell whether that came within some seconds."""
        until = time.monotonic() + seconds
        return all(self._idle.acquire(timeout=max(0.0, until - time.monotonic())) for _ in range(self._started))

    def _run(self) -> None:
        while True:
            future, work = self._work.get()
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(work())
                except BaseException as error:  # handed to whoever waits
                    future.set_exception(error)
            del future, work  # or an idle thread holds them
            self._idle.release()


@cache
def _pool() -> DaemonThreads:
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not survive a fork
    return DaemonThreads(_MOST_THREADS)


@atexit.register
def _settle() -> None:
    """Let no thread hold an engine's objects when the interpreter is gone: DuckDB's binding prints pages about them."""
    if _pool.cache_info().currsize and not _pool().settle(_SETTLING_SECONDS):
        silence_stderr()


class _SharedBlock:
    """A block that threads enter as they like."""

    def __init__(self, begin: Callable[[], Callable[[], object]]) -> None:
        self._begin, self._lock, self._inside = begin, threading.Lock(), 0
        self._end: Callable[[], object] = lambda: None

    @contextmanager
    def entered(self) -> Iterator[None]:
        with self._lock:
            if not self._inside:
                self._end = self._begin()
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if not self._inside:
                    self._end()


one_thread_each = _SharedBlock(lambda: threadpool_limits(1, user_api="blas").restore_original_limits).entered
"""Let a product of matrices use the thread that asks for it, and no other, until the last such block is left.

BLAS's threads wait for one another without sleeping. On a machine with other work, or with as many callers as cores, a
product with them takes ten times the processor time of one without.
"""


_NEW_OBJECTS = 50_000
"""Objects that are made before the next search; Python's own 700 are a dozen calls, and a fifth of a call's time."""


def _search_seldom() -> Callable[[], None]:
    """Have Python search for cycles seldom; return what undoes that, unless somebody else chose otherwise meanwhile."""
    before = gc.get_threshold()
    if not 0 < before[0] < _NEW_OBJECTS:  # 0 is off, and somebody else's choice
        return lambda: None
    gc.set_threshold(_NEW_OBJECTS, *before[1:])

    def undo() -> None:
        if gc.get_threshold()[0] == _NEW_OBJECTS:
            gc.set_threshold(*before)

    return undo


collecting_seldom = _SharedBlock(_search_seldom).entered
"""Search for cycles seldom inside the block, and as before after the last of such blocks."""
