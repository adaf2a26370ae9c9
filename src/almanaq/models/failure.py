"""FailedCall: what one failed call cost, and whether and when it is worth trying again."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from almanaq.errors import ModelCallError
from almanaq.models.protocols import Usage

LONGEST_WAIT = 60.0
"""Seconds that a server may ask to wait; where it asks for more, the call is tried again after these."""
BASE, LONGEST = 0.5, 8.0
"""Seconds: the n-th wait is random, between zero and BASE · 2ⁿ, and at most LONGEST."""
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
def in_public() -> Iterator[None]:
    """Let a failed call leave as the ModelCallError that users know; what only retries look at stays its cause."""
    try:
        yield
    except FailedCall as failure:
        raise as_public(failure) from failure


def as_public(error: E) -> E | ModelCallError:
    """Return a failed call as the ModelCallError that users know, and any other error as it is."""
    if not isinstance(error, FailedCall):
        return error
    known = ModelCallError(str(error))
    known.__cause__ = error
    return known


def cause_of(failure: ModelCallError) -> tuple[str, int]:
    """Return what made a call fail, in a few words without the text or the address, and how often it was tried."""
    if isinstance(failure, FailedCall):
        return failure.cause, failure.tries
    return ("no reply in time" if isinstance(failure.__cause__, TimeoutError) else "the call failed"), 1


def seconds_to_wait(attempt: int, failure: FailedCall, *, base: float = BASE, longest: float = LONGEST) -> float:
    """Return the seconds to wait before a call is made again: those the server asked for, else random ones that double.

    Args:
        attempt: how many attempts had failed before this one.
    """
    most, asked = min(longest, base * 2**attempt), failure.retry_after
    jitter = random.uniform(0, most)
    # What is no number (a model of someone else's may say so) is no wish either.
    if asked is not None and asked == asked:
        # Calls that were refused together are asked to come back together: the jitter spreads them.
        return min(max(0.0, asked), LONGEST_WAIT) + jitter / 4
    return (most + jitter) / 2 * _TOO_MANY_FACTOR if failure.too_many else jitter
