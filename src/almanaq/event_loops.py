"""Runs coroutines for code that is not asynchronous, in event loops of their own, and cancels them."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")


@contextmanager
def set_within(variable: ContextVar[T], value: T) -> Iterator[None]:
    """Have a context variable hold a value inside the block, as `with variable.set(value)` does from Python 3.14 on."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


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
        with set_within(_tokens, (*_tokens.get(), self)):
            yield

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


def run_sync(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, also where an event loop runs already (a notebook): then in a thread of its own."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _run(work)
    outcome, token = Future[T](), CancelToken()

    def run() -> None:
        try:
            with token.scope():
                outcome.set_result(_run(work))
        except BaseException as error:  # handed to the caller
            outcome.set_exception(error)

    thread = threading.Thread(target=contextvars.copy_context().run, args=(run,), name="almanaq")
    try:
        thread.start()  # which waits too: on a busy machine until after the thread's first calls
        return outcome.result()
    except KeyboardInterrupt:
        token.cancel()
        # The thread's own interruption may hold the rows that are sure.
        if thread.ident is not None and isinstance(error := outcome.exception(), KeyboardInterrupt):
            raise error from None
        raise


def _run(work: Coroutine[Any, Any, T]) -> T:
    async def attach() -> T:
        loop = asyncio.get_running_loop()
        task = loop.create_task(work)
        with ExitStack() as held:
            for token in _tokens.get():
                held.enter_context(token.hold_task(task, loop))
            return await task

    with one_event_loop() as runner:
        return runner.run(attach(), context=contextvars.copy_context())


_of_thread = threading.local()


@contextmanager
def one_event_loop() -> Iterator[asyncio.Runner]:
    """Run what `run_sync` is given in this block, by this thread, in one event loop: clients keep their connections."""
    if (known := getattr(_of_thread, "runner", None)) is not None:
        yield known
        return
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        _of_thread.runner = runner
        try:
            yield runner
        finally:
            del _of_thread.runner


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return uvloop's event loop where it is installed, else asyncio's."""
    return _find_loop_factory()()


@cache
def _find_loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop  # of the extra `fast`
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop  # type: ignore[no-any-return]


C = TypeVar("C")


class PerLoop(Generic[C]):
    """Gives each event loop its own client, made by `make` at the loop's first use, and closed where it has `close`.

    A client's sockets belong to the loop they were opened on, and every query or turn runs in a loop of its own. A
    client that has `close` lives in an asynchronous generator, because a loop that ends (`asyncio.run`) closes its
    generators: so the client is closed on its own loop, in time, and nobody has to call anything.
    """

    def __init__(self, make: Callable[[], C]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._held: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[AsyncGenerator[C, None] | None, C]] = (
            WeakKeyDictionary()
        )

    def get(self) -> C:
        """Return the client of the running loop."""
        loop = asyncio.get_running_loop()
        held = self._held.get(loop)
        if held is None:
            client = self._make()
            generator = self._hold(client) if hasattr(client, "close") else None
            if generator is not None:
                # It reaches its yield without waiting, so one step is enough.
                with suppress(StopIteration):
                    generator.__anext__().send(None)
            held = generator, client
            with self._lock:
                for ended in [other for other in self._held if other.is_closed()]:
                    del self._held[ended]  # a client may hold its loop
                self._held[loop] = held
        return held[1]

    async def close(self) -> None:
        """Close the client of the running loop before the loop ends; the next use makes another."""
        with self._lock:
            held = self._held.pop(asyncio.get_running_loop(), None)
        if held is not None and held[0] is not None:
            await held[0].aclose()

    async def _hold(self, client: Any) -> AsyncGenerator[C, None]:
        try:
            yield client
        finally:
            # A generator knows the loop that ends it: held here, it would hold the loop for good.
            with self._lock:
                self._held.pop(asyncio.get_running_loop(), None)
            await client.close()
