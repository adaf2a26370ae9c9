"""The path through ibis gives the rows that the oracle and DuckDB give, over servers that can be had."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
import sqlglot
from test_postgres_and_duckdb import TASK, connect, task

import almanaq
import mariadb_server
from almanaq.engines.ibis.engine import IbisDatabase
from engines import PostgresServer
from laws.check import cases, check, connect_exactly

pytestmark = pytest.mark.slow
QUERIES = 6


def test_random_queries_give_the_rows_of_the_oracle(postgres_server: PostgresServer) -> None:
    ibis = pytest.importorskip("ibis")

    def through_ibis(tables: dict[str, object], model: object, **options: object) -> object:
        url = postgres_server.source(tables)
        return connect_exactly(IbisDatabase(lambda: ibis.connect(url), name="ibis"), model, **options)

    failures = [
        f for ready in cases(0, QUERIES, "postgres") if (f := check(ready, connect=through_ibis)[0]) is not None
    ]
    assert not failures, "\n".join(map(str, failures))


@pytest.fixture(scope="module")
def both(mariadb: str) -> Iterator[tuple[almanaq.Connection, almanaq.Connection]]:
    table = task()["task"]
    rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    shifted = [(i, city.lower() if city and i % 8 < 4 else city, stars, body) for i, city, stars, body in rows]
    tables = {"task": pa.table([list(c) for c in zip(*shifted, strict=True)], names=table.column_names)}
    with mariadb_server.connect(mariadb) as connection, connection.cursor() as cursor:
        columns = "id int PRIMARY KEY, city varchar(9), stars int, body text COMMENT 'FREE_TEXT'"
        cursor.execute(f"CREATE TABLE task ({columns})")
        cursor.executemany("INSERT INTO task VALUES (%s, %s, %s, %s)", shifted)
    first, second = connect(tables)[0], connect(mariadb)[0]
    yield first, second
    first.close()
    second.close()
    with mariadb_server.connect(mariadb) as connection, connection.cursor() as cursor:
        cursor.execute("DROP TABLE task")


@pytest.mark.parametrize("sql", TASK)
def test_mariadb_gives_the_rows_and_calls_of_duckdb(both: tuple[Any, Any], sql: str) -> None:
    own = sqlglot.parse_one(sql, read="duckdb").sql("mysql")
    right, found = (con.sql(written) for con, written in zip(both, (sql, own), strict=True))
    assert right.rows
    ordered = "ORDER BY" in sql
    rows = [list(map(tuple, r.rows)) if ordered else sorted(map(tuple, r.rows)) for r in (found, right)]
    assert rows[0] == rows[1]
    assert found.trace.text_calls == right.trace.text_calls
