"""RetryingModel: a call that failed is made again, after a wait."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from almanaq.errors import ModelCallError
from almanaq.models.failure import BASE, LONGEST, FailedCall, seconds_to_wait
from almanaq.models.protocols import Completion, LanguageModel, Prompt, Usage

_MOST_FORMS = 6
"""How many features of a request a server may refuse one after the other."""


class RetryingModel:
    """Tries a failed call again, after a random wait that doubles, or the one that the server asked for.

    The reply's usage holds what the failed attempts cost as well.

    Args:
        attempts: how often a call is made at most; one that only takes another form does not count.
        base: seconds; the n-th wait is random, between zero and base · 2ⁿ; after too many requests (429), longer.
    """

    def __init__(
        self, model: LanguageModel, *, attempts: int = 4, base: float = BASE, longest: float = LONGEST
    ) -> None:
        self.name = model.name
        self.bounds_calls = bool(getattr(model, "bounds_calls", False))
        self._model, self._attempts, self._base, self._longest = model, attempts, base, longest

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the first reply that succeeds; raises the last failure."""
        spent = Usage()
        attempt = forms = 0
        while True:
            try:
                completion = await self._model.complete(prompt)
                return replace(completion, usage=spent + completion.usage) if attempt or forms else completion
            except ModelCallError as failure:
                known = failure if isinstance(failure, FailedCall) else FailedCall(str(failure))
                spent += known.usage
                if known.at_once and forms < _MOST_FORMS:
                    forms += 1
                    continue
                attempt += 1
                if not known.retryable or attempt == self._attempts:
                    known.usage, known.tries = spent, attempt
                    raise known from failure
                wait = seconds_to_wait(attempt - 1, known, base=self._base, longest=self._longest)
                await asyncio.sleep(wait)
