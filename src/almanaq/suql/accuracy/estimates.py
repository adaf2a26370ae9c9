"""How many rows pass, from a sample of them: an interval that holds."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from almanaq.errors import UsageError
from almanaq.suql.accuracy.counts import CountBound, Interval, exact_interval

_BATCH = 10


@dataclass(frozen=True, slots=True)
class Counting:
    """How a count is to be estimated.

    Attributes:
        width: stop when the interval is no wider than this share of the rows; None: ask about `calls` rows.
        calls: rows to ask about, at most.
        confidence: the probability with which the interval holds the count.
        seed: draws the rows.

    Raises:
        UsageError: a number is out of its range, or neither `width` nor `calls` is given.
    """

    width: float | None = None
    calls: int | None = None
    confidence: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        if self.width is None and self.calls is None:
            raise UsageError("estimate: say when to stop: width=0.1 (a share of the rows), or calls=200")
        if self.width is not None and not 0 < self.width <= 1:
            raise UsageError(f"width is {self.width}: it must be above 0 and at most 1")
        if self.calls is not None and self.calls < 1:
            raise UsageError(f"calls is {self.calls}: it must be at least 1")
        if not 0 < self.confidence < 1:
            raise UsageError(f"confidence is {self.confidence}: it must be between 0 and 1")

    def interval(self, rows: int, asked: int, passed: int) -> Interval:
        """Give the interval for the rows that pass, `passed` of the `asked` ones having done so.

        Where the width decides when to stop, the interval holds at all sizes of the sample at once; where the number
        of calls was fixed before, it is the exact one for that size, which is narrower.
        """
        alpha = 1 - self.confidence
        if self.width is None:
            return exact_interval(rows, asked, passed, alpha)
        bound = CountBound(rows, alpha / 2)
        return Interval(rows - bound.errors(asked, asked - passed), bound.errors(asked, passed))

    def batch(self, asked: int) -> int:
        """Give how many rows to ask next: where their number is fixed, all at once."""
        left = sys.maxsize if self.calls is None else self.calls - asked
        return left if self.width is None else min(left, max(_BATCH, asked // 10))

    def enough(self, rows: int, asked: int, passed: int) -> bool:
        """Say whether to stop."""
        if asked >= rows or (self.calls is not None and asked >= self.calls):
            return True
        found = self.interval(rows, asked, passed)
        return self.width is not None and found.high - found.low <= self.width * rows


@dataclass(frozen=True, slots=True)
class CountEstimate:
    """An estimate of how many rows of a query there are.

    Attributes:
        value: the best guess; low, high: the interval that holds the exact number with probability `confidence`.
        asked: rows that the model was asked about; rows: those that it would have been for the exact number.
    """

    value: int
    low: int
    high: int
    confidence: float
    asked: int
    rows: int
