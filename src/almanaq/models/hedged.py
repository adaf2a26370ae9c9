"""HedgedModel: a call that takes far longer than others is made once more; the first reply counts."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from weakref import WeakKeyDictionary

from almanaq.models.failure import FailedCall
from almanaq.models.protocols import Completion, LanguageModel, Prompt, Usage

_KEPT = 200
_LEAST = 20
_TIMES = 4.0
_SHORTEST = 2.0
_LOOK = 1.0
_MOST = 3
_EARLY = 0.001
"""Seconds by which a timer may come before its time."""


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
        self._watches: WeakKeyDictionary[asyncio.AbstractEventLoop, _Watch] = WeakKeyDictionary()

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the first reply; its usage counts all calls. Raises the failure of the first call when all fail.

        A reply that is shown while it is written is asked for once: two would be written over each other.
        """
        if prompt.pieces is not None:
            return await self._model.complete(prompt)
        loop = asyncio.get_running_loop()
        watch = self._watches.get(loop) or self._watches.setdefault(loop, _Watch())
        task = asyncio.current_task()
        assert task is not None
        cancelled_before = task.cancelling()
        spares = _Spares(self, prompt, task, loop)
        watch.add(spares)
        try:
            try:
                # Few calls ever see a second one, so the first is made right here, without a task of its own.
                completion = await self.timed(prompt, loop)
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
                watch.remove(spares)
            return await spares.result()
        finally:
            if spares.calls:
                await spares.end()

    def left(self, made: int, elapsed: float) -> float:
        """Return the seconds to wait for a reply before one more call is made, or before looking again."""
        # What is long may be learned only while the call is under way.
        deadline = self._after if self._after is not None else self._learned
        if not deadline or made == _MOST:
            return _LOOK
        return min(deadline * ((1 << made) - 1) - elapsed, _LOOK)

    async def timed(self, prompt: Prompt, loop: asyncio.AbstractEventLoop) -> Completion:
        """Make one call and learn how long it took."""
        # Each physical call by itself: with those that they replaced, they would all seem slow.
        started = loop.time()
        completion = await self._model.complete(prompt)
        self._learn(loop.time() - started)
        return completion

    def _learn(self, seconds: float) -> None:
        self._seconds.append(seconds)
        self._until_learning -= 1
        if self._until_learning <= 0:
            self._until_learning = _LEAST
            slow = sorted(self._seconds)[int(len(self._seconds) * 0.95)]
            self._learned = max(_SHORTEST, _TIMES * slow)


class _Watch:
    """Looks after the first calls that are under way in an event loop, by one timer for all of them.

    It keeps neither the loop nor the timer, which knows the loop: the loop would never be let go.
    """

    def __init__(self) -> None:
        self._under_way: dict[_Spares, None] = {}
        self._next = math.inf

    def add(self, spares: _Spares) -> None:
        """Look after a call that begins."""
        self._under_way[spares] = None
        due = spares.started + spares.left(spares.started)
        if due < self._next:
            self._wait(spares.loop, due)

    def remove(self, spares: _Spares) -> None:
        """Look after a call no more."""
        del self._under_way[spares]

    def _wait(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        self._next = due
        loop.call_at(due, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        """Make a call more where it is time, and look again when the next one may be late."""
        now = loop.time()
        if now < self._next - _EARLY:
            return  # a timer set later looked sooner, and has set the next
        self._next = math.inf
        lefts = [spares.look(now) for spares in self._under_way]
        if lefts:
            self._wait(loop, now + max(0.0, min(lefts)))


class _Spares:
    """The calls that are made beside a first one that takes too long.

    Attributes:
        first: of use once there is a spare call; is done once the first call has ended; pending where it was cancelled
            for a spare one's reply.
        replied: a spare call gave a reply while the first was under way, and `task`, which makes that, was cancelled.
    """

    __slots__ = ("_model", "_prompt", "_task", "calls", "first", "loop", "replied", "started")

    def __init__(
        self, model: HedgedModel, prompt: Prompt, task: asyncio.Task[object], loop: asyncio.AbstractEventLoop
    ) -> None:
        self._model, self._prompt, self._task, self.loop = model, prompt, task, loop
        self.started = loop.time()
        self.first: asyncio.Future[Completion]
        self.calls: list[asyncio.Task[Completion]] = []
        self.replied = False

    def left(self, now: float) -> float:
        """Return the seconds to wait before one more call is made, or before looking again."""
        return self._model.left(1 + len(self.calls), now - self.started)

    def look(self, now: float) -> float:
        """Make a call more where it is time; gives when to look again."""
        left = self.left(now)
        if left <= 0:
            self._add()
            left = self.left(now)
        return left

    def _add(self) -> None:
        if not self.calls:
            self.first = self.loop.create_future()
        call = self.loop.create_task(self._model.timed(self._prompt, self.loop))
        call.add_done_callback(self._ended)
        self.calls.append(call)

    def _ended(self, call: asyncio.Task[Completion]) -> None:
        good = not call.cancelled() and call.exception() is None
        if good and not self.first.done() and not self.replied:
            self.replied = True
            self._task.cancel()

    async def result(self) -> Completion:
        """Return the first reply of any call, once the first has ended; raises its failure when all fail."""
        while _undecided(calls := [self.first, *self.calls]):
            left = self.left(self.loop.time())
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


def _undecided(calls: Sequence[asyncio.Future[Completion]]) -> bool:
    """Return whether there is no reply yet and one may still come."""
    return any(not call.done() for call in calls) and not any(call.done() and not call.exception() for call in calls)


def _result(calls: Sequence[asyncio.Future[Completion]]) -> Completion:
    """Return the reply there is, or raise the first call's failure, with the cost of the others added."""
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
