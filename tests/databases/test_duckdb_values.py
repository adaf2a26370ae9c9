"""Values of DuckDB's types: rows are those of its own client; Arrow, pandas, polars, JSON and CSV say the same."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

import almanaq
from almanaq.cli.output import Format, rows_writer
from almanaq.encode import result_record
from almanaq.testing import FunctionModel

REFUSED = almanaq.DataError
UUID = "6f1c0f0e-7c1c-4b0e-9d52-000000000001"
HUGE = 2**127 - 1

# expression, Arrow's type, then the value in pandas, polars and JSON: SAME as in the rows, REFUSED, or another one.
SAME = object()
TYPES: list[tuple[str, str, Any, Any, Any]] = [
    ("TRUE", "bool", SAME, SAME, SAME),
    ("(-7)::TINYINT", "int8", SAME, SAME, SAME),
    ("18446744073709551615::UBIGINT", "uint64", SAME, SAME, SAME),
    (f"{HUGE}::HUGEINT", "decimal128(38, 0)", SAME, SAME, SAME),
    ("sum(i) FROM range(4) t(i)", "decimal128(38, 0)", SAME, SAME, SAME),
    (f"{2**128 - 1}::UHUGEINT", "string", SAME, SAME, SAME),
    (f"{10**60}::BIGNUM", "string", SAME, SAME, SAME),
    ("1.10::DECIMAL(4, 2)", "decimal128(4, 2)", SAME, SAME, 1.1),
    ("1.1::FLOAT", "float", SAME, SAME, 1.1),
    ("1.1::DOUBLE", "double", SAME, SAME, SAME),
    ("'a'::VARCHAR", "string", SAME, SAME, SAME),
    (r"'\x00a'::BLOB", "binary", SAME, SAME, "\\x0061"),
    ("'101'::BIT", "string", SAME, SAME, SAME),
    (f"'{UUID}'::UUID", "string", SAME, UUID, UUID),
    ("'{\"a\": 1}'::JSON", "string", SAME, SAME, SAME),
    ("{'a': 1, 'b': [DATE '2020-01-02']}::VARIANT", "struct", SAME, None, {"a": 1, "b": ["2020-01-02"]}),
    ("DATE '2020-01-02'", "date32[day]", SAME, SAME, "2020-01-02"),
    ("DATE 'infinity'", "date32[day]", SAME, REFUSED, "infinity"),
    ("DATE '20000-01-02'", "date32[day]", SAME, None, "20000-01-02"),
    ("TIMESTAMP '2020-01-02 03:04:05.000006'", "timestamp[us]", SAME, SAME, "2020-01-02T03:04:05.000006"),
    ("TIMESTAMP '-infinity'", "timestamp[us]", REFUSED, REFUSED, "-infinity"),
    ("TIMESTAMP_S 'infinity'", "timestamp[s]", REFUSED, REFUSED, "infinity"),
    ("TIMESTAMP_NS '1960-01-02 03:04:05.000006789'", "timestamp[ns]", None, None, "1960-01-02T03:04:05.000006789"),
    ("TIME '03:04:05'", "time64[us]", SAME, SAME, "03:04:05"),
    ("TIME '24:00:00'", "time64[us]", SAME, None, "24:00:00"),
    ("TIME_NS '03:04:05.000006789'", "time64[ns]", SAME, SAME, "03:04:05.000006789"),
    ("TIMETZ '03:04:05+02'", "string", SAME, "03:04:05+02", "03:04:05+02:00"),
    ("INTERVAL '2 days 3 seconds'", "month_day_nano_interval", SAME, SAME, "P2DT3S"),
    ("INTERVAL '1 month'", "month_day_nano_interval", SAME, REFUSED, "P1M"),
    ("'b'::ENUM('a', 'b')", "string", SAME, SAME, SAME),
    ("[1, NULL]::HUGEINT[]", "list<", SAME, None, [1, None]),
    ("[1, 2]::INTEGER[2]", "fixed_size_list<", None, None, [1, 2]),
    (f"{{'u': '{UUID}'::UUID, 'n': NULL}}", "struct<", SAME, {"u": UUID, "n": None}, {"u": UUID, "n": None}),
    ("row(1, '10'::BIT)", "struct<", SAME, {"element1": 1, "element2": "10"}, [1, "10"]),
    ("MAP {'a': 1, 'b': NULL}", "map<", SAME, SAME, SAME),
    ("MAP {[1]: 2}", "map<", SAME, None, SAME),
    ("union_value(n := 1)", "sparse_union<", SAME, REFUSED, SAME),
    ("NULL", "null", SAME, SAME, SAME),
]
IDS = [expression for expression, *_ in TYPES]


@pytest.fixture(scope="module")
def sources() -> Iterator[tuple[almanaq.Connection, duckdb.DuckDBPyConnection]]:
    own = duckdb.connect()
    with almanaq.connect(own, cache=False) as connection:
        yield connection, own


def query(expression: str) -> str:
    value, _, rest = expression.partition(" FROM ")
    return f"SELECT {value} AS v{' FROM ' + rest if rest else ''}"


@pytest.mark.parametrize(("expression", "arrow", "pandas", "polars", "in_json"), TYPES, ids=IDS)
def test_a_value_is_the_same_wherever_it_goes(
    sources: tuple[Any, Any], expression: str, arrow: str, pandas: Any, polars: Any, in_json: Any
) -> None:
    connection, own = sources
    expected = own.sql(query(expression)).fetchall()
    result = connection.sql(query(expression))
    assert repr(result.rows) == repr(expected)
    assert connection.cursor().execute(query(expression)).fetchall() == expected
    value = expected[0][0]

    assert str(result.arrow().schema.field("v").type).startswith(arrow)
    for method, wanted in (("df", pandas), ("pl", polars)):
        if wanted is REFUSED:
            with pytest.raises(REFUSED, match=r"'v'.*v::"):
                getattr(result, method)()
        elif wanted is not None or expression == "NULL":
            got = getattr(result, method)()["v"].to_list()[0]
            assert got == (value if wanted is SAME else wanted), method

    wanted = value if in_json is SAME else in_json
    assert result_record(result)["rows"] == [[wanted]]
    buffer = io.BytesIO()
    write = rows_writer(buffer, Format.csv)
    write(result.table)
    write(None)
    cell = list(csv.reader(io.StringIO(buffer.getvalue().decode())))[1:] or [[""]]
    nested = isinstance(wanted, list | dict)
    shown = "" if wanted is None else str(wanted).lower() if isinstance(wanted, bool) else str(wanted)
    assert (json.loads(cell[0][0]) == wanted) if nested else (cell[0] == [shown] or not cell[0])


def test_rows_of_a_slice_and_of_many_batches_are_the_client_s(sources: tuple[Any, Any]) -> None:
    connection, own = sources
    text = """SELECT CASE WHEN i % 3 = 0 THEN NULL ELSE i END::HUGEINT * 10000000000000000000 AS huge,
        CASE WHEN i % 3 = 1 THEN NULL ELSE [i, NULL]::HUGEINT[] END AS list,
        CASE WHEN i % 3 = 2 THEN NULL ELSE MAP {i: row(i::HUGEINT, (i % 2)::VARCHAR::BIT)} END AS map,
        CASE WHEN i % 3 = 0 THEN NULL ELSE [i, i + 1]::UHUGEINT[2] END AS pair,
        CASE WHEN i % 3 = 1 THEN NULL ELSE DATE '2020-01-01' + i::INTEGER END AS day,
        CASE WHEN i % 3 = 2 THEN NULL ELSE {'u': union_value(n := i::HUGEINT), 'v': i::VARIANT} END AS mixed,
        CASE WHEN i % 3 = 0 THEN NULL ELSE {'u': union_value(n := i::HUGEINT)} END AS held
        FROM range(5000) t(i) ORDER BY i"""
    expected = own.sql(text).fetchall()
    result = connection.sql(text)
    assert result.rows == expected
    assert result[7:4001].rows == expected[7:4001]
    assert result[::-1].rows == expected[::-1]


def test_a_volatile_query_runs_once(sources: tuple[Any, Any]) -> None:
    result = sources[0].sql("SELECT uuid() AS u, random()::VARCHAR AS n, '1'::BIT AS b FROM range(3)")
    assert [str(row[0]) for row in result.rows] == result.arrow().column("u").to_pylist()
    assert [row[1] for row in result.rows] == result.arrow().column("n").to_pylist()


def test_moments_in_a_zone_are_aware(sources: tuple[Any, Any]) -> None:
    (moment,) = sources[0].sql("SELECT TIMESTAMPTZ '2020-01-01 12:00:00+02' AS t").rows[0]
    assert moment.isoformat().startswith("2020-01-01T")
    assert moment.timestamp() == 1577872800.0


def test_states_of_aggregates_are_refused_by_name(sources: tuple[Any, Any]) -> None:
    for text in ("SELECT sum(1) EXPORT_STATE AS s", "SELECT [sum(1) EXPORT_STATE] AS s"):
        with pytest.raises(almanaq.NotSupportedError, match=r"finalize\(s\)"):
            sources[0].sql(text)


CONDITIONS = [
    "bits::VARCHAR = answer(note, 'bits?')",
    "m['k'] = answer(note, 'which?')::INTEGER",
    "big = answer(note, 'which?')::HUGEINT * 100000000000000000000::HUGEINT",
    "length(answer(note, 'which?') || id::VARCHAR) = 37",
    "span < to_months(answer(note, 'which?')::INTEGER + 1)",
    "clock::VARCHAR || answer(note, 'which?') = '12:00:00+021'",
    "v::INTEGER = answer(note, 'which?')::INTEGER",
    "last > DATE '2020-01-01' + answer(note, 'which?')::INTEGER",
    "pair = row(1, answer(note, 'which?')::INTEGER)",
]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_conditions_over_answers_get_the_values_of_the_row(condition: str) -> None:
    own = duckdb.connect()
    own.execute("""CREATE TABLE t AS SELECT i, 'note ' || i AS note, '1010'::BIT AS bits, MAP {'k': i} AS m,
        i::HUGEINT * 100000000000000000000::HUGEINT AS big, uuid() AS id, to_months(i::INTEGER) AS span,
        TIMETZ '12:00:00+02' AS clock, i::VARIANT AS v, DATE 'infinity' AS last,
        row(1, i::INTEGER) AS pair FROM range(4) q(i)""")

    def reply(text: str, question: str) -> str:
        return "1010" if question == "bits?" else text.split()[-1]

    plain = condition.replace("answer(note, 'bits?')", "'1010'").replace("answer(note, 'which?')", "i::VARCHAR")
    expected = own.sql(f"SELECT i FROM t WHERE {plain} ORDER BY i").fetchall()
    assert expected
    with almanaq.connect(own, model=FunctionModel(reply), cache=False) as connection:
        assert connection.sql(f"SELECT i FROM t WHERE {condition} ORDER BY i").rows == expected
