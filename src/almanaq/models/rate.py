"""When a call is made: limits on calls in flight and on requests and tokens per minute; a spare call for a slow one."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import replace
from weakref import WeakKeyDictionary

from almanaq.event_loops import PerLoop
from almanaq.models.budget import estimate_tokens
from almanaq.models.protocols import Completion, LanguageModel, Prompt, Usage
from almanaq.models.retrying import FailedCall

calls_at_once: ContextVar[asyncio.Semaphore | None] = ContextVar("almanaq_calls_at_once", default=None)
"""The slots of the current query: at most as many as the model has."""


class ConcurrentModel:
    """Limits the calls in flight in an event loop, and those of each query to its own limit.

    The others wait in order.
    """

    bounds_calls = True

    def __init__(self, model: LanguageModel, limit: int = 64) -> None:
        self.name = model.name
        self._model = model
        self._slots = PerLoop(lambda: asyncio.Semaphore(limit))

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the reply, after waiting for a free slot."""
        slots = await self._slots.get()
        query, loop = calls_at_once.get(), asyncio.get_running_loop()
        if query is not None:
            await query.acquire()
        try:
            await slots.acquire()
            try:
                return await self._model.complete(prompt)
            finally:
                # Released only after the reply is passed on, so that CachedModel stores it before the next call starts:
                # a killed process loses no more than the calls in flight.
                loop.call_soon(slots.release)
        finally:
            if query is not None:
                loop.call_soon(query.release)


