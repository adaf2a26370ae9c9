"""Counts from a sample: the interval holds, and says what it took."""

from __future__ import annotations

import pytest
from tests.accuracy.test_approximate_queries import QUERY, ROWS, good, model, opened

import almanaq
from almanaq.errors import RefusedQueryError, UsageError
from almanaq.testing import FunctionModel

EXACT = sum(map(good, range(ROWS)))


def test_an_estimate_asks_about_some_rows_and_holds_the_exact_count():
    reader = model()
    with opened(reader) as connection:
        found = connection.estimate(QUERY, calls=100)
    assert found.low <= EXACT <= found.high
    assert found.low <= found.value <= found.high
    assert reader.calls == found.asked == 100
    assert found.rows == ROWS


def test_an_interval_of_a_width_is_asked_for_until_it_is_there():
    with opened() as connection:
        wide, narrow = (connection.estimate(QUERY, width=width) for width in (0.3, 0.15))
        one = connection.estimate(QUERY, width=0.001)
    assert wide.high - wide.low <= 0.3 * ROWS
    assert narrow.high - narrow.low <= 0.15 * ROWS
    assert wide.asked < narrow.asked < one.asked <= ROWS
    assert one.low <= EXACT <= one.high


@pytest.mark.parametrize("given", [{"calls": 40}, {"width": 0.3}])
def test_intervals_hold_as_often_as_they_say(given):
    with opened(rows=150) as connection:
        exact = sum(map(good, range(150)))
        found = [connection.estimate(QUERY, confidence=0.8, seed=seed, **given) for seed in range(60)]
    missed = sum(not one.low <= exact <= one.high for one in found)
    assert missed <= 20  # of 60 at 0.2: more has a chance of 1 in 100


def test_rows_that_need_no_model_are_counted_exactly():
    reader = model()
    query = "SELECT id FROM notes WHERE stars = 1 OR (stars = 2 AND answer(text, 'is it good?') = 'Yes')"
    with opened(reader) as connection:
        found = connection.estimate(query, calls=ROWS)
    exact = sum(row % 5 == 1 or (row % 5 == 2 and good(row)) for row in range(ROWS))
    assert (found.low, found.value, found.high) == (exact, exact, exact)
    assert reader.calls == ROWS // 5


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) FROM notes WHERE answer(text, 'is it good?') = 'Yes'",
        "SELECT DISTINCT stars FROM notes WHERE answer(text, 'is it good?') = 'Yes'",
        QUERY + " LIMIT 5",
        "SELECT id, summary(text) FROM notes WHERE answer(text, 'is it good?') = 'Yes'",
        "SELECT id FROM notes WHERE stars = 1",
    ],
)
def test_what_is_no_row_of_one_text_filter_is_refused(query):
    reader = model()
    with opened(reader) as connection, pytest.raises(RefusedQueryError, match="estimate"):
        connection.estimate(query, calls=10)
    assert reader.calls == 0


@pytest.mark.parametrize("wrong", [{}, {"width": 0}, {"calls": 0}, {"calls": 5, "confidence": 1}])
def test_a_choice_out_of_range_is_an_error(wrong):
    with opened() as connection, pytest.raises(UsageError):
        connection.estimate(QUERY, **wrong)


def test_no_rows_are_none():
    table = {"notes": {"id": [1], "text": ["x"]}}
    with almanaq.connect(table, model=FunctionModel(lambda *_: "Yes"), cache=False) as connection:
        found = connection.estimate("SELECT id FROM notes WHERE id > 5 AND answer(text, 'q') = 'Yes'", calls=5)
    assert (found.value, found.low, found.high, found.asked) == (0, 0, 0, 0)
