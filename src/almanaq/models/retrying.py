"""RetryingModel: a call that failed is made again, after a wait."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace

from almanaq.errors import ModelCallError
from almanaq.models.failure import LONGEST_WAIT, FailedCall
from almanaq.models.protocols import Completion, LanguageModel, Prompt, Usage

_MOST_FORMS = 6
"""How many features of a request a server may refuse one after the other."""
_TOO_MANY_FACTOR = 8
"""Servers count requests by the minute: after too many of them, a wait is so many times as long."""


class RetryingModel:
    """Tries a failed call again, after a random wait that doubles, or the one that the server asked for.

    The reply's usage holds what the failed attempts cost as well.

    Args:
        attempts: how often a call is made at most; one that only takes another form does not count.
        base: seconds; the n-th wait is random, between zero and base · 2ⁿ; after too many requests (429), longer.
    """

    def __init__(self, model: LanguageModel, *, attempts: int = 4, base: float = 0.5, longest: float = 8.0) -> None:
        self.name = model.name
        self._model, self._attempts, self._base, self._longest = model, attempts, base, longest
        self._random = random.Random()

    async def complete(self, prompt: Prompt) -> Completion:
        """Give the first reply that succeeds; raises the last failure."""
        spent = Usage()
        attempt = forms = 0
        while True:
            try:
                completion = await self._model.complete(prompt)
                return replace(completion, usage=spent + completion.usage)
            except ModelCallError as failure:
                known = failure if isinstance(failure, FailedCall) else FailedCall(str(failure))
                spent += known.usage
                if known.at_once and forms < _MOST_FORMS:
                    forms += 1
                    continue
                attempt += 1
                if not known.retryable or attempt == self._attempts:
                    known.usage = spent
                    raise known from failure
                await asyncio.sleep(self._wait(attempt - 1, known))

    def _wait(self, attempt: int, failure: FailedCall) -> float:
        most, asked = min(self._longest, self._base * 2**attempt), failure.retry_after
        jitter = self._random.uniform(0, most)
        # What is no number (a model of someone else's may say so) is no wish either.
        if asked is not None and asked == asked:
            # Calls that were refused together are asked to come back together: the jitter spreads them.
            return min(max(0.0, asked), LONGEST_WAIT) + jitter / 4
        return (most + jitter) / 2 * _TOO_MANY_FACTOR if failure.too_many else jitter
