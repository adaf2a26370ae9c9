"""Subscripts mean what PostgreSQL means by them, whatever they are of: rows are the server's, there and on DuckDB."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pyarrow as pa
import pytest

import almanaq
from engines import PostgresServer

WORLD = """
CREATE TYPE place AS (x int, y text);
CREATE TABLE t (id int, a int[], b int[], p place[], j jsonb, q point);
INSERT INTO t VALUES (1, '{4,5,6}', '{{1,2},{3,4}}', ARRAY[ROW(7, 'x')::place], '[[8, 9], {"k": 10}]', '(11,12)'),
    (2, '[0:1]={13,14}', '{}', NULL, '{"k": 15}', NULL);
"""
OF_ARRAYS = (  # of what every engine has
    "SELECT (ARRAY[4, 5, 6])[1], (ARRAY[4, 5, 6])[0], (ARRAY[4, 5, 6])[-1], (ARRAY[4, 5, 6])[NULL::int]",
    "SELECT (ARRAY[4, 5, 6])[n], (ARRAY[4, 5, 6])[n - 2], (ARRAY[4, 5, 6])[1 + 0] FROM generate_series(0, 4) n",
    "SELECT (ARRAY[4, 5, 6])[2:3], (ARRAY[4, 5, 6])[-1:2], (ARRAY[4, 5, 6])[:(n - 2)], (ARRAY[4, 5, 6])[n - 2:] "
    "FROM generate_series(0, 4) n",
    "SELECT (ARRAY[ARRAY[1, 2], ARRAY[3, 4]])[n][n - 1] FROM generate_series(0, 3) n",
    "SELECT v[2] FROM (SELECT string_to_array('a,b', ',') AS v) s",
)
OF_THE_SERVER = (
    "SELECT a[1], a[id], a[0], a[2:], b[2][1], b[id][id], b[1:1][1:2] FROM t",
    "SELECT p[1]::text, p[id]::text, (p[1]).x, (p[1]).y FROM t",
    "SELECT v[1]::text, (v[1]).x FROM (SELECT p AS v FROM t) s",
    "WITH w AS (SELECT min(p) AS v FROM t) SELECT v[1]::text, (coalesce(v, '{}'))[1]::text FROM w",
    "SELECT j[0]::text, j[1]['k']::text, j[0][1]::text, j['k']::text, (j -> 0)[1]::text FROM t",
    "SELECT q[0], q[1], v[0] FROM t, (VALUES (point '(1,2)')) s(v)",
)


@pytest.fixture(scope="module")
def url(postgres_server: PostgresServer) -> str:
    made: str = postgres_server.new_database()
    with psycopg.connect(made, autocommit=True) as server:
        server.execute(WORLD.encode())
    return made


@pytest.fixture(scope="module")
def server(url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(url, autocommit=True) as opened:
        yield opened


@pytest.mark.parametrize("query", OF_ARRAYS + OF_THE_SERVER)
def test_subscripts_on_postgres(url: str, server: psycopg.Connection, query: str) -> None:
    with almanaq.connect(url, cache=False) as con:
        assert con.sql(query).rows == server.execute(query.encode()).fetchall()


@pytest.mark.parametrize("query", OF_ARRAYS)
def test_subscripts_on_duckdb(server: psycopg.Connection, query: str) -> None:
    with almanaq.connect({"t": pa.table({"id": [1]})}, cache=False) as con:
        assert con.sql(query).rows == server.execute(query.encode()).fetchall()
