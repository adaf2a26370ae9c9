"""Equal calls under way share one, also without a task of their own; cycles are looked for as before afterwards."""

from __future__ import annotations

import asyncio
import gc

import pytest

from almanaq.errors import ModelCallError
from almanaq.models.protocols import TextCall, TextReply
from almanaq.suql.execution.calls import Outcome, TextCalls
from almanaq.suql.execution.threads import collecting_seldom

CALL = TextCall("answer", ("a text",), "what?")


class Slow:
    name, remote, paid = "slow", False, False

    def __init__(self, failure: Exception | None = None) -> None:
        self.calls, self._failure = 0, failure

    async def read(self, call: TextCall) -> TextReply:
        self.calls += 1
        await asyncio.sleep(0.01)
        if self._failure is not None:
            raise self._failure
        return TextReply("said")


def asked(reader: Slow, *, strict: bool = False) -> list[Outcome | BaseException]:
    async def all_of() -> list[Outcome | BaseException]:
        calls = TextCalls(reader, (), max_calls=None, strict=strict, concurrency=4)
        found = await asyncio.gather(*(calls.ask(b"k", CALL) for _ in range(3)), return_exceptions=True)
        if not strict:
            assert calls.is_answered(b"k")
            assert await calls.ask(b"k", CALL) == found[0]
        await calls.cancel()
        return found

    return asyncio.run(all_of())


def test_equal_calls_share_one() -> None:
    reader = Slow()
    assert asked(reader) == [Outcome("said")] * 3
    failing = Slow(ModelCallError("no"))
    assert asked(failing) == [Outcome(unknown=True, reason="the call failed")] * 3
    assert (reader.calls, failing.calls) == (1, 1)


def test_a_failure_that_ends_the_query_reaches_all_that_wait() -> None:
    failing = Slow(ModelCallError("no"))
    found = asked(failing, strict=True)
    assert [str(each) for each in found] == ["no"] * 3
    assert failing.calls == 1


def test_who_is_cancelled_leaves_the_call_to_the_others(recwarn: pytest.WarningsRecorder) -> None:
    async def cancelled() -> list[bool]:
        calls = TextCalls(Slow(), (), max_calls=None, strict=False, concurrency=4)
        tasks = [asyncio.create_task(calls.ask(b"k", CALL)) for _ in range(3)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        await asyncio.wait(tasks)
        return [task.cancelled() for task in tasks]

    assert asyncio.run(cancelled()) == [True, False, False]
    assert not recwarn.list


def test_cycles_are_looked_for_as_before_afterwards() -> None:
    before = gc.get_threshold()
    try:
        gc.set_threshold(700, 10, 10)
        with collecting_seldom():
            with collecting_seldom():
                assert gc.get_threshold()[0] > 10_000
            assert gc.get_threshold()[0] > 10_000
        assert gc.get_threshold() == (700, 10, 10)
        gc.set_threshold(0)  # somebody else's choice
        with collecting_seldom():
            assert gc.get_threshold()[0] == 0
        assert gc.get_threshold()[0] == 0
    finally:
        gc.set_threshold(*before)
