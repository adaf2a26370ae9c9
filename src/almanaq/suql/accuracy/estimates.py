"""How many rows pass, from a sample of them without replacement: bounds and intervals that hold."""

from __future__ import annotations

import bisect
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from almanaq.errors import BudgetExceeded, UsageError

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class CountBound:
    """An upper bound on a count that holds at every size of the sample at once, with probability 1 - `alpha`.

    A set of `size` holds an unknown number of errors. It is sampled without replacement, one after another. The
    prior-posterior ratio of a beta-binomial prior over that number is a martingale under the true one, so that it
    reaches 1 / alpha with probability alpha at most, whenever one looks (Waudby-Smith and Ramdas, 2020). A prior
    near the truth makes the bound tight; any prior makes it valid, as long as it was chosen before the sample.

    Attributes:
        size: the number of members.
        alpha: the probability with which the bound may fail, over all looks together.
        prior: the two parameters of the beta-binomial prior over the number of errors.
    """

    size: int
    alpha: float
    prior: tuple[float, float] = (1.0, 1.0)

    def errors(self, sampled: int, found: int) -> int:
        """Return the most errors that the set may hold, `found` of them among the `sampled` members."""
        if not 0 <= found <= sampled <= self.size:
            raise ValueError(f"{found} errors among {sampled} of {self.size}")
        most = self.size - (sampled - found)
        likely = min(most, max(found, round(self.size * found / sampled))) if sampled else found
        a, b = self.prior
        seen = _log_choose(sampled, found) + _log_beta(found + a, sampled - found + b) - _log_beta(a, b)
        least = math.log(self.alpha) + seen
        return _last(likely, most, lambda count: _log_likelihood(self.size, count, sampled, found) > least)


@dataclass(frozen=True, slots=True)
class Interval:
    low: int
    high: int


def exact_interval(size: int, sampled: int, found: int, alpha: float) -> Interval:
    """Return the interval for the number of members of a kind in a set of `size`, at one fixed size of the sample.

    It inverts both one-sided hypergeometric tests at alpha / 2 (Clopper and Pearson's for finite sets), so that it
    covers the truth with probability 1 - alpha at least.
    """
    if not 0 <= found <= sampled <= size:
        raise ValueError(f"{found} among {sampled} of {size}")
    least, most = found, size - (sampled - found)
    likely = min(most, max(least, round(size * found / sampled))) if sampled else least
    high = _last(likely, most, lambda count: _at_most(size, count, sampled, found) > alpha / 2)
    mirrored = _last(
        size - likely, size - least, lambda count: _at_most(size, count, sampled, sampled - found) > alpha / 2
    )
    return Interval(size - mirrored, high)


def _at_most(size: int, count: int, sampled: int, found: int) -> float:
    low = max(0, sampled - (size - count))
    terms = (_log_likelihood(size, count, sampled, k) for k in range(low, found + 1))
    return math.fsum(math.exp(term) for term in terms)


def _last(first: int, last: int, holds: Callable[[int], bool]) -> int:
    """Return the last number, `first` at least, for which a condition holds that stays false once it is."""
    return first + bisect.bisect_left(range(first + 1, last + 1), True, key=lambda number: not holds(number))


def _log_likelihood(size: int, count: int, sampled: int, found: int) -> float:
    if found > count or sampled - found > size - count:
        return -math.inf
    return _log_choose(count, found) + _log_choose(size - count, sampled - found) - _log_choose(size, sampled)


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


# --- means, and what a proxy makes of them ----------------------------------------------------------------------------


