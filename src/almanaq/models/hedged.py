"""HedgedModel: a call that takes far longer than others is made once more; the first reply counts."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

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
        started = _now()
        calls = [asyncio.ensure_future(self._timed(prompt))]
        try:
            while _undecided(calls):
                left = self._left(len(calls), _now() - started)
                if left <= 0:
                    calls.append(asyncio.ensure_future(self._timed(prompt)))
                    continue
                under_way = [call for call in calls if not call.done()]
                await asyncio.wait(under_way, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            return _result(calls)
        finally:
            under_way = [call for call in calls if not call.done()]
            for call in under_way:
                call.cancel()
            if under_way:
                await asyncio.gather(*under_way, return_exceptions=True)

    def _left(self, made: int, elapsed: float) -> float:
        """Give the seconds to wait for a reply before one more call is made, or before looking again."""
        # What is long may be learned only while the call is under way.
        deadline = self._after if self._after is not None else self._learned
        if not deadline or made == _MOST:
            return _LOOK
        return min(deadline * ((1 << made) - 1) - elapsed, _LOOK)

    async def _timed(self, prompt: Prompt) -> Completion:
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
        return Completion(completion.text, completion.usage + others)
    failure = calls[0].exception()
    assert failure is not None
    if isinstance(failure, FailedCall):
        failure.usage += others
    raise failure
