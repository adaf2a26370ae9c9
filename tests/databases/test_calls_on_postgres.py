"""Calls that the parser reads as something else: their rows and the names of their outputs are the server's."""

from __future__ import annotations

import psycopg
import pytest

import almanaq
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