def bounded_mean(values: Floats, size: int, bounds: tuple[float, float], alpha: float) -> tuple[float, float]:
    """Return an interval for the mean of `size` numbers within bounds, from some drawn without replacement.

    It holds with probability 1 - alpha at any size of the sample: the narrower of Hoeffding and Serfling's, and the
    empirical one of Bernstein and Serfling (Bardenet and Maillard, 2015), each at alpha / 2.
    """
    low, high = bounds
    count = len(values)
    if not count or values.min() < low or values.max() > high:
        raise ValueError("no numbers, or one outside of the bounds")
    mean = float(values.mean())
    if count >= size:
        return mean, mean
    left = 1 - (count - 1) / size if 2 * count <= size else (1 - count / size) * (1 + 1 / count)
    hoeffding = (high - low) * math.sqrt(left * math.log(4 / alpha) / (2 * count))
    spread = math.log(10 / (alpha / 2))
    bernstein = float(values.std()) * math.sqrt(2 * left * spread / count)
    bernstein += (7 / 3 + 3 / math.sqrt(2)) * (high - low) * spread / count
    half = min(hoeffding, bernstein)
    return max(low, mean - half), min(high, mean + half)


def asymptotic_mean(values: Floats, size: int, alpha: float) -> tuple[float, float]:
    """Return an interval for the mean of `size` numbers that holds with probability 1 - alpha as the sample grows."""
    count = len(values)
    if count < 2:
        raise ValueError("an interval needs two numbers")
    return _normal(float(values.mean()), float(values.var(ddof=1)) / count * max(0.0, 1 - count / size), alpha)


def assisted_mean(
    said: NDArray[np.bool_], expected: Floats, of_all: float, size: int, alpha: float
) -> tuple[float, float, float]:
    """Return the mean of what a model says of a set, and an interval, from a sample and a proxy's scores of all.

    The proxy's mean over the whole set is known; what it is off by is learned from the sample, and weighs as much as
    makes the variance least (Angelopoulos, Duchi and Zrnic, 2023: PPI++). It holds as the sample grows.
    """
    labels = said.astype(np.float64)
    variance = float(expected.var(ddof=1))
    weight = float(np.cov(labels, expected)[0, 1]) / variance if variance > 0 else 0.0
    mean = float(labels.mean()) + weight * (of_all - float(expected.mean()))
    left = max(0.0, 1 - len(labels) / size)
    rest = float((labels - weight * expected).var(ddof=2)) / len(labels) * left
    return mean, *_normal(mean, rest, alpha)


def _normal(mean: float, variance: float, alpha: float) -> tuple[float, float]:
    half = NormalDist().inv_cdf(1 - alpha / 2) * math.sqrt(variance)
    return mean - half, mean + half


# --- what is said of a query

LEAST_ASSISTED = 200
"""Rows that must be asked before a proxy may narrow an interval: with fewer it holds less often than it says."""
_LEAST_OF_EACH = 30
_BATCH = 10
Method = Literal["exact", "anytime", "bounded", "asymptotic"]
"""How surely an interval holds: at the size of the sample, at all sizes at once, for numbers within bounds, or only as
the sample grows."""


