"""The restaurants and a 200-row task: the same rows from PostgreSQL as from DuckDB, for the same calls."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pytest

import almanaq
from almanaq import sample
from almanaq.encode import plain
from almanaq.errors import DatabaseError, UnsupportedError
from almanaq.testing import FunctionModel
from engines import PostgresServer

ROMANTIC = "answer(reviews, 'is it romantic?') = 'Yes'"
RESTAURANTS = (
    f"SELECT name FROM restaurants WHERE {ROMANTIC} LIMIT 3",
    f"SELECT name, rating FROM restaurants WHERE {ROMANTIC} AND rating >= 4 ORDER BY rating DESC, name LIMIT 5",
    f"SELECT count(*) FROM restaurants WHERE NOT ({ROMANTIC} OR rating > 4.5)",
    "SELECT name, answer(reviews, 'what to drink?') FROM restaurants ORDER BY name LIMIT 4",
    f"SELECT price, count(*), avg(rating) FROM restaurants WHERE {ROMANTIC} GROUP BY price ORDER BY price",
    "SELECT name FROM restaurants, unnest(reviews) AS t WHERE answer(t, 'is it loud?') = 'Yes' ORDER BY 1, t LIMIT 5",
)
TASK = (
    "SELECT id FROM task WHERE answer(body, 'is it calm?') = 'Yes' LIMIT 5",
    "SELECT id FROM task WHERE city = 'Oslo' AND answer(body, 'is it calm?') = 'Yes' ORDER BY id DESC LIMIT 5",
    "SELECT city, count(*) FROM task WHERE answer(body, 'is it calm?') = 'No' GROUP BY city ORDER BY 2 DESC, 1",
    "SELECT max(answer(body, 'which number?')::int) FROM task WHERE stars > 2",
    "SELECT id FROM task WHERE stars = 5 OR answer(body, 'is it calm?') = 'Yes' AND city = 'Rome' ORDER BY id",
)


def task() -> dict[str, pa.Table]:
    """Return 200 rows, every third text repeated, every eleventh NULL."""
    ids = range(1, 201)
    bodies = [None if i % 11 == 0 else f"text {i - i % 3} about nothing" for i in ids]
    cities = [("Oslo", "Rome", None, "Kyiv")[i % 4] for i in ids]
    return {"task": pa.table({"id": ids, "city": cities, "stars": [i % 6 for i in ids], "body": bodies})}


EXPRESSIONS = (
    *(
        "INTERVAL '13 months -2 days 3.5 seconds'",
        "INTERVAL '-90 minutes'",
        "INTERVAL '0 days'",
        "id * INTERVAL '1 month'",
    ),
    *("age(at, '2020-01-01 00:00:00'::timestamp)", "at - '2020-01-01'::timestamp"),
    *("extract(second from at)", "extract(milliseconds from at)", "date_part('minute', at)"),
    *("round(f)", "f::int", "round(f::numeric)", "id / 2", "-id / 2"),
    *("array_length(l, 1)", "cardinality(l)", "l[1]", "l[0]", "l[-1]", "l[3]"),
    *("name < 'b'", "name COLLATE \"C\" > 'Z'", "name ~ '^[A-Z]'", "name ~* '^a'", "name LIKE 'a%'"),
    *("z", "z AT TIME ZONE 'Europe/Paris'", "z::date", "at::text"),
    *(
        "round(2.5)",
        "round(id / 2.0)",
        "(id / 2.0)::int",
        "f::text",
        "'f ' || f",
        "concat(f, name)",
        "(f / 3)::numeric > 0.8",
    ),
    *(
        "(SELECT round(avg(x)) FROM unnest(ARRAY[2, 3]) AS u(x))",
        "(SELECT avg(x)::int FROM unnest(ARRAY[2, 3]) AS u(x))",
    ),
    *("'0.1'::numeric + '0.2'::numeric = 0.3", "'3.14159'::numeric", "name::varchar(2)", "name::char(9)::text"),
    *(
        "substring(name, 0, 2)",
        "substring(name, -1, 4)",
        "substring(name, id::int - 2, 2)",
        "substring(name FROM '[a-z]+$')",
    ),
    *(
        "substring(name FROM 'n(.)')",
        "initcap('o''neil of ' || name)",
        "btrim(name, 'a')",
        "octet_length(name)",
        "to_hex(255)",
    ),
    *("format('%s is %s%%', name, l[3])", "string_to_array('', ',')", "regexp_like(name, 'A', 'i')"),
    *(r"name ~ '^\w+$'", "name ~ '^[[:lower:]]'", r"name ~ '[\w]{5}'", "name LIKE ANY (ARRAY['Z%', '%a'])"),
    *("to_char(at, 'FMDay, DD Mon YYYY')", "to_char(at, 'HH12:MI AM')", "to_char(at, 'Month|Dy|Q|\"T\"|YY')"),
    *("to_date('3 Feb 2020', 'DD Mon YYYY')", "to_timestamp('2020/02/03 04:05', 'YYYY/MM/DD HH24:MI')::timestamp"),
    *(
        "l || 'z'::text",
        "l || ARRAY['z']",
        "l || NULL::text[]",
        "array_remove(l || l, 'x')",
        "array_to_string(l, '-', '*')",
    ),
    *("array_to_string(ARRAY[NULL]::text[], ',')", "'{a,\"b c\",NULL}'::text[]", "l @> '{x}'", "ARRAY[NULL] <@ l"),
    *("'x' <> ALL (l)", "'x' < ANY (l)", "id = ALL (ARRAY[1, NULL])", "id = ANY (ARRAY(SELECT 2))"),
    *("id / 2 / 2 * 3", "(7 + id) / (5 / 2)", "(SELECT 7 / 2) / 2", "extract(year FROM at) / 100", "sign(id) / 2"),
    *(
        "(at::date - '2020-01-01'::date) / 7",
        "cardinality(l) / 2",
        "octet_length(name) / 2",
        "regexp_count('aaa', 'a') / 2",
    ),
    *("(SELECT max(x / 2) FROM generate_series(1, 7) AS t(x))", "extract(hour FROM z)", "z::time"),
    *(
        "(id, name) = (1, 'b')",
        "(id, f) < (2, 0)",
        "ROW(l[1], id) <> ROW('y', 2)",
        "(id, name) NOT IN ((1, 'Zoe'), (2, 'b'))",
    ),
    *("(l[1], at) IS NULL", "(l[1], at) IS NOT NULL", "NOT ((l[1], at) IS NULL)"),
    *("'{\"a\": {\"b\": [1]}}'::jsonb #>> '{a,b,0}'", "jsonb_array_length('[1, 2]'::jsonb)"),
)
NOT_IN_DUCKDB = (
    *("to_char(id, '000')", "to_char(at, 'DDth')", "format('%L', name)", "date_trunc('century', at)"),
    *("string_to_array(name, '')", "'{{1,2},{3,4}}'::int[]"),
)


def odd() -> dict[str, pa.Table]:
    """Return values on which engines differ."""
    moment = datetime.datetime(2020, 2, 29, 23, 59, 59, 123456)
    return {
        "odd": pa.table(
            {
                "id": [1, 2, 3],
                "at": [moment, None, moment],
                "z": pa.array([moment, None, moment], pa.timestamp("us", "UTC")),
                "f": [2.5, -2.5, 1.5],
                "l": [["x"], [], None],
                "name": ["Zoe", "anna", "émile"],
            }
        )
    }


def said(text: str, question: str) -> str | None:
    """Answer from the length of text and question."""
    if "number" in question:
        return text.split()[1]
    return (None, "Yes", "No", "No", "Yes")[(len(text) + sum(map(ord, text + question))) % 5]


def connect(source: Any) -> tuple[almanaq.Connection, FunctionModel]:
    model = FunctionModel(said)
    return almanaq.connect(source, model=model, order="table", speculation=1, cache=False, link=False), model


@pytest.fixture(scope="module")
def both(postgres_server: PostgresServer) -> Iterator[tuple[Any, Any]]:
    tables: Mapping[str, pa.Table] = {**sample.load("restaurants").tables, **task(), **odd()}
    first, second = connect(dict(tables)), connect(postgres_server.source(tables))
    yield first, second
    first[0].close()
    second[0].close()


@pytest.mark.parametrize("sql", [*RESTAURANTS, *TASK])
def test_same_rows_and_calls(both: tuple[Any, Any], sql: str) -> None:
    results = [con.sql(sql) for con, _ in both]
    rows = [[tuple(float(v) if hasattr(v, "as_tuple") else v for v in row) for row in r.rows] for r in results]
    assert rows[0]
    assert rows[1] == rows[0]
    assert results[0].trace.text_calls == results[1].trace.text_calls > 0


@pytest.mark.parametrize("expression", NOT_IN_DUCKDB)
def test_what_duckdb_cannot_say_is_an_error_with_a_name(both: tuple[Any, Any], expression: str) -> None:
    with pytest.raises(UnsupportedError):
        both[0][0].sql(f"SELECT {expression} AS v FROM odd")
    assert both[1][0].sql(f"SELECT {expression} AS v FROM odd").rows


def test_a_date_that_python_has_none_for_is_an_error_with_a_name(both: tuple[Any, Any]) -> None:
    for con, _ in both:
        with pytest.raises(DatabaseError, match="text"):
            _ = con.sql("SELECT '99999-01-01'::date AS day").rows


def test_expressions_mean_the_same(both: tuple[Any, Any]) -> None:
    differ = {}
    for expression in EXPRESSIONS:
        sql = f"SELECT {expression} AS v FROM odd ORDER BY id"
        found = [plain([value for (value,) in con.sql(sql).rows]) for con, _ in both]
        if found[0] != found[1]:
            differ[expression] = found
    assert differ == {}
