"""When a call is made: how many at once, how often one that fails is tried again, and how long it may take in all."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TypeVar

from almanaq.errors import ModelCallError, ModelError
from almanaq.event_loops import PerLoop
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


calls_at_once: ContextVar[asyncio.Semaphore | None] = ContextVar("almanaq_calls_at_once", default=None)
"""The slots of the current query: at most as many as the model has."""


_FIRST_CALLS = 4
"""Calls out at a time until a model has replied: where it cannot be reached, or refuses the key, no other is made."""
PATIENCE = 0.25
"""Seconds that further calls wait for a first reply: a refusal comes sooner."""
_REFUSALS = 8
"""Refused requests, and no reply, that show that the key, the address or the model is wrong, and not a text."""


@dataclass(eq=False)
class _FirstCalls:
    """The calls of an event loop to a model that has not replied yet.

    Attributes:
        sent: how many of them are out.
        until: when the others go as well, unless a `problem` with all of them was found.
        refused: requests, each for one text, that failed in a way that concerns all where none is answered.
    """

    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_FIRST_CALLS))
    waiting: int = 0
    sent: int = 0
    refused: int = 0
    until: float | None = None
    problem: ModelError | None = None


class ConcurrentModel:
    """Limits the calls in flight in an event loop, and of each query; the others wait in order.

    Until the model has replied, few are made, for `patience` seconds: an error that concerns all ends the others.
    """

    bounds_calls = True

    def __init__(self, model: LanguageModel, limit: int = 64, *, patience: float = PATIENCE) -> None:
        self.name = model.name
        self._model, self._patience = model, patience
        self._slots = PerLoop(lambda: asyncio.Semaphore(limit))
        self._first = PerLoop(_FirstCalls)
        self._has_replied = not patience

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the reply, after waiting for a free slot."""
        slots, held = await self._slots.get(), list[asyncio.Semaphore]()
        try:
            for each in (calls_at_once.get(), slots):
                if each is not None:
                    await each.acquire()
                    held.append(each)
            return await (self._model.complete(prompt) if self._has_replied else self._complete_early(prompt))
        finally:
            # Released only after the reply is passed on, so that CachedModel stores it before the next call starts:
            # a killed process loses no more than the calls in flight.
            asyncio.get_running_loop().call_soon(_release, held)

    async def _complete_early(self, prompt: Prompt) -> Completion:
        first, clock = await self._first.get(), asyncio.get_running_loop().time
        if not first.waiting and not first.sent:
            first.until, first.problem = None, None
        has_turn = await self._wait_for_turn(first, clock)
        try:
            if first.problem is not None:
                raise first.problem
            if has_turn and self._has_replied:  # the next one that waits need not wait for this call
                first.turns.release()
                has_turn = False
            completion = await self._send_early(first, prompt, clock)
            self._has_replied = True
            return completion
        finally:
            if has_turn:
                first.turns.release()

    async def _wait_for_turn(self, first: _FirstCalls, clock: Callable[[], float]) -> bool:
        first.waiting += 1
        if first.until is None and first.turns.locked():  # the first call may have loaded modules for long
            first.until = clock() + self._patience
        try:
            while True:
                try:
                    async with asyncio.timeout_at(first.until):
                        return await first.turns.acquire()
                except TimeoutError:
                    if clock() >= (first.until or 0.0):  # a refusal may have moved it
                        return False
        finally:
            first.waiting -= 1

    async def _send_early(self, first: _FirstCalls, prompt: Prompt, clock: Callable[[], float]) -> Completion:
        first.sent += 1
        try:
            return await self._model.complete(prompt)
        except ModelCallError as failure:
            setup = failure.setup if isinstance(failure, FailedCall) else None
            if setup is None or self._has_replied:
                raise
            first.refused += not prompt.divisible
            first.until = clock() + self._patience
            if first.refused < _REFUSALS or first.sent > _FIRST_CALLS:
                raise
            first.problem = setup
            raise setup from failure
        except ModelError as problem:
            first.problem = problem
            raise
        finally:
            first.sent -= 1


def _release(held: Sequence[asyncio.Semaphore]) -> None:
    for each in held:
        each.release()
