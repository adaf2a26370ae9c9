"""Queries in another dialect than the engine's: the rows they mean there, or a refusal; no clause is left out."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator

import pyarrow as pa
import pytest

import almanaq
from almanaq.errors import ParameterError, QuerySyntaxError, RefusedQueryError, UnsupportedError, UsageError
from almanaq.testing import FunctionModel
from engines import PostgresServer

DOGS = {
    "dogs": pa.table(
        {
            "id": [1, 2, 3, 4, 5],
            "name": ["Rex", "Bella", "Milo", "Öl", None],
            "age": pa.array([7, 3, 3, None, 8], pa.int32()),
            "weight": [30.5, 4.0, None, 12.25, 8.0],
            "about": ["Rex is friendly.", "Bella bites.", "Milo is friendly.", None, ""],
        }
    )
}
IN_POSTGRES = [
    "SELECT id, age / 2, -age / 2, weight / 2, age / 2.0 FROM dogs ORDER BY id",
    "SELECT age / 2 / 2 + 7 / (age / id) * 2 FROM dogs WHERE id = 1",
    "SELECT d.age / e.id FROM dogs d JOIN dogs e ON d.id = e.id ORDER BY d.id",
    "SELECT name FROM dogs ORDER BY age DESC, id",
    "SELECT name FROM dogs ORDER BY age, name DESC",
    "SELECT DISTINCT ON (age) age, name FROM dogs ORDER BY age, id DESC",
    "SELECT id FROM dogs WHERE name ~ 'el+' OR name ILIKE '%R%' ORDER BY id",
    "SELECT count(*) FILTER (WHERE age > 3), string_agg(name, ',' ORDER BY id) FROM dogs",
    "SELECT (ARRAY[10, 20])[1], coalesce(NULL::int, 4), 7 / 2, 'a' || 1",
    "SELECT to_char(DATE '2024-03-05', 'YYYY-MM-DD'), extract(year FROM DATE '2024-03-05')::int",
    "SELECT row_number() OVER (ORDER BY weight DESC NULLS LAST), id FROM dogs ORDER BY 1",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4) SELECT sum(i)::int FROM n",
    "SELECT id FROM dogs WHERE id = ANY (ARRAY[1, 3]) AND (id, age) IN ((1, 7), (3, 9))",
    "SELECT g, (SELECT count(*) FROM dogs WHERE id <= g) FROM generate_series(1, 3) AS g ORDER BY 1",
    "SELECT id FROM dogs WHERE answer(about, 'is it friendly?') = 'Yes' ORDER BY id DESC LIMIT 1 OFFSET 1",
    "SELECT answer(about, 'is it friendly?') AS said, count(*) FROM dogs GROUP BY 1 ORDER BY 2, 1",
]
IN_SQLITE = [
    "SELECT id FROM t WHERE city LIKE 'b%' OR city NOT LIKE '%R' ORDER BY id",
    "SELECT id, CAST(price AS INTEGER), CAST(price * -1 AS INT), CAST(id AS INTEGER), CAST('9.99' AS INTEGER) FROM t",
    "SELECT id, CAST(price > 2 AS INTEGER), CAST(9.99 AS INTEGER), CAST(3000000000 AS INTEGER) FROM t",
    "SELECT CAST(CAST(price AS INTEGER) + 0.7 AS INTEGER) FROM t",
    "SELECT id, max(id, 2), min(id, price, 3), max(id, NULL) FROM t",
    "SELECT max(id), min(price) FROM t",
    "SELECT id FROM t WHERE city IS 'Bern' OR city IS NULL OR price IS NOT 1.5 ORDER BY id",
    "SELECT id, said FROM t WHERE said IS NOT 'Zug' AND said LIKE 'BER%'",
    "SELECT id AS rowid FROM t ORDER BY rowid",
    "SELECT format('%05d', id) AS f, printf('%s!', city) AS p FROM t WHERE city IS NOT NULL ORDER BY id",
]
LOST = [
    ("postgres", "SELECT id FROM dogs ORDER BY age FETCH FIRST 2 ROWS WITH TIES"),
    ("postgres", "SELECT id FROM dogs FOR UPDATE"),
    ("tsql", "SELECT id FROM dogs FOR XML PATH"),
    ("mysql", "SELECT STRAIGHT_JOIN id FROM dogs"),
    ("oracle", "SELECT id FROM dogs START WITH id = 1 CONNECT BY PRIOR id = age"),
    ("clickhouse", "SELECT id FROM dogs PREWHERE age = 3"),
    ("clickhouse", "SELECT id FROM dogs SETTINGS max_threads = 1"),
    ("spark", "SELECT id FROM dogs SORT BY age"),
    ("spark", "SELECT id FROM dogs DISTRIBUTE BY age"),
    ("spark", "SELECT id FROM dogs LATERAL VIEW explode(array(1)) e AS y"),
    ("bigquery", "SELECT array_agg(id LIMIT 2) FROM dogs"),
    ("postgres", "SELECT unknown_column / id FROM dogs"),
    ("sqlite", "SELECT rowid FROM dogs"),
    ("sqlite", "SELECT id FROM dogs d WHERE d._rowid_ < 3"),
    ("sqlite", "SELECT date('2024-01-31', '+1 month') FROM dogs"),
]


def _model() -> FunctionModel:
    return FunctionModel(lambda text, question: "Yes" if "friendly" in text else "No")


@pytest.fixture(scope="module")
def dogs() -> Iterator[almanaq.Connection]:
    with almanaq.connect(DOGS, model=_model(), cache=False) as opened:
        yield opened


@pytest.fixture(scope="module")
def server(postgres_server: PostgresServer) -> Iterator[almanaq.Connection]:
    with almanaq.connect(postgres_server.source(DOGS), model=_model(), cache=False) as opened:
        yield opened


@pytest.mark.parametrize("suql", IN_POSTGRES)
def test_a_query_in_postgres_gives_the_rows_that_postgres_gives(
    dogs: almanaq.Connection, server: almanaq.Connection, suql: str
) -> None:
    assert dogs.sql(suql, dialect="postgres").rows == server.sql(suql).rows


@pytest.fixture(scope="module")
def sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[almanaq.Connection, sqlite3.Connection]]:
    path = tmp_path_factory.mktemp("sqlite") / "t.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as own:
        own.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, city TEXT, price REAL, said TEXT)")
        rows = [(1, "Bern", 9.99, "Bern"), (2, "Zug", 1.5, "Zug"), (3, None, None, None), (4, "Chur", -0.7, "Chur")]
        own.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
        own.commit()
        model = FunctionModel(lambda text, question: text)
        with almanaq.connect(path, model=model, cache=False, link=False, dialect="sqlite") as con:
            yield con, own


@pytest.mark.parametrize("suql", IN_SQLITE)
def test_a_query_in_sqlite_gives_the_rows_that_sqlite_gives(
    sqlite: tuple[almanaq.Connection, sqlite3.Connection], suql: str
) -> None:
    con, own = sqlite
    rows = own.execute(suql).fetchall()
    assert con.sql(suql).rows == rows
    assert con.sql(suql.replace("said", "answer(said, 'what?')")).rows == rows


@pytest.mark.parametrize(
    ("dialect", "whole"), [("spark", [9, -2]), ("tsql", [9, -2]), ("mysql", [10, -3]), ("snowflake", [10, -3])]
)
def test_a_cast_to_a_whole_number_truncates_or_rounds_as_there(
    dogs: almanaq.Connection, dialect: str, whole: list[int]
) -> None:
    numbers = "CAST(CAST(9.99 AS DOUBLE) AS BIGINT), CAST(CAST(-2.7 AS DOUBLE) AS BIGINT)"
    assert dogs.sql(f"SELECT {numbers}".replace("BIGINT", "SIGNED" if dialect == "mysql" else "BIGINT"),
                    dialect=dialect).rows == [tuple(whole)]  # fmt: skip


@pytest.mark.parametrize(("dialect", "suql"), LOST)
def test_what_cannot_be_carried_over_is_refused(dogs: almanaq.Connection, dialect: str, suql: str) -> None:
    for run in (dogs.sql, dogs.explain):
        with pytest.raises(UnsupportedError, match=f"from {dialect} to duckdb"):
            run(suql, dialect=dialect)


@pytest.mark.parametrize(
    ("dialect", "suql", "params", "rows"),
    [
        ("mysql", "SELECT `id` FROM dogs WHERE age > ? AND id < ? LIMIT 0, 3", [3, 5], [(1,)]),
        ("postgres", "SELECT $2 - $1 FROM dogs WHERE id = $1", [1, 10], [(9,)]),
        ("postgres", "WITH a AS (SELECT ? AS x) SELECT x, ? FROM a WHERE x < ?", [1, 2, 3], [(1, 2)]),
        ("tsql", "SELECT TOP 1 [id] FROM dogs ORDER BY id DESC", [], [(5,)]),
        ("snowflake", "SELECT id FROM dogs QUALIFY row_number() OVER (ORDER BY id) = 2", [], [(2,)]),
    ],
)
def test_clauses_names_and_parameters_are_carried_over(
    dogs: almanaq.Connection, dialect: str, suql: str, params: list[object], rows: list[tuple[object, ...]]
) -> None:
    assert dogs.sql(suql, params, dialect=dialect).rows == rows


def test_a_question_mark_in_a_text_is_none_of_the_parameters(dogs: almanaq.Connection) -> None:
    asked = "SELECT id FROM dogs WHERE answer(about, 'is it friendly?') = 'Yes' AND id > ?"
    assert dogs.sql(asked, [1], dialect="postgres").rows == [(3,)]
    with pytest.raises(ParameterError, match="not both"):
        dogs.sql("SELECT ?, $1", [1], dialect="postgres")


def test_what_is_no_query_is_refused_before_it_is_translated(dogs: almanaq.Connection) -> None:
    for text, error in (
        ("DELETE FROM dogs", RefusedQueryError),
        ("SELECT 1; SELECT 2", RefusedQueryError),
        ("SELECT FROM WHERE", QuerySyntaxError),
        ("", QuerySyntaxError),
        ("SELECT * FROM read_csv('/etc/passwd')", RefusedQueryError),
        ("SELECT pg_read_file('/etc/passwd')", almanaq.errors.UnknownNameError),
        ("SELECT " + "(" * 5_000, UnsupportedError),
    ):
        with pytest.raises(error):
            dogs.sql(text, dialect="postgres")


def test_it_is_chosen_for_a_query_its_options_or_the_connection() -> None:
    whole = "SELECT id / 2 FROM dogs WHERE id = 3"
    with almanaq.connect(DOGS, dialect="postgresql", cache=False) as con:
        assert con.sql(whole).rows == con.cursor().execute(whole).fetchall() == [(1,)]
        assert con.sql(whole, dialect="duckdb").rows == [(1.5,)]
        assert con.sql(whole, options=almanaq.Options(max_rows=1)).rows == [(1,)]
        assert con.sql(whole, options=almanaq.Options(dialect="duckdb")).rows == [(1.5,)]
        assert con.ask("How many dogs are older than 5?").rows == ((2,),)
        assert con.public().sql(whole).rows == [(1,)]
    for wrong in ("postgrs", ""):
        with pytest.raises(UsageError, match="dialect"):
            almanaq.connect(DOGS, dialect=wrong, cache=False)