class Rate:
    """A limit on requests and tokens within any window of time, shared by threads and event loops.

    Args:
        requests, tokens: the limits; None: no limit.
        window: seconds.
        clock: returns the time, for tests.
    """

    def __init__(
        self,
        requests: int | None = None,
        tokens: int | None = None,
        *,
        window: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.requests, self.tokens, self.window = requests, tokens, window
        self._clock = clock
        self._past: deque[tuple[float, int, int]] = deque()
        self._used = (0, 0)
        self._lock = threading.Lock()

    def enter(self, tokens: int) -> float:
        """Enter a request and return 0.0; where it does not fit yet, return the seconds to wait."""
        now = self._clock()
        with self._lock:
            while self._past and self._past[0][0] <= now - self.window:
                _, old_requests, old_tokens = self._past.popleft()
                self._add(-old_requests, -old_tokens)
            requests_then, tokens_then = self._used[0] + 1, self._used[1] + tokens
            # With nothing in the window a request never fits better than now, however large it is.
            if not self._past or self._fits(requests_then, tokens_then):
                self._past.append((now, 1, tokens))
                self._add(1, tokens)
                return 0.0
            return self._wait(now, requests_then, tokens_then)

    def correct(self, requests: int, tokens: int) -> None:
        """Correct the estimate entered for a request by the difference to its real cost, which may be negative."""
        if requests or tokens:
            with self._lock:
                self._past.append((self._clock(), requests, tokens))
                self._add(requests, tokens)

    def _add(self, requests: int, tokens: int) -> None:
        self._used = self._used[0] + requests, self._used[1] + tokens

    def _fits(self, requests: int, tokens: int) -> bool:
        few_enough = self.requests is None or requests <= self.requests
        return few_enough and (self.tokens is None or tokens <= self.tokens)

    def _wait(self, now: float, requests: int, tokens: int) -> float:
        """Return the seconds until enough past requests have left the window."""
        for moment, old_requests, old_tokens in self._past:
            requests, tokens = requests - old_requests, tokens - old_tokens
            if self._fits(requests, tokens):
                return max(0.001, moment + self.window - now)
        return self.window


class RateLimitedModel:
    """Delays calls so that they stay below a rate.

    Tokens are estimated before a call and corrected by the server's count; hedged calls count too.
    """

    def __init__(self, model: LanguageModel, rate: Rate) -> None:
        self.name = model.name
        self._model, self._rate = model, rate

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the reply, after waiting until the rate allows the call."""
        expected = sum(estimate_tokens(m.content) for m in prompt.messages) + prompt.max_output_tokens // 4
        while wait := self._rate.enter(expected):  # noqa: ASYNC110 - the time to wait is known
            await asyncio.sleep(wait)
        try:
            completion = await self._model.complete(prompt)
        except FailedCall as failure:
            self._correct(failure.usage, expected)
            raise
        self._correct(completion.usage, expected)
        return completion

    def _correct(self, usage: Usage, expected: int) -> None:
        tokens = usage.input_tokens + usage.output_tokens
        self._rate.correct(max(0, usage.calls - 1), tokens - expected if tokens else 0)


_SAMPLES = 200
_MIN_SAMPLES = 20
_FACTOR = 4.0
_MIN_SECONDS = 2.0
_LOOK_SECONDS = 1.0
_MAX_CALLS = 3
_TIMER_SLACK = 0.001
"""Seconds by which a timer may fire early."""


class HedgedModel:
    """Repeats a call that takes too long, returns the first reply, and cancels the other call.

    Where the second call fails or hangs too, a third follows after twice the time; then the calls in flight are
    awaited.

    Args:
        after: seconds to wait before the second call. None learns them: four times the 95th percentile of replies so
            far, at least 2 seconds, and no second call before 20 replies.
    """

    def __init__(self, model: LanguageModel, after: float | None = None) -> None:
        self.name = model.name
        self._model, self._after = model, after
        self._seconds: deque[float] = deque(maxlen=_SAMPLES)
        self._learned, self._until_learning = 0.0, _MIN_SAMPLES
        self._watches: WeakKeyDictionary[asyncio.AbstractEventLoop, _Timer] = WeakKeyDictionary()

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the first reply; its usage counts all calls. Raises the failure of the first call when all fail.

        A streamed reply is never hedged: two would be shown interleaved.
        """
        if prompt.pieces is not None:
            return await self._model.complete(prompt)
        loop = asyncio.get_running_loop()
        watch = self._watches.get(loop) or self._watches.setdefault(loop, _Timer())
        task = asyncio.current_task()
        assert task is not None
        cancelled_before = task.cancelling()
        spares = _Spares(self, prompt, task, loop)
        watch.add(spares)
        try:
            try:
                # Few calls are ever repeated, so the first runs here, without the cost of a task.
                completion = await self.complete_timed(prompt, loop)
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

    def seconds_left(self, made: int, elapsed: float) -> float:
        """Return the seconds until the next spare call is due, or until the next look."""
        # The deadline may be learned while the call is in flight: look again.
        deadline = self._after if self._after is not None else self._learned
        if not deadline or made == _MAX_CALLS:
            return _LOOK_SECONDS
        return min(deadline * ((1 << made) - 1) - elapsed, _LOOK_SECONDS)

    async def complete_timed(self, prompt: Prompt, loop: asyncio.AbstractEventLoop) -> Completion:
        """Make one call and learn from its duration."""
        # Each physical call is timed alone: measured from the first call, a spare one would seem slow.
        started = loop.time()
        completion = await self._model.complete(prompt)
        self._learn(loop.time() - started)
        return completion

    def _learn(self, seconds: float) -> None:
        self._seconds.append(seconds)
        self._until_learning -= 1
        if self._until_learning <= 0:
            self._until_learning = _MIN_SAMPLES
            slow = sorted(self._seconds)[int(len(self._seconds) * 0.95)]
            self._learned = max(_MIN_SECONDS, _FACTOR * slow)


class _Timer:
    """Watches the first calls in flight in an event loop, with one timer for all.

    It holds no reference to the loop or the timer, as that would keep the loop alive.
    """

    def __init__(self) -> None:
        self._under_way: dict[_Spares, None] = {}
        self._next = math.inf

    def add(self, spares: _Spares) -> None:
        """Watch a call that begins."""
        self._under_way[spares] = None
        due = spares.started + spares.seconds_left(spares.started)
        if due < self._next:
            self._wait(spares.loop, due)

    def remove(self, spares: _Spares) -> None:
        """Stop watching a call."""
        del self._under_way[spares]

    def _wait(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        self._next = due
        loop.call_at(due, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start the spare calls that are due, and set the timer for the next one."""
        now = loop.time()
        if now < self._next - _TIMER_SLACK:
            return  # a timer set later fired sooner, and has set the next one
        self._next = math.inf
        lefts = [spares.look(now) for spares in self._under_way]
        if lefts:
            self._wait(loop, now + max(0.0, min(lefts)))


class _Spares:
    """The spare calls beside a first call that takes too long.

    Attributes:
        first: the outcome of the first call, set once there is a spare call; stays pending where the first call was
            cancelled because a spare one replied.
        replied: a spare call replied while the first was in flight, and the first call's task was cancelled.
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

    def seconds_left(self, now: float) -> float:
        """Return the seconds until the next spare call is due, or until the next look."""
        return self._model.seconds_left(1 + len(self.calls), now - self.started)

    def look(self, now: float) -> float:
        """Start a spare call if it is due; return the seconds until the next look."""
        remaining = self.seconds_left(now)
        if remaining <= 0:
            self._add()
            remaining = self.seconds_left(now)
        return remaining

    def _add(self) -> None:
        if not self.calls:
            self.first = self.loop.create_future()
        call = self.loop.create_task(self._model.complete_timed(self._prompt, self.loop))
        call.add_done_callback(self._on_done)
        self.calls.append(call)

    def _on_done(self, call: asyncio.Task[Completion]) -> None:
        good = not call.cancelled() and call.exception() is None
        if good and not self.first.done() and not self.replied:
            self.replied = True
            self._task.cancel()

    async def result(self) -> Completion:
        """Return the first reply of any call, after the first call has ended; raises its failure when all fail."""
        while _may_still_succeed(calls := [self.first, *self.calls]):
            remaining = self.seconds_left(self.loop.time())
            if remaining <= 0:
                self._add()
                continue
            under_way = [call for call in calls if not call.done()]
            await asyncio.wait(under_way, timeout=remaining, return_when=asyncio.FIRST_COMPLETED)
        return _collect_result(calls)

    async def end(self) -> None:
        """Cancel the calls in flight, and wait for them to end."""
        under_way = [call for call in self.calls if not call.done()]
        for call in under_way:
            call.cancel()
        if under_way:
            await asyncio.gather(*under_way, return_exceptions=True)


def _may_still_succeed(calls: Sequence[asyncio.Future[Completion]]) -> bool:
    """Return whether there is no reply yet and one may still come."""
    return any(not call.done() for call in calls) and not any(call.done() and not call.exception() for call in calls)


def _collect_result(calls: Sequence[asyncio.Future[Completion]]) -> Completion:
    """Return the reply, or raise the first call's failure, with the cost of the other calls added."""
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
