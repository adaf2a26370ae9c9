"""Values as JSON: numbers stay numbers where they fit, and nothing is lost or invalid."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from almanaq.encode import plain, result_record
from almanaq.suql.result import Evidence, Result, Trace


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Decimal("1.10"), 1.1),
        (Decimal("5.00"), 5),
        (Decimal("0.1234567890123456789"), "0.1234567890123456789"),
        (Decimal("NaN"), "NaN"),
        (Decimal("-Infinity"), "-Infinity"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        (dt.date(2001, 2, 3), "2001-02-03"),
        (dt.datetime(2001, 2, 3, 4, 5, tzinfo=dt.UTC), "2001-02-03T04:05:00+00:00"),
        (dt.time(4, 5), "04:05:00"),
        (dt.timedelta(days=1, seconds=90), "P1DT90S"),
        (dt.timedelta(), "PT0S"),
        (pa.MonthDayNano([14, 3, 1_500_000_000]), "P14M3DT1.5S"),
        (b"\x00\xff", "\\x00ff"),
        ({"a": [dt.date(2001, 2, 3), None]}, {"a": ["2001-02-03", None]}),
        ((1, (2, True)), [1, [2, True]]),
    ],
)
def test_values(value, expected):
    assert plain(value) == expected
    assert type(plain(value)) is type(expected)


@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_a_decimal_reads_back_as_itself(value):
    assert Decimal(str(plain(value))) == value


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.binary() | st.dates() | st.text(), st.lists))
def test_whatever_comes_out_is_json(value):
    json.loads(json.dumps(plain(value), allow_nan=False))


def test_a_result_has_the_keys_of_the_contract():
    quote = Evidence("places", "1", "notes", 0, 5, "candles", "romantic?")
    trace = Trace(links=(("places.price", "low", ("cheap",)),), columns_sent=(("places.notes", 2),))
    record = result_record(Result(pa.table({"a": [1]}), ((quote,),), trace))
    assert list(record) == ["columns", "rows", "evidence", "trace", "chart", "unknown"]
    assert record["rows"] == [[1]]
    assert record["evidence"][0][0]["quote"] == "candles"
    assert record["trace"]["links"] == [{"column": "places.price", "literal": "low", "values": ["cheap"]}]
    assert record["trace"]["columns_sent"] == [{"column": "places.notes", "cells": 2}]
