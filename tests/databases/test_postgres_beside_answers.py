"""PostgreSQL's own syntax beside text functions: the server with an `answer` of its own gives the same rows."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from test_names_on_postgres import Servers, assert_same

import almanaq
from almanaq.errors import UnsupportedError
from almanaq.testing import FunctionModel
from engines import PostgresServer

SETUP = """
    CREATE TYPE prio AS ENUM ('low', 'high');
    CREATE TABLE t (id int PRIMARY KEY, k int, prio prio, took interval, tags text[], opened timestamp, body text);
    INSERT INTO t VALUES
        (1, 1, 'high', '1 hour', '{a}', '2024-02-03', 'red x'), (2, 1, 'low', '2 hours', '{b}', '2024-03-04', 'blue y'),
        (3, 1, 'high', '1 mon 3 hours', '{a}', '2024-03-05', 'red z'), (4, 2, 'low', '4 hours', NULL, NULL, 'blue w');
    CREATE TABLE u (id int PRIMARY KEY, name text); INSERT INTO u VALUES (1, 'one'), (2, 'two');
    CREATE EXTENSION citext; CREATE TABLE n (id int PRIMARY KEY, name citext, codes varchar[]);
    INSERT INTO n VALUES (1, 'One', ARRAY['a"\\', NULL]), (2, 'two', '{b}'), (3, NULL, '{}');
    CREATE FUNCTION halves(text) RETURNS SETOF text LANGUAGE sql IMMUTABLE AS 'SELECT left($1, 3) UNION SELECT $1';
    CREATE FUNCTION pairs(int) RETURNS TABLE (once int, twice int) LANGUAGE sql IMMUTABLE AS 'SELECT $1, 2 * $1';
    CREATE SCHEMA oracle;
    CREATE FUNCTION oracle.answer(text, text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
        SELECT CASE WHEN $1 LIKE '%red%' THEN 'red' WHEN $1 LIKE '%blue%' THEN 'blue' END $$;
"""
EXPRESSIONS = (
    "now() > opened, date_trunc('month', opened), date_part('year', opened), opened - '1 day'::interval",
    "substr(body, 1, 2), char_length(body), strpos(body, 'e'), normalize(body, NFD), body IS NFC NORMALIZED",
    "mod(id, 2), id ^ 2 * 3, -id ^ 2, 2 ^ id ^ 2, |/ id, ||/ id, @ -id, +id, .5 * id, ceiling(id * .3), pow(id, 2)",
    "body !~ 'x', body !~* 'X', body ~~ 'r%', body !~~ 'r%', body ~~* 'R%', body ^@ 'r', to_hex(id)",
    "(id > 1) IS UNKNOWN, (opened > '2024-03-04') IS NOT UNKNOWN, (id = 1) IS NULL",
    "pg_catalog.substr(pg_catalog.substr(body, 2), (mod(id, 2) ^ 2)::int)",
    "pg_catalog.date_trunc('month', now()) > opened",
    "sum(id) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE CURRENT ROW)",
    "generate_series('2024-01-01'::timestamp, '2024-01-03', '1 day')",
)
A = "answer(body, 'colour?')"
QUERIES = (
    f"SELECT k, round(avg(id), 2), variance(id), stddev_pop(id) FROM t WHERE {A} = 'red' GROUP BY k",
    f"SELECT substr({A}, 1, 2) AS s, variance(id) AS v FROM t GROUP BY substr({A}, 1, 2) ORDER BY variance(id)",
    f"SELECT id FROM t WHERE {A} ~~* 'RE%' AND {A} !~ 'x' AND @ char_length({A}) = 3 LIMIT ALL",
    f"SELECT id FROM t WHERE ({A} = 'red') IS NOT UNKNOWN ORDER BY mod(id, 2), id ^ 2 DESC LIMIT NULL",
    f"SELECT d, count(t.id) FROM generate_series('2024-01-01'::timestamp, '2024-03-01', '1 month') d "
    f"LEFT JOIN t ON date_trunc('month', t.opened) = d AND {A} = 'red' GROUP BY 1",
    # groups
    f"SELECT k, {A} AS a, count(*) FROM t GROUP BY ROLLUP (1, 2)",
    f"SELECT k, {A} AS a, count(*) FROM t GROUP BY GROUPING SETS ((1, 2), (1), ())",
    f"SELECT {A}, k, count(*) FROM t GROUP BY ({A}, k)",
    f"SELECT t.id, t.k, {A} FROM t GROUP BY t.id",
    f"SELECT u.*, count(t.id) FROM t JOIN u ON t.k = u.id WHERE {A} = 'red' GROUP BY u.id HAVING max(u.name) > 'a'",
    # windows by name
    "SELECT k, rank() OVER w, answer(max(body), 'colour?') FROM t GROUP BY k WINDOW w AS (ORDER BY k)",
    f"SELECT id, rank() OVER (W ORDER BY id), count(*) OVER w, {A} FROM t WINDOW w AS (PARTITION BY {A})",
    # functions in FROM
    f"SELECT id, w FROM t, regexp_split_to_table(body, ' ') w WHERE {A} = 'red'",
    f"SELECT id, n FROM t LEFT JOIN generate_series(1, id) n ON {A} = 'red'",
    f"SELECT id FROM t WHERE {A} = 'red' AND (SELECT count(*) FROM generate_series(1, id)) > 1",
    f"SELECT id, e.* FROM t, jsonb_each_text(jsonb_build_object('a', body)) e WHERE {A} = 'red'",
    "SELECT value FROM t, jsonb_array_elements_text('[\"red\"]') WHERE answer(value, 'colour?') = 'red'",
    f"SELECT id, e::text, (SELECT e ->> 'x') FROM t, jsonb_array_elements('[{{\"x\": 1}}]') e WHERE {A} = 'red'",
    f"SELECT id, w FROM t, halves(body) w WHERE {A} = 'red'",
    f"SELECT id, w FROM t, regexp_split_to_table(body, ' ') w, pairs(id) WHERE {A} = 'red' AND twice > 1",
    f"SELECT id, r.a FROM t, jsonb_to_record(jsonb_build_object('a', t.k)) AS r(a int) WHERE {A} = 'red'",
    f"SELECT id, w.* FROM t, string_to_table(body, ' ') WITH ORDINALITY w WHERE {A} = 'red'",
    "SELECT t.id, v FROM t, LATERAL (VALUES ('m', answer(t.body, 'colour?')), ('n', t.body)) x(name, v)",
    # outputs without a name
    f"SELECT * FROM (SELECT id, upper(body), {A}, body::varchar(3), CASE WHEN id = 1 THEN 'x' END, id + 1 FROM t) x",
    f"WITH x AS (SELECT id, {A} FROM t) SELECT answer, count(*) FROM x GROUP BY answer",
    f"SELECT x.* FROM t, LATERAL (SELECT {A}, coalesce(k, 0)) x",
    # types of the server's own
    f"SELECT id FROM t WHERE tags IN (SELECT tags FROM t WHERE {A} = 'red')",
    f"SELECT id FROM t WHERE to_jsonb(tags) = ANY (SELECT to_jsonb(tags) FROM t WHERE {A} = 'red')",
    f"SELECT id FROM t WHERE prio = (CASE WHEN {A} = 'red' THEN 'high' END)::prio",
    f"SELECT id FROM t WHERE prio > (CASE WHEN {A} = 'blue' THEN 'high' ELSE 'low' END)::prio",
    f"SELECT id FROM t WHERE took > (CASE {A} WHEN 'red' THEN '30 days' END)::interval",
    f"SELECT id FROM t WHERE int4range(id, 5) @> length({A})",
    # short forms
    f"SELECT id, sum(k) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING), {A} FROM t",
    f"SELECT id, string_agg({A}, ',') OVER (ORDER BY id ROWS 1 PRECEDING) FROM t",
    f"SELECT name FROM u WHERE NOT EXISTS (SELECT FROM t WHERE t.k = u.id AND {A} = 'red')",
    f"WITH w (body) AS (VALUES ('a red'), ('a blue')) SELECT body FROM w WHERE {A} = 'red'",
    "WITH RECURSIVE w (n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM w WHERE n < 3) "
    "SELECT n, answer('it is red: ' || n, 'colour?') FROM w",
    f"SELECT id, {A} FROM t UNION ALL VALUES (9, 'none')",
    f"SELECT id FROM t WHERE {A} = 'red' AND (id, k) IN (VALUES (1, 1), (3, 2))",
    # what has no type takes the other side's
    f"SELECT NULL AS n, {A} FROM t UNION ALL SELECT 1, 'none'",
    f"SELECT '2024-01-01' AS d, id FROM t WHERE {A} = 'red' UNION SELECT opened::date, id FROM t",
)
LISTS: tuple[tuple[str, list[str | None]], ...] = (
    ("prio = ANY($1)", ["low", "high"]),
    ("prio <> ALL($1)", ["low"]),
    ("opened::date = ANY($1)", ["2024-02-03", None]),
    ("name = ANY($1)", ["ONE"]),
    ("name = ANY($1)", []),
    ("codes && $1", ['a"\\', "b"]),
    ("codes <> $1", []),
    ("body LIKE ANY($1)", ["%x", "%z"]),
    (f"{A} = ANY($1)", ["red", "blue"]),
    (f"{A} <> ALL($1)", ["red"]),
)


@pytest.fixture(scope="module")
def servers(postgres_server: PostgresServer) -> Iterator[Servers]:
    url = postgres_server.new_database()
    with psycopg.connect(url, autocommit=True) as plain:
        plain.execute(SETUP)
        plain.execute("SET search_path = public, oracle")
        model = FunctionModel(lambda text, _: next((colour for colour in ("red", "blue") if colour in text), None))
        with almanaq.connect(url, model=model, cache=False) as ours:
            yield Servers(plain, ours)


@pytest.mark.parametrize("expressions", EXPRESSIONS)
def test_expressions_are_the_servers(servers: Servers, expressions: str) -> None:
    assert_same(servers, f"SELECT id, {A}, {expressions} FROM t")


@pytest.mark.parametrize("sql", QUERIES)
def test_queries_are_the_servers(servers: Servers, sql: str) -> None:
    assert_same(servers, sql)


@pytest.mark.parametrize(("condition", "values"), LISTS)
def test_a_list_takes_its_type_from_what_stands_beside_it(
    servers: Servers, condition: str, values: list[str | None]
) -> None:
    sql = f"SELECT t.id FROM t LEFT JOIN n USING (id) WHERE {condition} AND {A} IS NOT NULL ORDER BY id"
    plain = psycopg.RawCursor(servers.plain).execute(sql, [values])
    assert servers.ours.sql(sql, [values]).rows == plain.fetchall()


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        (f"SELECT {A} FROM t ORDER BY id USING >", "write ASC or DESC"),
        (f"SELECT {A} FROM t JOIN (SELECT id FROM t) s USING (id) AS j", "AS j is not supported"),
        (f'SELECT 1, id::"char", {A} FROM t', 'not supported beside text functions: id::"char"'),
        (f"SELECT ctid, {A} FROM t", "the system column ctid"),
        ("SELECT answer(question => 'colour?', document => body) FROM t", "without names"),
        (f"SELECT {A} FROM t, ROWS FROM (generate_series(1, 2), generate_series(1, 3)) r", "ROWS FROM"),
    ],
)
def test_what_is_not_supported_is_named(servers: Servers, sql: str, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        servers.ours.sql(sql)


def test_what_is_written_as_another_is_shown_in_its_place(servers: Servers) -> None:
    with pytest.raises(UnsupportedError) as caught:
        servers.ours.sql("SELECT id FROM t WHERE (answer(body, 'colour?') = 'red') IN (true, NULL)")
    assert "line 1" in str(caught.value)
