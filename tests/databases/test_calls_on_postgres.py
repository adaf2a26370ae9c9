"""Calls that the parser reads as something else: their rows and the names of their outputs are the server's."""

from __future__ import annotations

import psycopg
import pyarrow as pa
import pytest

import almanaq
from almanaq.testing import FunctionModel
from engines import PostgresServer

QUERIES = (
    "SELECT date_part('year', d), date_part(u, d), extract(year FROM d), date_trunc(u, d), date_trunc('year', d) "
    "FROM (VALUES ('month', timestamp '2024-02-29 10:00')) v(u, d)",
    "SELECT date_bin(i::interval, d, origin) FROM (VALUES ('15 days', timestamp '2024-02-29', timestamp '2024-01-01')) "
    "v(i, d, origin)",
    "SELECT mod(7, 2) + 1, mod(1 + 6, 2 * 2), -mod(-7, 3), mod(7.5, 2), 10 - mod(9, 4), 7 % 2",
    "SELECT |/ 25.0::float8, ||/ 27.0::float8, @ -5, sqrt(4.0), cbrt(8::float8), abs(-1)",
    "SELECT regexp_like('a', 'A', 'i'), regexp_like('a', 'b'), (interval '1' day)::text, (interval '1 day')::text",
    "SELECT 'x'::bytea LIKE '_'::bytea ESCAPE '$'::bytea, '$_' LIKE '$__' ESCAPE '$'::text",
    "SELECT array_agg(v::float4), ARRAY[[1.1, 2.2]]::real[] FROM (VALUES (1004.3), (-34.84)) t(v)",
    "SELECT '{\"a\": [1, 2.5]}'::json, 'null'::jsonb, '[1]'::json -> 0, ROW(1, 'a,b', NULL), ROW(), ARRAY[ROW(1, 'x')]",
    "SELECT '00000000-0000-0000-0000-000000000002'::uuid, ARRAY['00000000-0000-0000-0000-000000000002'::uuid, NULL]",
    "SELECT r FROM (SELECT i, 'b' AS b FROM generate_series(1, 3) i UNION ALL SELECT NULL, NULL) r",
    "SELECT date_mi('2024-03-01', '2024-02-01'), int4pl(1, 2), textcat('a', 'b'), bpchareq('a', 'a '), dtrunc(2.5)",
)


@pytest.mark.parametrize("query", QUERIES)
def test_rows_and_names_are_the_servers(postgres_server: PostgresServer, query: str) -> None:
    with psycopg.connect(postgres_server.url) as server, almanaq.connect(postgres_server.url, cache=False) as con:
        expected = server.execute(query.encode())
        found = con.sql(query)
        assert found.columns == tuple(column.name for column in expected.description or ())
        assert found.rows == expected.fetchall()


REPLIES = {"a": "00000000-0000-0000-0000-000000000001", "b": "no uuid", "c": "00000000-0000-0000-0000-000000000002"}
CAST = "answer(body, 'q')::uuid"


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        (f"SELECT id, {CAST} IS NULL FROM t ORDER BY id", [(1, False), (2, True), (3, False)]),
        (f"SELECT id FROM t WHERE {CAST} > '{REPLIES['a']}'", [(3,)]),
        (f"SELECT id FROM t WHERE {CAST} > '{REPLIES['a']}' OR id = 2 ORDER BY {CAST}", [(3,), (2,)]),
        (f"SELECT count(*) FROM t GROUP BY {CAST} ORDER BY {CAST}", [(1,), (1,), (1,)]),
        (f"SELECT id FROM t WHERE {CAST} IS NULL LIMIT 1", [(2,)]),
        (
            f"SELECT id FROM (SELECT * FROM t ORDER BY id FETCH FIRST 2 ROWS WITH TIES) q WHERE {CAST} IS NULL",
            [(2,)],
        ),
    ],
)
def test_a_cast_that_the_server_refuses_is_null_and_counted(
    postgres_server: PostgresServer, query: str, rows: list[tuple[object, ...]]
) -> None:
    url = postgres_server.source({"t": pa.table({"id": [1, 2, 3], "body": ["a", "b", "c"]})})
    with almanaq.connect(url, model=FunctionModel(lambda text, question: REPLIES[text]), cache=False) as con:
        for _ in range(2):  # the second time, texts of statements are known
            found = con.sql(query)
            assert found.rows == rows
            assert found.trace.warnings == ("1 answer(s) to 'q' could not be read as uuid; they are NULL",)
