"""Wrappers of language models that each add one thing; WRAPPERS is the order in which they enclose a model.

A retry must pass the budget again, and must not hold a slot while it waits, so retrying encloses both; a hit of the
cache costs nothing, so caching encloses all.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from almanaq.errors import ModelCallError
from almanaq.models.budget import Budget
from almanaq.models.cached import CachedModel
from almanaq.models.clients import PerLoop
from almanaq.models.failure import FailedCall
from almanaq.models.prices import Price
from almanaq.models.protocols import Completion, LanguageModel, Prompt, Usage
from almanaq.models.tokens import estimate_tokens

_LONGEST_WAIT = 60.0


class RetryingModel:
    """Tries a failed call again, after a random wait that doubles, or the one that the server asked for.

    The reply's usage holds what the failed attempts cost as well.

    Args:
        attempts: how often a call is made at most.
        base: seconds; the n-th wait is random, between zero and base · 2ⁿ.
    """

    def __init__(self, model: LanguageModel, *, attempts: int = 4, base: float = 0.5, longest: float = 8.0) -> None:
        self.name = model.name
        self._model, self._attempts, self._base, self._longest = model, attempts, base, longest
        self._random = random.Random()

    async def complete(self, prompt: Prompt) -> Completion:
        """Give the first reply that succeeds; raises the last failure."""
        spent = Usage()
        for attempt in range(self._attempts):
            try:
                completion = await self._model.complete(prompt)
                return Completion(completion.text, spent + completion.usage)
            except ModelCallError as failure:
                known = failure if isinstance(failure, FailedCall) else FailedCall(str(failure))
                spent += known.usage
                if not known.retryable or attempt + 1 == self._attempts:
                    known.usage = spent
                    raise known from failure
                await asyncio.sleep(self._wait(attempt, known.retry_after))
        raise AssertionError("a loop over attempts ends in a reply or a failure")

    def _wait(self, attempt: int, asked: float | None) -> float:
        jitter = self._random.uniform(0, min(self._longest, self._base * 2**attempt))
        # Calls that were refused together are asked to come back together: the jitter spreads them.
        return jitter if asked is None else min(asked, _LONGEST_WAIT) + jitter / 4


class ConcurrentModel:
    """Lets at most `limit` calls be under way at once in an event loop; the others wait their turn."""

    def __init__(self, model: LanguageModel, limit: int = 64) -> None:
        self.name = model.name
        self._model = model
        self._slots = PerLoop(lambda: _Slots(limit))

    async def complete(self, prompt: Prompt) -> Completion:
        """Give the reply, once there was a free slot."""
        slots = await self._slots.get()
        async with slots.semaphore:
            return await self._model.complete(prompt)


class _Slots:
    def __init__(self, limit: int) -> None:
        self.semaphore = asyncio.Semaphore(limit)

    async def close(self) -> None:
        """Nothing is held."""


class MeteredModel:
    """Counts what calls cost, and makes none that could exceed the budget.

    Args:
        price: what tokens cost, to reserve money; None where it is unknown.
    """

    def __init__(self, model: LanguageModel, budget: Budget, price: Price | None = None) -> None:
        self.name = model.name
        self._model, self.budget, self._price = model, budget, price

    @property
    def usage(self) -> Usage:
        """What has been spent so far, failed calls included."""
        return self.budget.usage

    async def complete(self, prompt: Prompt) -> Completion:
        """Give the reply; raises BudgetExceeded before a call that might not fit."""
        most = self._most(prompt)
        while not self.budget.reserve(most):  # noqa: ASYNC110 - calls settle in any loop; an asyncio.Event has one
            await asyncio.sleep(0.005)
        spent = Usage(calls=1)
        try:
            completion = await self._model.complete(prompt)
            spent = completion.usage
            return completion
        except FailedCall as failure:
            spent = failure.usage
            raise
        finally:
            self.budget.settle(most, spent)

    def _most(self, prompt: Prompt) -> Usage:
        read = sum(estimate_tokens(message.content) for message in prompt.messages) if self._counts_tokens else 0
        written = prompt.max_output_tokens if self._counts_tokens else 0
        return Usage(1, 0, read, written, None if self._price is None else self._price.of(read, written))

    @property
    def _counts_tokens(self) -> bool:
        return self.budget.tokens is not None or self.budget.money is not None


Wrapper = Callable[..., LanguageModel]

WRAPPERS: tuple[Wrapper, ...] = (CachedModel, RetryingModel, ConcurrentModel, MeteredModel)
"""The order in which wrappers enclose a model, outermost first."""
