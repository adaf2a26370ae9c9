"""Values as people write them: examples of each form, and laws that hold for all."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from decimal import Decimal

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from almanaq.values import (
    canonical,
    parse_boolean,
    parse_date,
    parse_duration,
    parse_integer,
    parse_number,
    parse_quantity,
    parse_time,
    parse_timestamp,
    parse_typed,
)

TYPES = {
    "number": "DOUBLE",
    "integer": "BIGNUM",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "time": "TIME",
    "boolean": "BOOLEAN",
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,234", 1234), ("1 234", 1234), ("1.234,5", "1234.5"), ("1.234", "1.234"), ("1,5", "1.5"),
        ("12,34,567", 1234567),
        ("US$3m", 3000000), ("3.5 million", 3500000), ("€ 1.5bn", 1500000000), ("10 USD", 10), ("5k", 5000),
        ("3M", 3000000),
        ("12%", 12), ("(5)", -5), ("-$5", -5), ("\u22125", -5), ("1e5", 100000), (".5", "0.5"),
        ("3 m", None), ("1,23,45", None), ("1 23", None), ("", None), ("-", None), ("(5", None), ("--5", None),
        ("nan", None),
        ("1e999", None), ("12 km", None), ("$5 EUR", None), ("1.2.3", None), ("٣", None),
    ],
)  # fmt: skip
def test_numbers(text: str, value: object) -> None:
    assert parse_number(text) == (None if value is None else Decimal(str(value)))


def test_units_and_integers() -> None:
    assert parse_quantity("12 per cent") == (Decimal(12), "%")
    assert parse_quantity("US$3m") == (Decimal(3_000_000), "US$")
    assert parse_integer("4.0") == 4
    assert parse_integer("4.5") is None


@pytest.mark.parametrize(
    "text",
    ["15 February 1968", "Feb 15, 1968", "Feb. 15 1968", "1968-02-15", "15th of February, 1968", "02/15/1968",
     "15.02.1968",
     "Thursday, 15 February 1968", "1968 Feb 15", "15-Feb-1968", "February 15th, 1968"],
)  # fmt: skip
def test_dates(text: str) -> None:
    assert parse_date(text) == date(1968, 2, 15)


@pytest.mark.parametrize(
    "text", ["1968", "February 1968", "02/03/1968", "15 February 68", "30 February 1968", "soon", "2/15"]
)
def test_what_names_no_day(text: str) -> None:
    assert parse_date(text) is None


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("1968-02-15T13:45:00Z", datetime(1968, 2, 15, 13, 45)),
        ("1968-02-15 13:45:00.5", datetime(1968, 2, 15, 13, 45, 0, 500000)),
        ("1968-02-15 13:45+02:00", datetime(1968, 2, 15, 11, 45)),
        ("Feb 15, 1968 at 1:45 pm", datetime(1968, 2, 15, 13, 45)),
        ("1968-02-15", datetime(1968, 2, 15)),
        ("13:45", None),
    ],
)
def test_timestamps(text: str, moment: datetime | None) -> None:
    assert parse_timestamp(text) == moment


def test_times_and_durations() -> None:
    assert parse_time("1:45 p.m.") == time(13, 45)
    assert parse_time("12am") == time(0)
    assert parse_time("1.45") is None
    assert parse_time("25:00") is None
    assert parse_duration("2:13.32") == timedelta(minutes=2, seconds=13.32)
    assert parse_duration("1h 5m") == timedelta(hours=1, minutes=5)
    assert parse_duration("100:00:00") == timedelta(hours=100)
    assert parse_duration("5m 1h") is None
    assert parse_typed("2:13.32", "time") == "00:02:13.320000"


def test_yes_and_no() -> None:
    assert parse_boolean(" Yes. ") is True
    assert parse_boolean("NO") is False
    assert parse_boolean("maybe") is None


@given(st.integers(-(10**15), 10**15))
def test_every_grouping_of_an_integer_is_read(number: int) -> None:
    for text in (str(number), f"{number:,}", f"{number:,}".replace(",", " "), f"{number:,}".replace(",", "'")):
        assert parse_integer(text) == number


@given(st.dates())
def test_every_spelling_of_a_day_is_read(day: date) -> None:
    spellings = [day.isoformat(), f"{day.day} {day:%B} {day.year:04}", f"{day:%b} {day.day}, {day.year:04}"]
    assert [parse_date(text) for text in spellings] == [day] * 3


@given(st.datetimes())
def test_every_iso_moment_is_read(moment: datetime) -> None:
    assert parse_timestamp(moment.isoformat()) == moment
    assert parse_typed(moment.isoformat(), "timestamp") == moment.isoformat(sep=" ")


ENGINE = duckdb.connect()
written = st.one_of(
    st.text(max_size=30),
    st.from_regex(r"\A[-(]?(US\$|€)?[0-9]{1,4}([,. ][0-9]{1,3}){0,3}(e[0-9]{1,3})?( ?(million|k|%|bn))?\)?\Z"),
    st.from_regex(r"\A[0-9]{1,2}[:.][0-9]{2}([:.][0-9]{1,3})?( ?[ap]m)?\Z"),
    st.from_regex(r"\A[0-9]{1,4}[-/. ]([0-9]{1,2}|Feb|May)[-/. ][0-9]{1,4}([ T][0-9]{2}:[0-9]{2}(Z|\+02)?)?\Z"),
)


@given(written, st.sampled_from(sorted(TYPES)))
def test_typed_text_is_castable_and_a_fixed_point(text: str, type_: str) -> None:
    typed = parse_typed(text, type_)
    if typed is not None:
        assert ENGINE.execute(f"SELECT CAST(? AS {TYPES[type_]})", [typed]).fetchone() != (None,)
        assert parse_typed(typed, type_) == typed


@given(st.text())
def test_canonical_is_a_fixed_point(text: str) -> None:
    assert canonical(f"  {text}\t") == canonical(text)
    assert parse_typed(text, "text") == (text.strip() or None)