@dataclass(frozen=True, slots=True)
class Counting:
    """How a count is to be estimated.

    Attributes:
        width: stop when the interval is no wider than this share of the rows; None: ask about `calls` rows.
        calls: rows to ask about, at most.
        confidence: the probability with which the interval holds the count.
        seed: draws the rows.
        proxy: what narrows the interval, as `Accuracy` has it; None: nothing.
    """

    width: float | None = None
    calls: int | None = None
    confidence: float = 0.95
    seed: int = 0
    proxy: str | None = None

    def __post_init__(self) -> None:
        if self.proxy is not None and (self.width is not None or (self.calls or 0) < LEAST_ASSISTED):
            raise UsageError(
                f"estimate: with a proxy give calls of {LEAST_ASSISTED} or more, and no width: below, its intervals "
                "hold less often than they say"
            )
        if self.width is None and self.calls is None:
            raise UsageError("estimate: say when to stop: width=0.1 (a share of the rows), or calls=200")
        if self.width is not None and not 0 < self.width <= 1:
            raise UsageError(f"width is {self.width}: it must be above 0 and at most 1")
        if self.calls is not None and self.calls < 1:
            raise UsageError(f"calls is {self.calls}: it must be at least 1")
        if not 0 < self.confidence < 1:
            raise UsageError(f"confidence is {self.confidence}: it must be between 0 and 1")

    def interval(self, rows: int, asked: int, passed: int) -> Interval:
        """Return the interval for the rows that pass, `passed` of the `asked` ones having done so.

        Where the width decides when to stop, the interval holds at all sizes of the sample at once; where the number
        of calls was fixed before, it is the exact one for that size, which is narrower.
        """
        alpha = 1 - self.confidence
        if self.width is None:
            return exact_interval(rows, asked, passed, alpha)
        bound = CountBound(rows, alpha / 2)
        return Interval(rows - bound.errors(asked, asked - passed), bound.errors(asked, passed))

    @property
    def method(self) -> Method:
        return "exact" if self.width is None else "anytime"

    def may_assist(self, rows: int, asked: int, passed: int) -> bool:
        """Return whether a proxy may narrow the interval: it has labels enough of either kind, and rows to score."""
        few = min(passed, asked - passed) < _LEAST_OF_EACH
        return self.proxy is not None and LEAST_ASSISTED <= asked < rows and not few

    def assisted(self, rows: int, said: Sequence[bool], sampled: Floats, of_all: float) -> tuple[int, Interval]:
        """Return a guess of the rows that pass and its interval, by a proxy's scores."""
        labels = np.array(said, bool)
        passed = int(labels.sum())
        found = assisted_mean(labels, sampled, of_all, rows, 1 - self.confidence)
        mean, low, high = (round(rows * share) for share in found)
        surely, most = passed, rows - (len(labels) - passed)
        return min(most, max(surely, mean)), Interval(max(surely, low), min(most, high))

    def batch(self, asked: int) -> int:
        """Return how many rows to ask next: where their number is fixed, all at once."""
        left = sys.maxsize if self.calls is None else self.calls - asked
        return left if self.width is None else min(left, max(_BATCH, asked // 10))

    def refuse_over(self, room: int | None, rows: int) -> None:
        """Raise BudgetExceeded where a fixed number of calls is above what the budget has left."""
        wanted = min(rows, self.calls or 0) if self.width is None else 0
        if room is not None and wanted > room:
            raise BudgetExceeded(
                f"estimate: {wanted:,} rows are to be asked about, and the budget has {room:,} calls left: give fewer "
                "calls, or raise max_calls; nothing was asked"
            )

    def should_stop(self, rows: int, asked: int, passed: int) -> bool:
        if asked >= rows or (self.calls is not None and asked >= self.calls):
            return True
        found = self.interval(rows, asked, passed)
        return self.width is not None and found.high - found.low <= self.width * rows


@dataclass(frozen=True, slots=True)
class Sample:
    """What rows drawn at random say.

    Attributes:
        rows: of how many they were drawn.
        values: what each says, None where it does not; of a filter, whether it passes.
        stopped: why they are fewer than were wanted, where the budget ended first.
        surely: rows that pass a filter without being asked about; `rows` leaves them out.
        scores: of a proxy, for all rows, those asked about first; None where it may not narrow the interval.
    """

    rows: int
    values: Sequence[Any]
    stopped: str = ""
    surely: int = 0
    scores: Floats | None = None


@dataclass(frozen=True, slots=True)
class CountEstimate:
    """An estimate of how many rows of a query there are.

    Attributes:
        value: the best guess; low, high: the interval that holds the exact number with probability `confidence`.
        asked: rows that the model was asked about; rows: those that it would have been for the exact number.
        method: how surely the interval holds.
        stopped: why the interval is wider than was wanted, where the budget ended first; it holds all the same.
    """

    value: int
    low: int
    high: int
    confidence: float
    asked: int
    rows: int
    method: Method = "exact"
    stopped: str = ""


@dataclass(frozen=True, slots=True)
class GroupEstimate:
    """How many rows have one answer; `answer` None stands for those of which the texts do not say."""

    answer: str | None
    value: int
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class GroupEstimates:
    """An estimate of how many rows have each of an answer's options.

    Attributes:
        groups: one for each option, and the last for rows without an answer.
        confidence: the probability with which all the intervals hold at once.
        asked: rows that the model was asked about; rows: those that it would have been for the exact numbers.
        stopped: why the intervals are wider than was wanted, where the budget ended first; they hold all the same.
    """

    groups: tuple[GroupEstimate, ...]
    confidence: float
    asked: int
    rows: int
    method: Method
    stopped: str = ""


@dataclass(frozen=True, slots=True)
class AverageEstimate:
    """An estimate of the mean of a numeric answer, over the rows that have one.

    Attributes:
        value: the mean of the rows asked; low, high: the interval that holds the mean with probability `confidence`.
        method: "bounded" holds at this size of the sample; "asymptotic" only as it grows.
    """

    value: float
    low: float
    high: float
    confidence: float
    asked: int
    rows: int
    method: Method


@dataclass(frozen=True, slots=True)
class RowCounting:
    counting: Counting

    def should_stop(self, rows: int, values: Sequence[bool]) -> bool:
        return self.counting.should_stop(rows, len(values), sum(values))

    def estimate(self, sample: Sample) -> CountEstimate:
        counting, rows, values, surely = self.counting, sample.rows, sample.values, sample.surely
        asked, passed = len(values), sum(values)
        guess = round(rows * passed / asked) if asked else 0
        found, method = counting.interval(rows, asked, passed), counting.method
        if sample.scores is not None:
            guess, found = counting.assisted(rows, values, sample.scores[:asked], float(sample.scores.mean()))
            method = "asymptotic"
        low, high = surely + found.low, surely + found.high
        return CountEstimate(surely + guess, low, high, counting.confidence, asked, rows, method, sample.stopped)


@dataclass(frozen=True, slots=True)
class GroupCounting:
    counting: Counting
    options: tuple[str, ...]

    @property
    def _each(self) -> Counting:
        return replace(self.counting, confidence=1 - (1 - self.counting.confidence) / (len(self.options) + 1))

    def should_stop(self, rows: int, values: Sequence[str | None]) -> bool:
        counts = [values.count(option) for option in (*self.options, None)]
        return all(self._each.should_stop(rows, len(values), count) for count in counts)

    def estimate(self, sample: Sample) -> GroupEstimates:
        rows, values, groups = sample.rows, sample.values, []
        for option in (*self.options, None):
            found = values.count(option)
            interval = self._each.interval(rows, len(values), found)
            guess = round(rows * found / len(values)) if values else 0
            groups.append(GroupEstimate(option, guess, interval.low, interval.high))
        confidence, method = self.counting.confidence, self.counting.method
        return GroupEstimates(tuple(groups), confidence, len(values), rows, method, sample.stopped)


@dataclass(frozen=True, slots=True)
class Averaging:
    counting: Counting
    bounds: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.bounds is not None and not self.bounds[0] < self.bounds[1]:
            raise UsageError(f"bounds are {self.bounds}: give the least and the most that an answer can be")
        if self.counting.calls is None or self.counting.width is not None:
            raise UsageError("estimate: an average takes a number of calls, and no width")

    def should_stop(self, rows: int, values: Sequence[str | None]) -> bool:
        return len(values) >= min(rows, self.counting.calls or rows)

    def estimate(self, sample: Sample) -> AverageEstimate:
        rows, values = sample.rows, sample.values
        numbers = np.array([float(value) for value in values if value is not None])
        # Of the rows that were not asked, all may have an answer: more of them make the interval wider.
        size, alpha = rows - (len(values) - len(numbers)), 1 - self.counting.confidence
        try:
            if self.bounds is None:
                low, high = asymptotic_mean(numbers, size, alpha)
            else:
                low, high = bounded_mean(numbers, size, self.bounds, alpha)
        except ValueError as error:
            found = f"{numbers.min():g} to {numbers.max():g}" if len(numbers) else "none"
            raise UsageError(
                f"estimate: the answers of {len(numbers)} rows ({found}) do not make an interval: ask about more rows, "
                "or give bounds that hold all answers"
            ) from error
        method: Method = "asymptotic" if self.bounds is None else "bounded"
        return AverageEstimate(float(numbers.mean()), low, high, self.counting.confidence, len(values), rows, method)


Sampling = RowCounting | GroupCounting | Averaging
"""What is estimated from rows drawn at random: each says when to stop, and what the sample comes to."""
