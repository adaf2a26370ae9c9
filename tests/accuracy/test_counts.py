"""Bounds on counts, held against every sample that there could be."""

from __future__ import annotations

from math import comb

import pytest

from almanaq.suql.accuracy.estimates import CountBound, exact_interval

PRIORS = [(1.0, 1.0), (0.2, 4.0), (3.0, 0.5)]


def chance_of_a_miss(bound: CountBound, errors: int) -> float:
    """Return the probability that the bound lies below the true number of errors at any size of the sample."""
    reached = {0: 1.0}  # by errors found: the probability of getting there without a miss so far
    missed = 0.0
    for sampled in range(bound.size + 1):
        for found in [found for found in reached if bound.errors(sampled, found) < errors]:
            missed += reached.pop(found)
        following: dict[int, float] = {}
        for found, chance in reached.items():
            left, wrong = bound.size - sampled, errors - found
            if left and wrong:
                following[found + 1] = following.get(found + 1, 0.0) + chance * wrong / left
            if left and left > wrong:
                following[found] = following.get(found, 0.0) + chance * (left - wrong) / left
        reached = following
    return missed


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("alpha", [0.05, 0.3])
def test_the_bound_holds_at_every_size_of_the_sample_at_once(prior, alpha):
    for size in (1, 7, 25):
        bound = CountBound(size, alpha, prior)
        assert max(chance_of_a_miss(bound, errors) for errors in range(size + 1)) <= alpha


def test_a_bound_narrows_and_is_exact_when_all_were_seen():
    bound = CountBound(1000, 0.05, (0.2, 4.0))
    assert bound.errors(0, 0) == 1000
    assert 20 < bound.errors(100, 1) < 120
    assert bound.errors(500, 5) < bound.errors(100, 1)
    assert bound.errors(1000, 9) == 9


@pytest.mark.parametrize(("size", "sampled", "alpha"), [(12, 5, 0.1), (30, 10, 0.05), (30, 30, 0.05), (9, 0, 0.05)])
def test_the_exact_interval_covers_the_truth_as_often_as_it_says(size, sampled, alpha):
    for count in range(size + 1):
        covered = 0
        for found in range(max(0, sampled - (size - count)), min(count, sampled) + 1):
            interval = exact_interval(size, sampled, found, alpha)
            ways = comb(count, found) * comb(size - count, sampled - found)
            covered += ways if interval.low <= count <= interval.high else 0
        assert covered / comb(size, sampled) >= 1 - alpha


def test_an_interval_is_no_wider_than_it_must_be():
    interval = exact_interval(10_000, 400, 100, 0.05)
    assert (interval.low, interval.high) == pytest.approx((2080, 2950), rel=0.02)


@pytest.mark.parametrize(("sampled", "found"), [(5, 6), (11, 0), (3, -1)])
def test_an_impossible_sample_is_an_error(sampled, found):
    with pytest.raises(ValueError, match="of 10"):
        CountBound(10, 0.1).errors(sampled, found)
    with pytest.raises(ValueError, match="of 10"):
        exact_interval(10, sampled, found, 0.1)
