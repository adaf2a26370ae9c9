"""Calls that fail: what a failure says, when a call is tried again, and how long it may take in all."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

from almanaq.errors import ModelCallError
from almanaq.models.protocols import Completion, LanguageModel, Prompt, Usage

LONGEST_RETRY_AFTER = 60.0
"""Seconds that a server may ask to wait; where it asks for more, the call is tried again after these."""
BASE_WAIT, LONGEST_BACKOFF = 0.5, 8.0
"""Seconds: the n-th wait is random, between zero and BASE_WAIT · 2ⁿ, and at most LONGEST_BACKOFF."""
_TOO_MANY_FACTOR = 8
"""Servers count requests by the minute: after too many of them, a wait is so many times as long."""


E = TypeVar("E", bound=Exception)


class FailedCall(ModelCallError):
    """One call to a model failed.

    Attributes:
        retry_after: seconds that the server asked to wait; None when it named none.
        retryable: False when the same request cannot succeed later (it is too long, or was refused).
        at_once: the request will be made in another form, so that there is nothing to wait for.
        too_long: the model cannot read so much at once.
        cut: the reply ended at the limit of its length, not where the model was done.
        too_many: the server answers fewer requests than it was sent; it needs a rest, not only another try.
        cause: what failed, in a few words that say nothing of the text or the address.
        tries: how often the request was made.
        usage: what the failed attempts cost all the same, so that no budget loses sight of them.
        sure: False when the server may have charged more than `usage` says: no whole reply came.
    """

    def __init__(
        self,
        message: str,
        *,
        retry_after: float | None = None,
        retryable: bool = True,
        usage: Usage | None = None,
        sure: bool = True,
        cause: str = "the call failed",
    ) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.retryable = retryable
        self.at_once = self.too_long = self.too_many = self.cut = False
        self.usage = usage or Usage()
        self.sure = sure
        self.cause, self.tries = cause, 1


class UnusableReply(FailedCall):
    """The server answered as it should, and the model's words are of no use: none, cut off, declined, or malformed."""


@contextmanager
def raise_public_errors() -> Iterator[None]:
    """Let a failed call leave as the ModelCallError that users know; what only retries look at stays its cause."""
    try:
        yield
    except FailedCall as failure:
        raise to_public_error(failure) from failure


def to_public_error(error: E) -> E | ModelCallError:
    """Return a failed call as the ModelCallError that users know, and any other error as it is."""
    if not isinstance(error, FailedCall):
        return error
    known = ModelCallError(str(error))
    known.__cause__ = error
    return known


def describe_failure(failure: ModelCallError) -> tuple[str, int]:
    """Return what made a call fail, in a few words without the text or the address, and how often it was tried."""
    if isinstance(failure, FailedCall):
        return failure.cause, failure.tries
    return ("no reply in time" if isinstance(failure.__cause__, TimeoutError) else "the call failed"), 1


def seconds_to_wait(
    attempt: int, failure: FailedCall, *, base: float = BASE_WAIT, longest: float = LONGEST_BACKOFF
) -> float:
    """Return the seconds to wait before a call is made again: those the server asked for, else random ones that double.

    Args:
        attempt: how many attempts had failed before this one.
    """
    most, asked = min(longest, base * 2**attempt), failure.retry_after
    jitter = random.uniform(0, most)
    # What is no number (a model of someone else's may say so) is no wish either.
    if asked is not None and asked == asked:
        # Calls that were refused together are asked to come back together: the jitter spreads them.
        return min(max(0.0, asked), LONGEST_RETRY_AFTER) + jitter / 4
    return (most + jitter) / 2 * _TOO_MANY_FACTOR if failure.too_many else jitter


_MAX_FORMS = 6
"""How many features of a request a server may refuse one after the other."""


class RetryingModel:
    """Tries a failed call again, after a random wait that doubles, or the one that the server asked for.

    The reply's usage holds what the failed attempts cost as well.

    Args:
        attempts: how often a call is made at most; one that only takes another form does not count.
        base: seconds; the n-th wait is random, between zero and base · 2ⁿ; after too many requests (429), longer.
    """

    def __init__(
        self, model: LanguageModel, *, attempts: int = 4, base: float = BASE_WAIT, longest: float = LONGEST_BACKOFF
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
                if known.at_once and forms < _MAX_FORMS:
                    forms += 1
                    continue
                attempt += 1
                if not known.retryable or attempt == self._attempts:
                    known.usage, known.tries = spent, attempt
                    raise known from failure
                wait = seconds_to_wait(attempt - 1, known, base=self._base, longest=self._longest)
                await asyncio.sleep(wait)


class DeadlineModel:
    """A language model whose every reply must come within `seconds`."""

    def __init__(self, model: LanguageModel, seconds: float) -> None:
        self.name = model.name
        self._model, self._seconds = model, seconds

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the reply; raises ModelCallError when it does not come in time."""
        try:
            async with asyncio.timeout(self._seconds):
                return await self._model.complete(prompt)
        except TimeoutError as error:
            raise ModelCallError(
                f"{self.name} did not reply within {self._seconds:g} s; give it more with --deadline"
            ) from error

    def forget(self, prompt: Prompt) -> None:
        """Drop the reply to a prompt that turned out to be of no use, where the model keeps replies."""
        getattr(self._model, "forget", lambda _: None)(prompt)
