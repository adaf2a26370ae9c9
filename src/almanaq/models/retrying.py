"""Calls that fail: what is known of them, how often one is tried again, and how long it may take in all."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, replace
from typing import TypeVar

from almanaq.errors import ModelCallError, ModelError
from almanaq.models.protocols import NO_USAGE, Completion, LanguageModel, Prompt, Usage, forget_reply

LONGEST_RETRY_AFTER = 60.0
"""Maximum seconds that a server's retry-after is honoured for."""
_BASE_WAIT, _LONGEST_BACKOFF = 0.5, 8.0
"""Seconds: the n-th wait is random, between zero and _BASE_WAIT · 2ⁿ, and at most _LONGEST_BACKOFF."""
_TOO_MANY_FACTOR = 8
"""Servers count requests per minute: after too many of them, waits are longer by this factor."""


E = TypeVar("E", bound=Exception)


@dataclass(eq=False, repr=False)
class FailedCall(ModelCallError):
    """One call to a model failed.

    Attributes:
        retry_after: seconds that the server asked to wait; None when it named none.
        retryable: False when the same request cannot succeed later (it is too long, or was refused).
        at_once: the request will be repeated in another form, without waiting.
        too_long: the request exceeds the model's context.
        cut: the reply was cut at its length limit.
        too_many: the server is over its rate limit and needs a longer wait.
        cause: what failed, in a few words without text or address.
        tries: how often the request was made.
        usage: the cost of the failed attempts, which budgets must count.
        sure: False when the server may have charged more than `usage`, as no complete reply came.
        reached: False when the request did not reach the server.
        setup: the error that this is unless another text is answered: the key, the address or the model is wrong.
    """

    message: str
    _: KW_ONLY
    retry_after: float | None = None
    retryable: bool = True
    usage: Usage = NO_USAGE
    sure: bool = True
    reached: bool = True
    cause: str = "the call failed"
    at_once: bool = False
    too_long: bool = False
    too_many: bool = False
    cut: bool = False
    setup: ModelError | None = None
    tries: int = 1

    @property
    def befalls_others(self) -> bool:
        """Whether other requests would fail now as well: the server is over its limit, or cannot be reached."""
        return self.too_many or not self.reached


class UnusableReply(FailedCall):
    """The server replied correctly, but the model's text is unusable: empty, cut off, declined, or malformed."""


@contextmanager
def raise_public_errors() -> Iterator[None]:
    """Raise a failed call as the public error that it stands for, with the FailedCall as its cause."""
    try:
        yield
    except FailedCall as failure:
        raise to_public_error(failure) from failure


def to_public_error(error: E) -> E | ModelError:
    """Return a failed call as the public error that it stands for, and any other error unchanged."""
    if not isinstance(error, FailedCall):
        return error
    known = error.setup or ModelCallError(str(error))
    known.__cause__ = error
    return known


def describe_failure(failure: ModelCallError) -> tuple[str, int]:
    """Return why a call failed, in a few words without text or address, and how often it was tried."""
    if isinstance(failure, FailedCall):
        return failure.cause, failure.tries
    return ("no reply in time" if isinstance(failure.__cause__, TimeoutError) else "the call failed"), 1


def seconds_to_wait(attempt: int, failure: FailedCall, *, base: float = _BASE_WAIT) -> float:
    """Return the seconds to wait after `attempt` earlier failures: as the server asked, else a doubling backoff."""
    most, asked = min(_LONGEST_BACKOFF, base * 2**attempt), failure.retry_after
    jitter = random.uniform(0, most)
    # NaN, which a third-party model may pass on, counts as no request to wait.
    if asked is not None and asked == asked:
        # Jitter, as calls that were refused together would otherwise return together.
        return min(max(0.0, asked), LONGEST_RETRY_AFTER) + jitter / 4
    return (most + jitter) / 2 * _TOO_MANY_FACTOR if failure.too_many else jitter


_DIVISIBLE_ATTEMPTS = 2
"""Attempts for a request whose parts are tried next; one where each may be charged for without a reply."""
_MAX_FORMS = 6
"""How many request features a server may refuse, one after the other."""


class RetryingModel:
    """Retries a failed call after a random, doubling backoff, or the wait that the server asked for.

    The usage includes the failed attempts; a repetition in another form is none.
    """

    def __init__(self, model: LanguageModel, *, attempts: int = 4, base: float = _BASE_WAIT) -> None:
        self.name = model.name
        self.bounds_calls = bool(getattr(model, "bounds_calls", False))
        self._model, self._attempts, self._base = model, attempts, base

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the first successful reply; raises the last failure."""
        spent, attempt, forms = NO_USAGE, 0, 0
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
                if not known.retryable or attempt >= self._most_attempts(prompt, known):
                    known.usage, known.tries = spent, attempt
                    raise known from failure
                await asyncio.sleep(seconds_to_wait(attempt - 1, known, base=self._base))

    def _most_attempts(self, prompt: Prompt, failure: FailedCall) -> int:
        if not prompt.divisible or failure.befalls_others:
            return self._attempts
        return min(self._attempts, _DIVISIBLE_ATTEMPTS if failure.sure else 1)


class DeadlineModel:
    """A language model that must reply within `seconds`, retries included."""

    def __init__(self, model: LanguageModel, seconds: float) -> None:
        self.name = model.name
        self._model, self._seconds = model, seconds

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the reply; raises ModelCallError when it is late."""
        try:
            async with asyncio.timeout(self._seconds):
                return await self._model.complete(prompt)
        except TimeoutError as error:
            raise ModelCallError(
                f"{self.name} did not reply within {self._seconds:g} s; give it more with --deadline"
            ) from error

    def forget(self, prompt: Prompt) -> None:
        """Drop an unusable reply, where the model caches replies."""
        forget_reply(self._model, prompt)
