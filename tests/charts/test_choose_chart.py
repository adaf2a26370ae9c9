"""Which chart a result gets, and what holds of every chart, whatever the rows are."""

from __future__ import annotations

import datetime
import json
from dataclasses import replace
from typing import Any
from xml.etree.ElementTree import fromstring

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from almanaq.charts.chart import read_spec
from almanaq.charts.choose import choose_chart, draw_columns
from almanaq.charts.columns import MOST_BARS, MOST_COLOURS, MOST_MARKS
from almanaq.display import cell_text
from almanaq.errors import UsageError

DAYS = [datetime.date(2024, 1, 1) + datetime.timedelta(days=n) for n in range(40)]
PLACES = ("x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "width", "height")
CARRIERS = ["UA", "DL", "AA", "B6", "WN"]

CASES: dict[str, tuple[dict[str, list[Any]], tuple[Any, ...] | None]] = {
    "dates and a number": ({"day": DAYS, "sales": list(range(40))}, ("line", "day", ("sales",), "")),
    "years and a number": ({"year": [2020, 2021, 2022], "births": [5, 3, 9]}, ("line", "year", ("births",), "")),
    "two dates only": ({"day": DAYS[:2], "sales": [1, 2]}, ("bar", "day", ("sales",), "")),
    "months as text": (
        {"month": ["2024-01", "2024-03", "2024-02"], "n": [1, 2, 3]},
        ("line", "month", ("n",), ""),
    ),
    "two measures over time": (
        {"year": [2020, 2021, 2022], "low": [3, 4, 5], "high": [7, 9, 8]},
        ("line", "year", ("low", "high"), "measure"),
    ),
    "unlike measures over time": (
        {"year": [2020, 2021, 2022], "share": [0.1, 0.3, 0.2], "count": [7000, 6000, 9000]},
        None,
    ),
    "unlike measures over time, sorted by one": (
        {"year": [2021, 2020, 2022], "share": [0.3, 0.2, 0.1], "count": [7000, 6000, 9000]},
        ("line", "year", ("share",), ""),
    ),
    "names and a rank": ({"name": ["b", "a"], "since": DAYS[:2], "place": [1, 2]}, None),
    "names, whole numbers, a mean and a rank": (
        {"country": ["a", "b"], "died": [9, 4], "avg_people": [2.5, 8.5], "place": [1, 9]},
        ("bar", "country", ("died",), ""),
    ),
    "time and category": (
        {"year": [2020, 2020, 2021, 2021, 2022], "sex": ["f", "m", "f", "m", "f"], "count": [1, 2, 3, 4, 5]},
        ("line", "year", ("count",), "sex"),
    ),
    "categories": ({"carrier": CARRIERS, "flights": [5, 9, 1, 3, 2]}, ("bar", "carrier", ("flights",), "")),
    "two categories that add up": (
        {"island": ["a", "a", "b", "c"], "species": ["x", "y", "x", "z"], "count": [4, 2, 1, 1]},
        ("stacked", "island", ("count",), "species"),
    ),
    "two categories of means": (
        {"island": ["a", "a", "b", "c"], "species": ["x", "y", "x", "z"], "avg_mass": [4.5, 2.5, 1.5, 1.0]},
        ("bar", "island", ("avg_mass",), "species"),
    ),
    "shares of a whole": ({"kind": ["a", "b"], "share": [0.25, 0.75]}, ("share", "share", ("share",), "kind")),
    "shares of no whole": ({"kind": ["a", "b"], "share": [0.25, 0.5]}, ("bar", "kind", ("share",), "")),
    "a class and its mean": ({"class": [3, 1, 2], "avg_fare": [8.0, 80.0, 20.0]}, ("bar", "class", ("avg_fare",), "")),
    "weekdays": ({"day": ["Mon", "Sun", "Tue"], "orders": [1, 2, 3]}, ("bar", "day", ("orders",), "")),
    "ranges": ({"age": ["10-19", "0-9", "20+"], "count": [1, 2, 3]}, ("bar", "age", ("count",), "")),
    "two numbers": (
        {"bill": [1.5, 2, 3, 4, 5, 6, 7, 8, 9, 10], "mass": [3, 5, 2, 4, 1, 2.5, 7, 6, 9, 8]},
        ("point", "bill", ("mass",), ""),
    ),
    "too few numbers": ({"bill": [1.5, 2, 3, 4, 5, 6], "mass": [3, 5, 2, 4, 1, 2.5]}, None),
    "names with a number": ({"name": list("abcdefgh"), "age": [18, 19, 17, 18] * 2}, None),
    "records": ({**{f"price_{n}": [n, n * 3] for n in range(6)}, "week": [1, 2]}, None),
    "too many groups": ({"name": [f"n{n}" for n in range(70)], "count": [n * 31 % 71 for n in range(70)]}, None),
    "things with two numbers": (
        {"name": list("abcdefghij"), "height": [3, 1, 4, 1, 5, 9, 2, 6, 5, 3], "mass": [2, 7, 1, 8, 2, 8, 1, 8, 2, 8]},
        ("point", "height", ("mass",), ""),
    ),
    "things in order": (
        {"name": list("abcdefghij"), "year": [1] * 10, "height": list(range(10))},
        ("bar", "name", ("height",), ""),
    ),
    "one number": ({"most": [7]}, ("number", "most", ("most",), "")),
    "one number and what it is of": ({"name": ["K2"], "height": [8611]}, ("number", "height", ("height",), "")),
    "two numbers of one row, one of them an aggregate": ({"entries": [20], "percent": [65.0]}, None),
    "a number and the dates of a list": ({"count": [9], "first_day": DAYS[:1], "last_day": DAYS[:1]}, None),
    "the year that has most": ({"year": [1997], "count": [9]}, ("number", "count", ("count",), "")),
    "many numbers": ({"price": [float(n * n % 97) for n in range(60)]}, ("histogram", "price", (), "")),
    "identifiers": ({"id": [1, 2, 3], "zip": [94301, 94302, 94303]}, None),
    "prose": ({"review": ["It is long. " * 9] * 3, "name": ["a", "b", "c"]}, None),
    "no rows": ({"name": [], "n": []}, None),
    "nothing but NULL": ({"name": ["a", "b", "c"], "n": pa.array([None] * 3, pa.int64())}, None),  # type: ignore[dict-item]
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_each_shape_of_result_gets_the_chart_that_shows_it(case: str) -> None:
    columns, expected = CASES[case]
    chart = choose_chart(pa.table(columns))
    assert (None if chart is None else (chart.kind, chart.x, chart.y, chart.colour)) == expected


def test_bars_go_by_size_and_what_has_an_order_keeps_it() -> None:
    carriers = choose_chart(pa.table({"carrier": CARRIERS, "flights": [5, 9, 1, 3, 2]}))
    days = choose_chart(pa.table({"day": ["Sunday", "Monday", "Friday"], "orders": [3, 1, 2]}))
    ranges = choose_chart(pa.table({"age": ["10-19", "0-9", "100+", "20-99"], "count": [1, 2, 3, 4]}))
    assert carriers is not None
    assert carriers.order == ("DL", "UA", "B6", "WN", "AA")
    assert days is not None
    assert days.order == ("Monday", "Friday", "Sunday")
    assert ranges is not None
    assert ranges.order == ("0-9", "10-19", "20-99", "100+")


def test_what_is_not_drawn_is_counted() -> None:
    many = choose_chart(pa.table({"name": [f"n{n}" for n in range(80)], "count": list(range(80))}))
    missing = choose_chart(pa.table({"name": ["a", "b", "c"], "count": [1, None, 3]}))
    colours = choose_chart(
        pa.table({"year": [2020, 2021] * 20, "who": [f"w{n // 2}" for n in range(40)], "count": list(range(40))})
    )
    assert many is not None
    assert many.note == f"the first {MOST_BARS} of 80"
    assert missing is not None
    assert missing.note == "1 row without a value left out"
    assert colours is not None
    assert colours.note == f"the {MOST_COLOURS} largest of 20 in who"
    assert len({mark["colour"] for mark in colours.marks}) == MOST_COLOURS


@pytest.mark.parametrize(
    ("values", "kind", "order"),
    [
        (["b", "a", "c"], "point", ("b", "a", "c")),
        (["b", "a", "c"], "line", None),
        ([10, 9, 8], "line", (8, 9, 10)),
        (["10", "9", "8"], "point", ("8", "9", "10")),
        (["Wed", "Mon", "Tue"], "line", ("Mon", "Tue", "Wed")),
        ([datetime.date(2024, 1, 10), datetime.date(2024, 1, 9)], "line", ("2024-01-09", "2024-01-10")),
    ],
)
def test_a_chosen_chart_keeps_an_order_and_begins_at_zero(values: list[Any], kind: Any, order: Any) -> None:
    table = pa.table({"at": values, "n": [90 + n for n in range(len(values))]})
    if order is None:
        with pytest.raises(UsageError, match="holds names: choose bars or points"):
            draw_columns(table, kind, "at", "n")
        return
    chart = draw_columns(table, kind, "at", "n")
    assert tuple(mark["x"] for mark in chart.marks) == order
    assert chart.spec()["encoding"]["y"]["scale"] == {"zero": True}
    assert ">0</text>" in chart.svg()


def test_too_many_points_are_counted_by_place_and_no_row_is_lost() -> None:
    count = 3 * MOST_MARKS
    rows = {"a": [float(n * 7919 % 1000) for n in range(count)], "b": [float(n * 104729 % 777) for n in range(count)]}
    chart = choose_chart(pa.table(rows))
    assert chart is not None
    assert chart.kind == "heatmap"
    assert len(chart.marks) <= MOST_MARKS
    assert sum(mark["colour"] for mark in chart.marks) == count


VALUES = st.sampled_from(
    [
        st.integers(-(10**6), 10**6),
        st.integers(1990, 2030),
        st.integers(0, 3),
        st.floats(allow_nan=True, allow_infinity=True),
        st.booleans(),
        st.dates(),
        st.datetimes(),
        st.sampled_from(["a", "b", "c", "Mon", "2024-01", "10-20", ""]),
        st.text(max_size=60),
        st.decimals(allow_nan=False, allow_infinity=False, places=2, min_value=-(10**9), max_value=10**9),
        st.lists(st.integers(0, 9), max_size=3),
    ]
)
NAMES = st.sampled_from(
    ["id", "year", "count", "avg_x", "a.b[0]", "datum['x']", "share", "month", "name", "", "ünits", "hour"]
)


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    rows = draw(st.integers(0, 25))
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    arrays = []
    for _ in names:
        cell = draw(VALUES)
        arrays.append(pa.array(draw(st.lists(st.none() | cell, min_size=rows, max_size=rows))))
    return pa.table(arrays, names=names)


def keys_of(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value).union(*map(keys_of, value.values()))
    return set().union(*map(keys_of, value)) if isinstance(value, list) else set()


@given(tables(), st.integers(20, 120))
def test_every_chart_draws_values_of_its_rows_and_evaluates_nothing(table: pa.Table, width: int) -> None:
    chart = choose_chart(table)
    if chart is None:
        return
    assert 0 < len(chart.marks) <= MOST_MARKS
    spec = json.loads(json.dumps(chart.spec(), allow_nan=False))
    drawn = spec.pop("data")["values"]
    assert not keys_of(spec) & {"url", "expr", "signal", "transform", "params", "calculate", "href"}
    fields = {each["field"] for each in _encodings(spec["encoding"]) if "field" in each}
    assert fields <= {"x", "x2", "y", "y2", "colour", "label"}
    if chart.kind not in ("histogram", "heatmap"):
        cells = {float(cell) for name in chart.y for cell in table.column(name).to_pylist() if _drawable(cell)}
        assert {float(mark["y"]) for mark in drawn} <= cells
    if chart.kind in ("bar", "stacked", "share", "line"):
        axes = [axis for axis in (spec["encoding"].get("x"), spec["encoding"].get("y")) if axis]
        assert not any(axis.get("scale", {}).get("zero") is False for axis in axes), "bars and lines begin at zero"
    assert all(chart.lines(width))
    assert read_spec(chart.spec()) == replace(chart, title=cell_text(chart.title, 120))
    numbers = (value for each in fromstring(chart.svg()).iter() for name, value in each.items() if name in PLACES)
    assert all(-1 <= float(value) <= 5_000 for value in numbers), "nothing lies outside the picture"
    assert chart.describe()


def _drawable(cell: Any) -> bool:
    return cell is not None and not isinstance(cell, bool) and cell == cell and abs(cell) != float("inf")


def _encodings(encoding: dict[str, Any]) -> list[dict[str, Any]]:
    flat = []
    for each in encoding.values():
        flat += each if isinstance(each, list) else [each]
    return flat
