"""Counts from a sample: the interval holds, and says what it took."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.accuracy.test_approximate_queries import QUERY, ROWS, good, model, opened

import almanaq
from almanaq.errors import BudgetExceeded, RefusedQueryError, UsageError
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


def test_more_calls_than_the_budget_are_refused_before_the_first():
    reader = model()
    with opened(reader, max_calls=50) as connection, pytest.raises(BudgetExceeded, match=r"100 rows .* has 50 calls"):
        connection.estimate(QUERY, calls=100)
    assert reader.calls == 0


def test_a_budget_that_ends_before_the_width_is_reached_gives_the_interval_so_far():
    reader = model()
    with opened(reader, max_calls=50) as connection:
        found = connection.estimate(QUERY, width=0.001)
    assert 0 < found.asked <= reader.calls <= 50
    assert found.low <= EXACT <= found.high
    assert "stopped at the budget of 50" in found.stopped


@pytest.mark.parametrize("given", [{"calls": 40}, {"width": 0.3}])
def test_intervals_hold_as_often_as_they_say(given):
    with opened(rows=150) as connection:
        exact = sum(map(good, range(150)))
        found = [connection.estimate(QUERY, confidence=0.8, seed=seed, **given) for seed in range(30)]
    missed = sum(not one.low <= exact <= one.high for one in found)
    assert missed <= 11  # of 30 at 0.2: more has a chance of 1 in 100


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


# --- groups, averages, and what a proxy adds -------------------------------------------------------------------------

MOODS = ("calm", "loud", "merry")
GROUPS = "SELECT answer(notes, 'mood?', ARRAY['calm', 'loud', 'merry']) AS mood, count(*) AS n FROM t WHERE id >= 20 "
BY_MOOD = GROUPS + "GROUP BY answer(notes, 'mood?', ARRAY['calm', 'loud', 'merry'])"
AVERAGE = "SELECT avg(answer(notes, 'price?')::numeric) AS mean FROM t"


def number(text):
    return int(text.split()[0])


def said(text, question):
    row = number(text)
    if question == "mood?":
        return None if row % 7 == 0 else MOODS[row * row % 3]
    return None if row % 5 == 0 else str(row * 37 % 100)


def small(rows=300):
    table = pa.table({"id": range(rows), "notes": [f"{i} notes" for i in range(rows)]})
    return almanaq.connect({"t": table}, model=FunctionModel(said), embedder="lexical", cache=False)


def test_groups_of_an_answer_have_intervals_that_hold_at_once():
    with small() as connection:
        exact = dict(connection.sql(BY_MOOD).rows)
        missed = 0
        for seed in range(12):
            found = connection.estimate_groups(BY_MOOD, calls=60, confidence=0.8, seed=seed)
            missed += any(not one.low <= exact.get(one.answer, 0) <= one.high for one in found.groups)
        whole = connection.estimate_groups(BY_MOOD, calls=1000)
        wide = connection.estimate_groups(BY_MOOD, width=0.5)
    assert missed <= 4
    assert [one.answer for one in whole.groups] == [*MOODS, None]
    assert all(one.low == one.value == one.high == exact.get(one.answer, 0) for one in whole.groups)
    assert (whole.asked, whole.rows, whole.method) == (280, 280, "exact")
    assert wide.method == "anytime"
    assert wide.asked < 280
    assert all(one.high - one.low <= 140 for one in wide.groups)


def test_groups_whose_budget_ends_have_the_intervals_so_far():
    reader = FunctionModel(lambda text, question: "shy" if "bites" in text else "bold")
    dogs = {"about": [f"Dog {n} {'bites' if n % 3 else 'barks'}" for n in range(200)]}
    query = "SELECT answer(about, 'mood?', ARRAY['shy', 'bold']), count(*) FROM dogs GROUP BY 1"
    with almanaq.connect({"dogs": dogs}, model=reader, cache=False, max_calls=60) as connection:
        found = connection.estimate_groups(query, width=0.001)
        with pytest.raises(BudgetExceeded, match="nothing was asked"):
            connection.estimate_groups(query, calls=100)
    assert 0 < found.asked <= reader.calls <= 60
    assert "stopped at the budget of 60" in found.stopped
    assert all(group.low <= (133 if group.answer == "shy" else 67) <= group.high for group in found.groups[:2])


def test_an_average_holds_within_bounds_and_says_where_it_is_asymptotic():
    with small() as connection:
        exact = float(connection.sql(AVERAGE).rows[0][0])
        found = [connection.estimate_average(AVERAGE, calls=80, bounds=(0, 100), seed=seed) for seed in range(12)]
        loose = [connection.estimate_average(AVERAGE, calls=80, seed=seed) for seed in range(12)]
        whole = connection.estimate_average(AVERAGE, calls=300, bounds=(0, 100))
    assert all(one.low <= exact <= one.high and one.method == "bounded" for one in found)
    assert {one.method for one in loose} == {"asymptotic"}
    assert sum(not one.low <= exact <= one.high for one in loose) <= 3
    assert whole.low == whole.high == whole.value == pytest.approx(exact)
    assert found[0].asked == 80
    assert found[0].rows == 300


@pytest.mark.parametrize(
    ("suql", "why"),
    [
        ("SELECT count(*) FROM t", "GROUP BY that answer"),
        ("SELECT answer(notes, 'mood?') AS m, count(*) FROM t GROUP BY answer(notes, 'mood?')", "need its options"),
        (BY_MOOD + " HAVING count(*) > 2", "GROUP BY that answer"),
        (BY_MOOD.replace("count(*)", "max(id)"), "GROUP BY that answer"),
        (BY_MOOD.replace("id >= 20", "answer(notes, 'price?') = '1'"), "may ask one thing"),
    ],
)
def test_groups_that_have_no_intervals_are_refused_by_name(suql, why):
    with small(30) as connection, pytest.raises(RefusedQueryError, match=why):
        connection.estimate_groups(suql, calls=10)


def test_averages_that_have_no_interval_are_errors_that_say_why():
    with small(30) as connection:
        with pytest.raises(RefusedQueryError, match="avg"):
            connection.estimate_average("SELECT max(answer(notes, 'price?')::numeric) FROM t", calls=10)
        with pytest.raises(UsageError, match="bounds that hold all answers"):
            connection.estimate_average(AVERAGE, calls=10, bounds=(0, 1))
        with pytest.raises(UsageError, match="the least and the most"):
            connection.estimate_average(AVERAGE, calls=10, bounds=(2, 1))


def test_a_proxy_narrows_an_interval_and_is_refused_with_few_rows():
    with opened() as connection:
        plain = connection.estimate(QUERY, calls=240)
        narrowed = connection.estimate(QUERY, calls=240, proxy="regression")
        for wrong in ({"calls": 199}, {"width": 0.1}, {"calls": 300, "width": 0.1}):
            with pytest.raises(UsageError, match="calls of 200 or more"):
                connection.estimate(QUERY, proxy="regression", **wrong)
    assert (plain.method, narrowed.method) == ("exact", "asymptotic")
    assert narrowed.high - narrowed.low < plain.high - plain.low
    assert narrowed.low <= EXACT <= narrowed.high


def test_a_proxy_with_too_few_of_one_answer_leaves_the_exact_interval():
    with small() as connection:
        few = "SELECT id FROM t WHERE answer(notes, 'price?') = '37'"
        found = connection.estimate(few, calls=220, proxy="regression")
    assert found.method == "exact"
