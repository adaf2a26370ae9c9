"""A Result is a sequence of rows, and Arrow for whatever reads Arrow."""

from __future__ import annotations

import datetime

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

import almanaq
from almanaq.testing import FunctionModel

TABLE = pa.table({"n": range(7), "s": [f"text {n}" for n in range(7)]})


@pytest.fixture(scope="module")
def connection():
    model = FunctionModel(lambda text, question: "Yes" if text[-1] in "135" else "No")
    with almanaq.connect({"t": TABLE}, model=model, cache=False) as opened:
        yield opened


@pytest.fixture(scope="module")
def result(connection):
    return connection.sql("SELECT n, s FROM t ORDER BY n")


def test_it_is_what_the_list_of_its_rows_is(result):
    assert len(result) == len(result.rows) == 7
    assert list(result) == result.rows
    assert list(reversed(result)) == result.rows[::-1]
    assert (result[0], result[-1]) == (result.rows[0], result.rows[-1])
    assert (3, "text 3") in result
    assert (3, "text 4") not in result
    with pytest.raises(IndexError):
        result[7]


@pytest.mark.parametrize(
    "part", [slice(2), slice(2, 5), slice(None, None, -2), slice(-2, None), slice(9, 12), slice(3, 1)]
)
def test_a_slice_is_the_result_of_those_rows_with_their_evidence(connection, part):
    whole = connection.sql("SELECT n, s FROM t WHERE answer(s, 'odd?') = 'Yes' ORDER BY n")
    assert [row[0] for row in whole] == [1, 3, 5]
    found = whole[part]
    assert isinstance(found, almanaq.Result)
    assert (found.rows, found.columns) == (whole.rows[part], whole.columns)
    assert found.evidence == whole.evidence[part]
    assert found.arrow().schema == whole.arrow().schema


def test_it_shows_a_few_rows_and_counts_all(result, connection):
    shown = repr(result).splitlines()
    assert shown == ["7 rows", "n  s", *(f"{n}  text {n}" for n in range(7))]
    one = connection.sql("SELECT repeat('x', 100) AS x, answer(s, 'odd?') AS odd FROM t WHERE n = 1")
    assert max(map(len, repr(one).splitlines())) < 70
    assert repr(one).startswith("1 row · 1 text call\n")


def test_whatever_reads_arrow_reads_it(result):
    import polars as pl

    expected = {"n": list(range(7)), "s": [f"text {n}" for n in range(7)]}
    assert pa.table(result).to_pydict() == expected
    assert pa.RecordBatchReader.from_stream(result).read_all().to_pydict() == expected
    assert pa.schema(result) == result.arrow().schema
    assert pl.DataFrame(result).to_dict(as_series=False) == expected
    assert result.pl().to_dict(as_series=False) == expected
    assert result.df().to_dict("list") == expected
    assert pd.DataFrame.from_arrow(result).to_dict("list") == expected
    with duckdb.connect() as database:
        assert database.sql("FROM result ORDER BY n").fetchall() == result.rows


def test_two_columns_of_a_name_are_told_to_who_wants_polars(connection):
    result = connection.sql("SELECT 1 AS a, 2 AS a")
    assert list(result.df().columns) == ["a", "a"]
    with pytest.raises(almanaq.DataError, match="two columns are called 'a'"):
        result.pl()


def test_intervals_are_durations_to_polars(connection):
    frame = connection.sql("SELECT interval '1 day 2 seconds' AS i UNION ALL SELECT NULL").pl()
    assert set(frame["i"].to_list()) == {datetime.timedelta(days=1, seconds=2), None}
    with pytest.raises(almanaq.DataError, match="months"):
        connection.sql("SELECT interval '1 month' AS i").pl()


@pytest.mark.parametrize(("method", "package"), [("df", "pandas"), ("pl", "polars")])
def test_a_package_that_is_missing_is_named(result, monkeypatch, method, package):
    monkeypatch.setattr("almanaq.suql.result.find_spec", lambda name: None)
    with pytest.raises(almanaq.MissingExtraError, match=f"'almanaq\\[{package}\\]'"):
        getattr(result, method)()
