"""Counts and means of a finite set from a sample of it without replacement: bounds and intervals that hold."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

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
    low, high = first, last
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low


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
