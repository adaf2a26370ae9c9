"""The order of rows within a query, where something above depends on it: as DuckDB gives it, which keeps their order.

Each gives what DuckDB gives with `answer` as a function of its own, row by row.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

import almanaq
from almanaq.testing import FunctionModel

FILTERED = "(SELECT id, g FROM t WHERE answer(x, 'q') >= 'b' ORDER BY id DESC)"
ANSWERED = "(SELECT id, x, g, answer(x, 'q') AS a FROM t ORDER BY id DESC)"
PLAIN = "(SELECT id, x, g FROM t ORDER BY id DESC)"
AS_ROWS = "(SELECT t AS r, id, x FROM t ORDER BY id DESC)"
"""A row as a value is not planned: the query is taken apart."""
QUERIES = f"""
SELECT list(id) FROM {FILTERED}
SELECT string_agg(id, '>') FROM {FILTERED}
SELECT first(id), last(id), any_value(id), arg_max(id, g), count(*) FROM {FILTERED}
SELECT row_number() OVER () AS r, id FROM {FILTERED} ORDER BY r
SELECT id, lag(id) OVER () FROM {FILTERED} ORDER BY id
SELECT DISTINCT ON (a) a, id FROM {ANSWERED} ORDER BY a
SELECT g, list(a) FROM {ANSWERED} GROUP BY g ORDER BY g
SELECT list(id) FROM {ANSWERED} WHERE a = 'a'
SELECT list(id) FROM {PLAIN} WHERE answer(x, 'q') >= 'b'
SELECT list(answer(x, 'q')) FROM {PLAIN}
SELECT list(id) FROM (SELECT id FROM {FILTERED} WHERE g < 2)
SELECT ARRAY(SELECT id FROM {FILTERED})
SELECT * FROM {ANSWERED} WHERE a = 'a'
SELECT id FROM {FILTERED} LIMIT 2
SELECT id, n FROM {FILTERED}, unnest([1]) AS u(n) LIMIT 3
SELECT list(id) FROM (SELECT id FROM t ORDER BY answer(x, 'q') DESC, id DESC)
WITH s AS {ANSWERED} SELECT string_agg(a || id, '>') FROM s
WITH s AS MATERIALIZED {ANSWERED} SELECT string_agg(a || id, '>') FROM s
SELECT id FROM t EXCEPT ALL SELECT l.id FROM {ANSWERED} AS l JOIN u ON u.k < 2 WHERE l.a = 'a' ORDER BY id
SELECT -id AS i FROM t UNION ALL SELECT l.id FROM {ANSWERED} AS l JOIN u ON k < 2 WHERE l.a = 'a' ORDER BY i
SELECT list(i) FROM (SELECT 9 AS i UNION ALL SELECT l.id FROM {ANSWERED} AS l JOIN u ON k < 2 WHERE l.a = 'a')
SELECT u.k, (SELECT list(id) FROM {FILTERED} AS s WHERE s.g = u.k) FROM u ORDER BY k
SELECT list(id) FROM {AS_ROWS} WHERE answer(x, 'q') >= 'b'
SELECT list(answer(x, 'q')), first(r) FROM {AS_ROWS}
SELECT id, answer(x, 'q') FROM {AS_ROWS}
SELECT list(r) FROM (SELECT id, x FROM t WHERE answer(x, 'q') >= 'b' ORDER BY id DESC) AS r
SELECT l.id, r.a FROM t AS l POSITIONAL JOIN (SELECT answer(x, 'q') AS a FROM t) AS r
SELECT l.id, r.id FROM t AS l POSITIONAL JOIN (SELECT id FROM t WHERE answer(x, 'q') >= 'b') AS r
SELECT l.id, answer(r.x, 'q') FROM (SELECT id FROM t WHERE answer(x, 'q') IS NOT NULL) AS l POSITIONAL JOIN t AS r
SELECT generate_subscripts(n, 1) AS i, unnest(n) AS u, answer(x, 'q') FROM t
SELECT generate_subscripts(n, 1) AS i, answer(unnest(n), 'q') FROM t
SELECT regexp_split_to_table(x || ',c', ',') AS p, unnest(n) AS u, answer(x, 'q') FROM t LIMIT 9
""".strip().splitlines()


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    rng = random.Random(3)
    ids = rng.sample(range(40), 40)
    rows = ", ".join(f"({i}, '{rng.choice('abc')}', {i % 3}, {['p', 'q', 'r'][: i % 4]})" for i in ids)
    with duckdb.connect() as made:
        made.execute(f"CREATE TABLE t AS FROM (VALUES {rows}) AS v(id, x, g, n); CREATE TABLE u AS SELECT 1 AS k")
        yield made


@pytest.fixture(scope="module")
def reference(database: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as made:
        for name in ("t", "u"):
            made.register(name, database.table(name).to_arrow_table())
        texts: Any = ["VARCHAR", "VARCHAR"]
        made.create_function("answer", lambda text, _: text, texts, "VARCHAR")
        yield made


@pytest.fixture(scope="module")
def connection(database: duckdb.DuckDBPyConnection) -> Iterator[almanaq.Connection]:
    with almanaq.connect(database, model=FunctionModel(lambda text, _: text), cache=False) as opened:
        yield opened


@pytest.mark.parametrize("sql", QUERIES)
def test_rows_come_in_duckdbs_order(
    sql: str, connection: almanaq.Connection, reference: duckdb.DuckDBPyConnection
) -> None:
    assert connection.sql(sql).rows == reference.execute(sql).fetchall()
