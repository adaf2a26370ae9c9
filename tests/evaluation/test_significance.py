import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from almanaq_bench.evaluation.significance import groups, holm, intervals, p_values, pairs, pool_intervals

chances = st.lists(st.floats(0.0001, 1), min_size=1, max_size=8)


def test_the_interval_holds_the_mean_about_as_often_as_it_says() -> None:
    random = np.random.default_rng(1)
    held = 0
    for _ in range(40):
        low, high = intervals((random.random((120, 1)) < 0.7).astype(float))
        held += bool(low[0] <= 0.7 <= high[0])
    assert held >= 34


def test_the_interval_narrows_with_more_queries_and_is_a_point_where_nothing_varies() -> None:
    values = (np.random.default_rng(2).random((2000, 1)) < 0.5).astype(float)
    wide, narrow = (np.diff(intervals(some), axis=0)[0, 0] for some in (values[:100], values))
    assert 3 < wide / narrow < 6
    assert np.array_equal(intervals(np.ones((50, 2))), np.ones((2, 2)))


def test_weights_count_as_repeated_queries_do() -> None:
    values = np.array([[0.0], [1.0], [1.0]])
    weights = np.array([[8.0], [1.0], [1.0]])
    low, high = intervals(values, weights)
    assert low[0] == 0
    assert high[0] == 1


def test_the_test_agrees_with_scipys_permutation_test() -> None:
    from scipy import stats  # a second in each process that collects the tests

    random = np.random.default_rng(3)
    for shift in (0.0, 0.1, 0.3):
        differences = random.normal(shift, 1, 60)
        theirs = stats.permutation_test(
            (differences,), np.mean, permutation_type="samples", n_resamples=9999, rng=np.random.default_rng(0)
        ).pvalue
        assert p_values(differences[:, None])[0] == pytest.approx(theirs, abs=0.02)


def test_equal_systems_are_never_told_apart_and_all_draws_are_seeded() -> None:
    assert p_values(np.zeros((30, 2))).tolist() == [1, 1]
    values = np.random.default_rng(4).normal(0, 1, (30, 2))
    assert np.array_equal(p_values(values, seed=5), p_values(values, seed=5))
    assert np.array_equal(intervals(values, seed=5), intervals(values, seed=5))
    assert p_values(np.ones((30, 1)))[0] == pytest.approx(1 / 10_001)


@given(chances)
def test_holm_keeps_the_order_and_lies_between_the_plain_and_bonferroni(p: list[float]) -> None:
    corrected = holm(p)
    for one, more in zip(p, corrected, strict=True):
        assert one <= more <= min(1, len(p) * one) + 1e-12
    ranked = sorted(range(len(p)), key=p.__getitem__)
    assert [corrected[i] for i in ranked] == sorted(corrected)
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


@given(st.integers(1, 6), st.randoms(use_true_random=False))
def test_groups_hold_all_pairs_that_are_alike_and_no_pair_that_differs(size: int, random) -> None:
    names = [f"s{number}" for number in range(size)]
    differ = {frozenset(pair): random.random() < 0.5 for pair in pairs(names)}
    found = groups({name: random.random() for name in names}, differ)
    assert set().union(*map(set, found)) == set(names)
    for pair in pairs(names):
        together = any(set(pair) <= set(group) for group in found)
        assert together is not differ[frozenset(pair)]
    assert not any(set(a) < set(b) for a in found for b in found)


def test_many_systems_that_are_all_alike_form_one_group_at_once() -> None:
    means = {f"s{number}": number / 60 for number in range(60)}
    assert len(groups(means, dict.fromkeys(map(frozenset, pairs(list(means))), False))) == 1


def test_pooled_intervals_are_those_of_means_where_measures_are_means() -> None:
    random = np.random.default_rng(3)
    values = random.random((60, 2))
    counts = np.column_stack([values, np.ones(60)])
    assert pool_intervals(counts, lambda sums: sums[:, :2] / sums[:, 2:]) == pytest.approx(intervals(values))


def test_pooled_intervals_cover_a_ratio_as_often_as_they_say() -> None:
    random = np.random.default_rng(5)
    held = 0
    for _ in range(100):
        parts = random.integers(1, 9, 150)
        counts = np.column_stack([random.binomial(parts, 0.3), parts]).astype(float)
        low, high = pool_intervals(counts, lambda sums: sums[:, :1] / sums[:, 1:])
        held += low[0] <= 0.3 <= high[0]
    assert held >= 88
