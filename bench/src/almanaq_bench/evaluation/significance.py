"""How sure a figure is, and whether two systems differ: bootstrap intervals, paired tests, groups.

All draws are seeded: the same values give the same figures. Queries are what is drawn, all measures together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

SAMPLES = 1000
ROUNDS = 10_000
_CELLS = 4_000_000  # of a matrix of draws held at once
_EPSILON = 1e-12


def intervals(values: Values, weights: Values | None = None, *, level: float = 0.95, seed: int = 0) -> Values:
    """Return the percentile bootstrap interval of each column's mean, shape (2, columns).

    Args:
        values: shape (queries, columns).
        weights: what each value counts in its mean; by default 1.

    >>> low, high = intervals(np.array([[0.0], [1.0]] * 50))
    >>> bool(low[0] < 0.5 < high[0])
    True
    """
    counted = np.ones_like(values) if weights is None else weights
    columns = values.shape[1]
    # Many measures of a run are the same for every query, as are the weights of most: each is drawn once.
    sums, places = distinct_columns(np.concatenate([values * counted, counted], axis=1))
    own, theirs = places[:columns], places[columns:]
    return pool_intervals(sums, lambda drawn: drawn[:, own] / np.maximum(drawn[:, theirs], _EPSILON), level, seed)


def pool_intervals(counts: Values, measures: Callable[[Values], Values], level: float = 0.95, seed: int = 0) -> Values:
    """Return the percentile bootstrap intervals of measures of a whole run, shape (2, measures).

    Args:
        counts: shape (queries, columns); what the measures are computed of is their sum over queries.
        measures: gives the measures, shape (samples, measures), of sums of shape (samples, columns).
    """
    drawn = [times @ counts for times in _resamples(len(counts), SAMPLES, np.random.default_rng(seed))]
    tail = (1 - level) / 2
    bounds: Values = np.quantile(measures(np.concatenate(drawn)), [tail, 1 - tail], axis=0)
    return bounds


def p_values(differences: Values, *, seed: int = 0, rounds: int = ROUNDS) -> Values:
    """Return the two-sided p-value of each column's mean difference by a paired randomization test.

    Under the null hypothesis the two systems are interchangeable, so the sign of each query's difference is drawn by
    chance (Smucker, Allan, Carterette, CIKM 2007). Never 0: with all draws smaller it is 1 / (rounds + 1).

    Args:
        differences: shape (queries, columns); weighted where the mean is.

    >>> found = p_values(np.array([[0.5, 0.1], [0.5, -0.1]] * 20))
    >>> bool(found[0] < 0.001), bool(found[1] > 0.5)
    (True, True)
    """
    random = np.random.default_rng(seed)
    apart, places = distinct_columns(differences)
    observed = np.abs(apart.sum(axis=0)) - _EPSILON
    as_large = np.zeros(apart.shape[1])
    for size in _chunks(rounds, len(apart)):
        signs = random.integers(0, 2, (size, len(apart)), dtype=np.int8).astype(np.float64) * 2 - 1
        as_large += (np.abs(signs @ apart) >= observed).sum(axis=0)
    found: Values = ((1 + as_large) / (1 + rounds))[places]
    return found


def distinct_columns(values: Values) -> tuple[Values, NDArray[np.intp]]:
    """Return each column once, and where each of the columns stands among them."""
    numbers: dict[bytes, int] = {}
    across = np.ascontiguousarray(values.T)
    places = [numbers.setdefault(column.tobytes(), len(numbers)) for column in across]
    first = np.unique(places, return_index=True)[1]
    return np.ascontiguousarray(across[first].T), np.array(places, dtype=np.intp)


def holm(p: Sequence[float]) -> list[float]:
    """Return p-values corrected for how many there are (Holm 1979): the chance of any false finding stays bounded.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = sorted(range(len(p)), key=lambda position: p[position])
    corrected = [0.0] * len(p)
    highest = 0.0
    for rank, position in enumerate(order):
        highest = max(highest, min(1.0, (len(p) - rank) * p[position]))
        corrected[position] = highest
    return corrected


def groups(means: Mapping[str, float], differ: Mapping[frozenset[str], bool]) -> list[tuple[str, ...]]:
    """Return the largest groups of systems none of which can be told from another, best mean first.

    Args:
        differ: whether two systems differ significantly, for each pair.

    >>> differ = {frozenset("ab"): False, frozenset("bc"): False, frozenset("ac"): True}
    >>> groups({"a": 0.9, "b": 0.8, "c": 0.7}, differ)
    [('a', 'b'), ('b', 'c')]
    """
    systems = sorted(means, key=lambda name: (-means[name], name))
    alike: dict[str, set[str]] = {name: set() for name in systems}
    for one, other in pairs(systems):
        if not differ[frozenset((one, other))]:
            alike[one].add(other)
            alike[other].add(one)
    cliques = _cliques(set(), set(systems), set(), alike)
    found = [tuple(name for name in systems if name in clique) for clique in cliques]
    return sorted(found, key=lambda group: [systems.index(name) for name in group])


def pairs(names: Sequence[str]) -> list[tuple[str, str]]:
    """Return each pair of systems once."""
    return list(combinations(names, 2))


def _cliques(
    chosen: set[str], open_: set[str], closed: set[str], alike: Mapping[str, set[str]]
) -> Iterator[frozenset[str]]:
    """Return the maximal sets of systems that are all alike (Bron and Kerbosch 1973).

    A set that leaves out the pivot has one that is not like it, or it could take the pivot in: it is enough to begin
    with those. Without it, n systems that are all alike would take 2ⁿ steps.
    """
    if not open_ and not closed:
        yield frozenset(chosen)
        return
    pivot = max(sorted(open_ | closed), key=lambda name: len(alike[name] & open_))
    for name in sorted(open_ - alike[pivot]):
        yield from _cliques(chosen | {name}, open_ & alike[name], closed & alike[name], alike)
        open_ = open_ - {name}
        closed = closed | {name}


def _resamples(size: int, samples: int, random: np.random.Generator) -> Iterator[Values]:
    """Return how often each of `size` queries is drawn in each of the samples, chunk by chunk."""
    for chunk in _chunks(samples, size):
        drawn = random.integers(0, size, (chunk, size))
        flat = (drawn + np.arange(chunk)[:, None] * size).ravel()
        yield np.bincount(flat, minlength=chunk * size).reshape(chunk, size).astype(np.float64)


def _chunks(total: int, width: int) -> Iterator[int]:
    step = max(1, _CELLS // max(width, 1))
    for start in range(0, total, step):
        yield min(step, total - start)


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
