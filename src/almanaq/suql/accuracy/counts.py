"""How many of a finite set are what we look for, from a sample of it without replacement: bounds that hold."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass


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
        """Return the most errors that the set may hold, `found` of them among the `sampled` members.

        Raises:
            ValueError: the sample is larger than the set, or holds more errors than members.
        """
        if not 0 <= found <= sampled <= self.size:
            raise ValueError(f"{found} errors among {sampled} of {self.size}")
        most = self.size - (sampled - found)
        likely = min(most, max(found, round(self.size * found / sampled))) if sampled else found
        least = math.log(self.alpha) + self._log_marginal(sampled, found)
        return _last(likely, most, lambda count: _log_likelihood(self.size, count, sampled, found) > least)

    def _log_marginal(self, sampled: int, found: int) -> float:
        """Return the log probability of what was seen, under the prior."""
        a, b = self.prior
        return _log_choose(sampled, found) + _log_beta(found + a, sampled - found + b) - _log_beta(a, b)


@dataclass(frozen=True, slots=True)
class Interval:
    """An interval of whole numbers, both ends included."""

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
    """Return the probability that a sample holds at most `found` of the `count` members of a kind."""
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
