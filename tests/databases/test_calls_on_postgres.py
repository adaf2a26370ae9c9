"""Calls that the parser reads as something else: their rows and the names of their outputs are the server's."""

from __future__ import annotations

import psycopg
import pyarrow as pa
import pytest

import almanaq
from almanaq.errors import QueryTypeError
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
    "SELECT date_mi('2024-03-01', '2024-02-01'), int4pl(1, 2), textcat('a', 'b'), bpchareq('a', 'a '), dtrunc(2.5)",
)


@pytest.mark.parametrize("query", QUERIES)
def test_rows_and_names_are_the_servers(postgres_server: PostgresServer, query: str) -> None:
    with psycopg.connect(postgres_server.url) as server, almanaq.connect(postgres_server.url, cache=False) as con:
        expected = server.execute(query.encode())
        found = con.sql(query)
        assert found.columns == tuple(column.name for column in expected.description or ())
        assert found.rows == expected.fetchall()


def test_a_unit_that_is_not_written_out_is_refused_elsewhere() -> None:
    with almanaq.connect({"t": pa.table({"u": ["day"]})}, cache=False) as con:
        with pytest.raises(QueryTypeError, match="written out"):
            con.sql("SELECT date_trunc(u, timestamp '2024-02-29') FROM t")
        assert con.sql("SELECT mod(7, 2), date_part('year', date '2024-02-29') FROM t").rows == [(1, 2024)]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT (i * f)::text, (-i)::text, i || '|', (i - interval '2 days')::text, (i / 7)::varchar "
        "FROM (VALUES (interval '1 month'), ('1 year 2 days 03:04:05.5'), ('-1 day 1 hour'), ('-2 mons 1 day')) v(i), "
        "(VALUES (1), (-1), (2)) w(f) ORDER BY i, f",
        "SELECT age(timestamp '2001-04-10', timestamp '1957-06-13')::text, age(date '2020-01-01', '2021-03-02')::text",
        "SELECT a FROM (VALUES (0), (7)) v(a) WHERE (a, a) IN (SELECT 0, generate_series(1, 9) / 5)",
        "SELECT (v::real)::numeric, v::real::numeric(10, 3) FROM (VALUES (3.3), (1004.3), (-34.84), (123456.7)) t(v)",
    ],
)
def test_what_duckdb_writes_otherwise_is_written_as_there(postgres_server: PostgresServer, query: str) -> None:
    with (
        psycopg.connect(postgres_server.url) as server,
        almanaq.connect({"t": pa.table({"a": [1]})}, cache=False) as con,
    ):
        assert con.sql(query).rows == server.execute(query.encode()).fetchall()
