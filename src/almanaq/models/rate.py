"""RateLimitedModel: at most so many requests and tokens in any minute, as servers count them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable

from almanaq.models.failure import FailedCall
from almanaq.models.protocols import Completion, LanguageModel, Prompt, Usage
from almanaq.models.token_estimate import estimate_tokens


class Rate:
    """A limit on requests and tokens within any window of time, shared by threads and event loops.

    Args:
        requests, tokens: the limits; None: none.
        window: seconds.
        clock: gives the time, for tests.
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
        """Enter a request and give 0.0; where it does not fit yet, give the seconds until it may."""
        now = self._clock()
        with self._lock:
            while self._past and self._past[0][0] <= now - self.window:
                _, old_requests, old_tokens = self._past.popleft()
                self._add(-old_requests, -old_tokens)
            requests_then, tokens_then = self._used[0] + 1, self._used[1] + tokens
            # One request alone is let through whatever its size: it can never fit better than now.
            if not self._past or self._fits(requests_then, tokens_then):
                self._past.append((now, 1, tokens))
                self._add(1, tokens)
                return 0.0
            return self._wait(now, requests_then, tokens_then)

    def correct(self, requests: int, tokens: int) -> None:
        """Enter what a request took beyond what was entered for it; less than was entered may also be said."""
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
        """Return the seconds until enough of the past has left the window."""
        for moment, old_requests, old_tokens in self._past:
            requests, tokens = requests - old_requests, tokens - old_tokens
            if self._fits(requests, tokens):
                return max(0.001, moment + self.window - now)
        return self.window


class RateLimitedModel:
    """Makes calls no faster than a rate allows; the others wait.

    Tokens are estimated before a call and corrected by what the server counted; calls that were made twice count too.
    """

    def __init__(self, model: LanguageModel, rate: Rate) -> None:
        self.name = model.name
        self._model, self._rate = model, rate

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the reply, once the rate allowed the call."""
        expected = sum(estimate_tokens(m.content) for m in prompt.messages) + prompt.max_output_tokens // 4
        while wait := self._rate.enter(expected):  # noqa: ASYNC110 - the time to wait is known, and nobody signals it
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
