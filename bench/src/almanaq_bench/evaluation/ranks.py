"""Agreement of two orders."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def spearman(left: Sequence[float], right: Sequence[float]) -> float:
    """Return Spearman's rank correlation, equal values sharing the mean of their ranks; 0 where either has one value.

    >>> spearman([1, 2, 3], [10, 20, 15])
    0.5
    """
    if len(set(left)) < 2 or len(set(right)) < 2:
        return 0.0
    return round(float(np.corrcoef(_ranks(left), _ranks(right))[0, 1]), 12)


def _ranks(values: Sequence[float]) -> NDArray[np.float64]:
    _, places, counts = np.unique(np.array(values, np.float64), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    means: NDArray[np.float64] = last - (counts - 1) / 2
    return means[places]
