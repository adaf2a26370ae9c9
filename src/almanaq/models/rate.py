"""When a call is made: limits on calls in flight, and on requests and tokens per minute."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar

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

    Tokens are estimated before a call and corrected by the server's count.
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
