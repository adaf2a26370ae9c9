"""HedgedModel: a call that takes far longer than others is made once more; the first reply counts."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import replace

from almanaq.models.failure import FailedCall
from almanaq.models.protocols import Completion, LanguageModel, Prompt, Usage

_KEPT = 200
_LEAST = 20
_TIMES = 4.0
_SHORTEST = 2.0
_LOOK = 1.0
_MOST = 3


class HedgedModel:
    """Makes a call once more when no reply came by a deadline, takes the first reply, and cancels the other call.

    Where the other call fails or hangs too, there is a third after twice the time; then what is under way is waited
    for.

    Args:
        after: seconds to wait before the second call. None learns it: four times what 19 of 20 replies so far took,
            at least 2 seconds, and nothing is made twice before 20 replies have come.
    """

    def __init__(self, model: LanguageModel, after: float | None = None) -> None:
        self.name = model.name
        self._model, self._after = model, after
        self._seconds: deque[float] = deque(maxlen=_KEPT)
        self._learned, self._until_learning = 0.0, _LEAST

    async def complete(self, prompt: Prompt) -> Completion:
        """Give the first reply; its usage counts all calls. Raises the failure of the first call when all fail.

        A reply that is shown while it is written is asked for once: two would be written over each other.
        """
        if prompt.pieces is not None:
            return await self._model.complete(prompt)
        task = asyncio.current_task()
        assert task is not None
        cancelled_before = task.cancelling()
        spares = _Spares(self, prompt, task)
        try:
            try:
                # Few calls ever see a second one, so the first is made right here, without a task of its own.
                completion = await self.timed(prompt)
                if not spares.calls:
                    return completion
                spares.first.set_result(completion)
            except asyncio.CancelledError:
                if not spares.replied or task.uncancel() > cancelled_before:
                    raise
            except Exception as problem:
                if not spares.calls:
                    raise
                spares.first.set_exception(problem)
            finally:
                spares.timer.cancel()
            return await spares.result()
        finally:
            if spares.calls:
                await spares.end()

    def left(self, made: int, elapsed: float) -> float:
        """Give the seconds to wait for a reply before one more call is made, or before looking again."""
        # What is long may be learned only while the call is under way.
        deadline = self._after if self._after is not None else self._learned
        if not deadline or made == _MOST:
            return _LOOK
        return min(deadline * ((1 << made) - 1) - elapsed, _LOOK)

    async def timed(self, prompt: Prompt) -> Completion:
        """Make one call and learn how long it took."""
        # Each physical call by itself: with those that they replaced, they would all seem slow.
        started = _now()
        completion = await self._model.complete(prompt)
        self._learn(_now() - started)
        return completion

    def _learn(self, seconds: float) -> None:
        self._seconds.append(seconds)
        self._until_learning -= 1
        if self._until_learning <= 0:
            self._until_learning = _LEAST
            slow = sorted(self._seconds)[int(len(self._seconds) * 0.95)]
            self._learned = max(_SHORTEST, _TIMES * slow)


class _Spares:
    """The calls that are made beside a first one that takes too long.

    Attributes:
        first: is done once the first call has ended; pending where it was cancelled for a spare one's reply.
        replied: a spare call gave a reply while the first was under way, and `task`, which makes that, was cancelled.
    """

    def __init__(self, model: HedgedModel, prompt: Prompt, task: asyncio.Task[object]) -> None:
        self._model, self._prompt, self._task = model, prompt, task
        self._loop = asyncio.get_running_loop()
        self._started = self._loop.time()
        self.first: asyncio.Future[Completion] = self._loop.create_future()
        self.calls: list[asyncio.Task[Completion]] = []
        self.replied = False
        self.timer = self._loop.call_later(self._left(), self._look)

    def _left(self) -> float:
        return self._model.left(1 + len(self.calls), self._loop.time() - self._started)

    def _look(self) -> None:
        """Make a call more where it is time, and look again later."""
        if self._left() <= 0:
            self._add()
        self.timer = self._loop.call_later(max(0.0, self._left()), self._look)

    def _add(self) -> None:
        call = self._loop.create_task(self._model.timed(self._prompt))
        call.add_done_callback(self._ended)
        self.calls.append(call)

    def _ended(self, call: asyncio.Task[Completion]) -> None:
        good = not call.cancelled() and call.exception() is None
        if good and not self.first.done() and not self.replied:
            self.replied = True
            self._task.cancel()

    async def result(self) -> Completion:
        """Give the first reply of any call, once the first has ended; raises its failure when all fail."""
        while _undecided(calls := [self.first, *self.calls]):
            left = self._left()
            if left <= 0:
                self._add()
                continue
            under_way = [call for call in calls if not call.done()]
            await asyncio.wait(under_way, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        return _result(calls)

    async def end(self) -> None:
        """Cancel what is under way, and wait until it is gone."""
        under_way = [call for call in self.calls if not call.done()]
        for call in under_way:
            call.cancel()
        if under_way:
            await asyncio.gather(*under_way, return_exceptions=True)


def _now() -> float:
    """Give the time of the clock by which the loop waits."""
    return asyncio.get_running_loop().time()


def _undecided(calls: Sequence[asyncio.Future[Completion]]) -> bool:
    """Say whether there is no reply yet and one may still come."""
    return any(not call.done() for call in calls) and not any(call.done() and not call.exception() for call in calls)


def _result(calls: Sequence[asyncio.Future[Completion]]) -> Completion:
    """Give the reply there is, or raise the first call's failure, with the cost of the others added."""
    ended = [call for call in calls if call.done()]
    good = next((call for call in ended if call.exception() is None), None)
    others = Usage()
    for call in calls:
        if call is not good and not (good is None and call is calls[0]):
            problem = call.exception() if call.done() else None
            others += problem.usage if isinstance(problem, FailedCall) else Usage(calls=int(not call.done()))
    if good is not None:
        completion = good.result()
        return replace(completion, usage=completion.usage + others)
    failure = calls[0].exception()
    assert failure is not None
    if isinstance(failure, FailedCall):
        failure.usage += others
    raise failure
