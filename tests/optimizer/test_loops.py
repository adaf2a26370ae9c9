"""Coroutines of queries run as under asyncio.run, also within a loop that runs."""

from __future__ import annotations

import asyncio
import contextvars
import signal
import sys
import threading
from collections.abc import AsyncIterator, Iterator

import pytest

from almanaq import event_loops
from almanaq.event_loops import CancelToken, one_event_loop, run_sync


@pytest.fixture(autouse=True, params=["asyncio", "uvloop"])
def _loop(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if request.param == "asyncio":
        monkeypatch.setitem(sys.modules, "uvloop", None)  # as where it is not installed
    else:
        pytest.importorskip("uvloop")
    event_loops._find_loop_factory.cache_clear()
    yield
    event_loops._find_loop_factory.cache_clear()


async def loop_and(value: int) -> tuple[asyncio.AbstractEventLoop, int]:
    await asyncio.sleep(0)
    return asyncio.get_running_loop(), value


def test_a_loop_in_which_something_is_left_is_closed_with_it() -> None:
    ended: list[str] = []

    async def forever() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append("task")

    async def held() -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            ended.append("generator")

    kept: list[object] = []

    async def leave_a_task() -> asyncio.AbstractEventLoop:
        kept.append(asyncio.create_task(forever()))
        await asyncio.sleep(0)
        return asyncio.get_running_loop()

    async def leave_a_generator() -> asyncio.AbstractEventLoop:
        generator = held()
        kept.append(generator)
        await anext(generator)
        return asyncio.get_running_loop()

    for work, left in ((leave_a_task, "task"), (leave_a_generator, "generator")):
        assert run_sync(work()).is_closed()
        assert ended.pop() == left


def test_it_sees_the_variables_of_its_caller_and_works_within_a_loop_and_a_thread() -> None:
    seen = contextvars.ContextVar("seen", default=0)

    async def read() -> int:
        return seen.get()

    seen.set(5)
    assert run_sync(read()) == 5

    async def within() -> int:
        return run_sync(loop_and(7))[1]

    assert run_sync(within()) == 7
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(run_sync(loop_and(9))[1]))
    thread.start()
    thread.join()
    assert found == [9]


def test_a_block_has_one_loop_which_ends_with_it_and_is_not_that_of_other_threads() -> None:
    seen = contextvars.ContextVar("seen", default=0)

    async def read() -> tuple[asyncio.AbstractEventLoop, int]:
        return asyncio.get_running_loop(), seen.get()

    others: list[asyncio.AbstractEventLoop] = []
    with one_event_loop(), one_event_loop():
        first, _ = run_sync(loop_and(1))
        seen.set(5)
        assert run_sync(read()) == (first, 5)

        async def within() -> asyncio.AbstractEventLoop:
            return run_sync(loop_and(7))[0]

        others.append(run_sync(within()))
        context = contextvars.copy_context()
        thread = threading.Thread(target=lambda: others.append(context.run(run_sync, loop_and(9))[0]))
        thread.start()
        thread.join()
        assert not first.is_closed()
        assert first not in others
    assert first.is_closed()
    assert run_sync(loop_and(1))[0] is not first


def test_an_interrupt_lets_the_work_end_what_it_has_under_way() -> None:
    ended: list[str] = []

    async def interrupted() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            ended.append("in order")
            raise

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    try:
        with pytest.raises(KeyboardInterrupt):
            run_sync(interrupted())
        assert ended == ["in order"]
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert run_sync(loop_and(3))[1] == 3


class SureRows(KeyboardInterrupt):
    """An interruption that holds rows, as that of a query."""


def test_an_interrupt_within_a_loop_is_that_of_the_work_however_soon_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    async def interrupted() -> None:
        try:
            signal.pthread_kill(main, signal.SIGINT)
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            raise SureRows from None

    async def within() -> None:
        run_sync(interrupted())

    cancel, main = CancelToken.cancel, threading.get_ident()

    def cancel_and_wait(token: CancelToken) -> None:
        cancel(token)
        for thread in threading.enumerate():
            if thread.name == "almanaq":
                thread.join()

    monkeypatch.setattr(CancelToken, "cancel", cancel_and_wait)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    loop = asyncio.new_event_loop()  # which, unlike asyncio.run, leaves the signal to its caller, as notebooks do
    try:
        with pytest.raises(KeyboardInterrupt) as caught:
            loop.run_until_complete(within())
        assert isinstance(caught.value, SureRows)
    finally:
        loop.close()
        signal.signal(signal.SIGINT, before)
