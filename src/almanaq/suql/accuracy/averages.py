"""Means of a finite set of numbers from a sample: intervals that hold, and what a proxy makes of them."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def bounded_mean(values: Floats, size: int, bounds: tuple[float, float], alpha: float) -> tuple[float, float]:
    """Return an interval for the mean of `size` numbers within bounds, from some drawn without replacement.

    It holds with probability 1 - alpha at any size of the sample: the narrower of Hoeffding and Serfling's, and the
    empirical one of Bernstein and Serfling (Bardenet and Maillard, 2015), each at alpha / 2.

    Raises:
        ValueError: there are no numbers, or one lies outside of the bounds.
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
    """Return an interval for the mean of `size` numbers that holds with probability 1 - alpha as the sample grows.

    Raises:
        ValueError: there are fewer than two numbers.
    """
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

    Args:
        said: what the model says of the sample; expected: the proxy's scores of it, from labels of others alone.
        of_all: the mean of the proxy's scores over the set of `size`.
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
