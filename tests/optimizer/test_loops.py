"""Loops that are kept from one query to the next do what asyncio.run does."""

from __future__ import annotations

import asyncio
import contextvars
import os
import signal
import threading
from collections.abc import AsyncIterator, Iterator

import pytest

from almanaq import event_loops as loops
from almanaq.event_loops import run_sync


@pytest.fixture(autouse=True)
def _no_loops_kept() -> Iterator[None]:
    loops._close_runners()
    yield
    loops._close_runners()


async def loop_and(value: int) -> tuple[asyncio.AbstractEventLoop, int]:
    await asyncio.sleep(0)
    return asyncio.get_running_loop(), value


def test_a_loop_with_nothing_left_in_it_is_used_again() -> None:
    first, second = run_sync(loop_and(1)), run_sync(loop_and(2))
    assert first[0] is second[0]
    assert (first[1], second[1]) == (1, 2)


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


def test_an_error_is_raised_and_the_loop_is_kept() -> None:
    async def fail() -> None:
        raise ValueError(id(asyncio.get_running_loop()))

    with pytest.raises(ValueError) as caught:  # noqa: PT011, the message is the loop
        run_sync(fail())
    assert caught.value.args == (id(run_sync(loop_and(1))[0]),)


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


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_takes_a_loop_of_its_own() -> None:
    parents = run_sync(loop_and(1))[0]
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        own = run_sync(loop_and(2))[0]
        os.write(write, b"own" if own is not parents else b"parent's")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 20) == b"own"
    assert run_sync(loop_and(3))[0] is parents
