"""ENUM columns are compared and sorted by their order: PostgreSQL's rows, there, on DuckDB, on files and on SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

import almanaq
from almanaq.errors import QueryTypeError
from almanaq.testing import FunctionModel
from engines import PostgresServer

VALUES = ("red", "orange", "yellow", "green", "blue")
ROWS = [
    (1, "red", "blue", "red"),
    (2, "yellow", "green", "zz"),
    (3, "green", "orange", "aa"),
    (4, None, "red", None),
    (5, "blue", "blue", "green"),
    (6, "orange", "yellow", "orange"),
]
QUERIES = (
    "SELECT id FROM cars WHERE col > 'yellow'",
    "SELECT id FROM cars WHERE 'yellow' <= col AND col <> 'green'",
    "SELECT id FROM cars WHERE col BETWEEN 'orange' AND 'green'",
    "SELECT id FROM cars WHERE col NOT BETWEEN 'orange' AND 'green'",
    "SELECT id FROM cars WHERE col < other",
    "SELECT a.id, b.id FROM cars a JOIN cars b ON a.col < b.other",
    "SELECT id FROM cars WHERE col = other OR col IN (SELECT other FROM cars WHERE id = 3)",
    "SELECT id, col FROM cars ORDER BY col DESC NULLS LAST",
    "SELECT min(col), max(col) FILTER (WHERE id < 4), greatest('orange', max(col), min(other)) FROM cars",
    "SELECT max(c) FROM (SELECT col AS c FROM cars UNION SELECT other FROM cars) s WHERE c < 'blue'",
    "SELECT other, min(col) FROM cars GROUP BY other HAVING max(col) > 'yellow' ORDER BY other",
    "SELECT id, rank() OVER (ORDER BY col), max(col) OVER (ORDER BY id) FROM cars ORDER BY id",
    "SELECT array_agg(id ORDER BY col, id) FROM cars",
    "SELECT DISTINCT col FROM cars ORDER BY col NULLS LAST",
    "SELECT DISTINCT ON (other) other, id FROM cars ORDER BY other, col DESC NULLS LAST",
    "SELECT col FROM cars WHERE id < 4 UNION SELECT other FROM cars ORDER BY col NULLS LAST LIMIT 3",
    "WITH w AS (SELECT col AS c, id FROM cars) SELECT id FROM w WHERE c < 'yellow' ORDER BY c DESC",
    "SELECT id FROM cars WHERE col > (SELECT min(col) FROM cars WHERE id IN (2, 3))",
    "SELECT id FROM cars WHERE col > ANY (SELECT other FROM cars WHERE id = 3)",
    "SELECT id FROM cars WHERE coalesce(col, 'red') > 'orange' AND col::text > 'a'",
    "SELECT id FROM cars ORDER BY CASE WHEN id < 4 THEN col ELSE other END, id",
    "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY col) FROM cars",
    "SELECT id FROM cars WHERE (col, id) > ('yellow', 2)",
    "SELECT (SELECT max(other) FROM cars b WHERE b.col <= a.col) FROM cars a ORDER BY id",
)
ASKED = (
    "SELECT id FROM cars WHERE answer(note, 'long?') = 'Yes' AND col > 'orange' ORDER BY id",
    "SELECT id FROM cars WHERE answer(note, 'long?') = 'Yes' ORDER BY col DESC",
    "SELECT max(col), min(col) FROM cars WHERE answer(note, 'long?') = 'Yes'",
    "SELECT id FROM cars ORDER BY CASE WHEN answer(note, 'long?') = 'Yes' THEN other ELSE col END, id LIMIT 3",
)


def make(connection: Any, type_: str, mark: str) -> None:
    """Make the table of cars, its colours of a type."""
    connection.execute(f"CREATE TABLE cars (id int, col {type_}, other {type_}, note text)")
    for row in ROWS:
        connection.execute(f"INSERT INTO cars VALUES ({', '.join([mark] * 4)})", row)


def model() -> FunctionModel:
    """Return a model that finds notes long that have more than two letters."""
    return FunctionModel(lambda text, _: "Yes" if len(text) > 2 else "No")


@pytest.fixture(scope="module")
def engines(postgres_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("cars")
    kinds = f"ENUM ({', '.join(map(repr, VALUES))})"
    url = postgres_server.new_database()
    plain = psycopg.connect(url, autocommit=True)
    plain.execute(f"CREATE TYPE rainbow AS {kinds}")
    make(plain, "rainbow", "%s")
    native = duckdb.connect()
    make(native, kinds, "?")
    lite = sqlite3.connect(folder / "cars.sqlite")
    make(lite, "text", "?")
    lite.commit()
    lite.close()
    (folder / "csv").mkdir()
    native.execute(f"COPY cars TO '{folder}/csv/cars.csv' (HEADER)")
    listed = "".join(f"[cars.columns.{name}]\nvalues = {list(VALUES)}\n" for name in ("col", "other"))
    for name in ("cars.sqlite", "csv"):
        (folder / f"{name}.almanaq.toml").write_text("[cars]\n" + listed)
    sources = {"postgres": url, "duckdb": native, "sqlite": str(folder / "cars.sqlite"), "csv": str(folder / "csv")}
    opened = {name: almanaq.connect(source, model=model(), cache=False) for name, source in sources.items()}
    yield {"plain": plain, **opened}
    for con in opened.values():
        con.close()
    plain.close()
    native.close()


@pytest.mark.parametrize("sql", QUERIES)
def test_rows_are_those_of_postgres(engines: dict[str, Any], sql: str) -> None:
    rows = engines["plain"].execute(sql).fetchall()
    assert rows
    for name in ("postgres", "duckdb", "sqlite", "csv"):
        result = engines[name].sql(sql)
        given = [tuple(row) for row in result.rows]
        assert (given if "ORDER BY" in sql else sorted(given)) == (rows if "ORDER BY" in sql else sorted(rows)), name
        assert not result.trace.warnings


@pytest.mark.parametrize("sql", ASKED)
def test_beside_text_functions(engines: dict[str, Any], sql: str) -> None:
    said = "answer(t text, q text) RETURNS text LANGUAGE sql AS"
    engines["plain"].execute(
        f"CREATE OR REPLACE FUNCTION {said} $$ SELECT CASE WHEN length(t) > 2 THEN 'Yes' ELSE 'No' END $$"
    )
    rows = engines["plain"].execute(sql.replace("DESC", "DESC NULLS LAST")).fetchall()
    assert rows
    for name in ("postgres", "duckdb", "sqlite", "csv"):
        assert [tuple(row) for row in engines[name].sql(sql).rows] == rows, name


def test_a_type_of_the_server_may_be_named(engines: dict[str, Any]) -> None:
    for name in ("postgres", "duckdb", "csv"):
        assert engines[name].sql("SELECT id FROM cars WHERE col >= 'green'::rainbow ORDER BY 1").rows == [(3,), (5,)]


def test_a_literal_that_is_no_value_has_no_place(engines: dict[str, Any]) -> None:
    with pytest.raises(QueryTypeError, match=r"'purple' is none of the values of cars\.col"):
        engines["csv"].sql("SELECT id FROM cars WHERE col > 'purple'")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT mood FROM days ORDER BY mood",
        "SELECT max(mood) FROM days",
        "SELECT count(*) FROM days WHERE mood > 'low'",
        "SELECT count(*) FROM (SELECT mood AS m FROM days) d WHERE m BETWEEN 'high' AND 'low'",
    ],
)
def test_an_inferred_enum_says_that_it_has_no_order(tmp_path: Path, sql: str) -> None:
    (tmp_path / "days.csv").write_text(
        "mood,n\n" + "".join(f"{mood},{n}\n" for n in range(9) for mood in ("low", "high"))
    )
    with almanaq.connect(str(tmp_path), cache=False) as con:
        assert "days.mood has no declared order" in con.sql(sql).trace.warnings[0]
        assert "days.mood has no declared order" in str(con.explain(sql))
        assert not con.sql("SELECT mood, count(*) FROM days WHERE mood = 'low' GROUP BY mood").trace.warnings


def test_prices_of_the_sample_are_ordered() -> None:
    with almanaq.connect("sample:restaurants", cache=False) as con:
        assert con.sql("SELECT max(price), min(price) FROM restaurants").rows == [("luxury", "cheap")]
        dear = con.sql("SELECT DISTINCT price FROM restaurants WHERE price > 'moderate' ORDER BY price DESC")
        assert dear.rows == [("luxury",), ("expensive",)]
