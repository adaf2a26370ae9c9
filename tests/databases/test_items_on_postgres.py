"""Rows of items, schemas, case, members of WITH, and ties: rows beside `answer` are those of a server that has it."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from test_names_on_postgres import Servers

import almanaq
from almanaq.errors import UnsupportedError
from almanaq.testing import FunctionModel
from engines import PostgresServer

WORLD = """
CREATE SCHEMA old;
CREATE TABLE t (id int PRIMARY KEY, k int, body text);
INSERT INTO t VALUES (1, 1, 'red x'), (2, 1, 'blue y'), (3, 1, 'red z'), (4, 2, 'blue w'), (5, NULL, NULL);
CREATE TABLE old.t (id int PRIMARY KEY, body text);
INSERT INTO old.t VALUES (1, 'blue old'), (2, 'blue old'), (3, 'red old'), (9, 'red old');
CREATE TABLE memo (id int, "ID" int PRIMARY KEY, body text, "Body" text);
INSERT INTO memo VALUES (1, 10, 'red', 'blue');
CREATE TABLE "Memo" (id int, body text); INSERT INTO "Memo" VALUES (7, 'blue');
"""
ANSWER = """
CREATE FUNCTION answer(text, text) RETURNS text LANGUAGE sql AS
$$ SELECT CASE WHEN $1 LIKE '%red%' THEN 'red' WHEN $1 LIKE '%blue%' THEN 'blue' END $$
"""
A = "answer(body, 'colour?')"
X = f"(SELECT id, {A} AS m FROM t) AS x"
OLD, NEW = "answer(old.t.body, 'colour?') = 'red'", "answer(public.t.body, 'colour?') = 'red'"

ROWS_OF_ITEMS = (
    f"SELECT to_jsonb(x) FROM (SELECT id, {A} FROM t) AS x",
    f"SELECT to_jsonb(x), row_to_json(x), x::text, x.*::text, ROW(x.*)::text FROM {X}",
    f"SELECT x, (x).m, (x).* FROM {X}",
    f"SELECT count(*) FROM {X} WHERE x IS NOT NULL",
    f"SELECT count(DISTINCT x), count(x.*), json_agg(x ORDER BY x.m, x.id) FROM {X}",
    f"SELECT DISTINCT x FROM (SELECT id % 2 AS k, {A} AS m FROM t) AS x",
    f"SELECT x, count(*) FROM (SELECT id % 2 AS k, {A} AS m FROM t) AS x GROUP BY x",
    f"SELECT x AS y, count(*) FROM (SELECT id % 2 AS k, {A} AS m FROM t) AS x GROUP BY y",
    f"SELECT id FROM {X} WHERE to_jsonb(x) ->> 'm' = 'red'",
    f"SELECT x.id, e.key, e.value FROM {X} CROSS JOIN LATERAL jsonb_each_text(to_jsonb(x)) AS e",
    f"WITH x AS (SELECT id, {A} AS m FROM t) SELECT json_agg(x ORDER BY id) FROM x",
    f"SELECT count(*) FROM {X} JOIN (SELECT id, {A} AS m FROM t) AS y ON x = y",
    f"SELECT (z.y).m FROM (SELECT x AS y FROM {X}) AS z",
    f"SELECT x FROM (SELECT id AS x, {A} AS m FROM t) AS x",
    f"SELECT count(x), max(x::text) FROM t AS x WHERE {A} = 'red'",
    f"SELECT t, (t).k, to_jsonb(t), {A} FROM t",
    "SELECT to_jsonb(m), answer(m.\"Body\", 'colour?') FROM memo AS m",
    "SELECT o.id, count(t), json_agg(t)::text FROM old.t AS o LEFT JOIN t ON t.id = o.id "
    "AND answer(t.body, 'colour?') = 'red' GROUP BY o.id",
    f"SELECT o.id, to_jsonb(y), y IS NULL FROM old.t AS o LEFT JOIN (SELECT id, {A} AS m FROM t) AS y ON y.id = o.id",
    f"WITH y AS (SELECT id, {A} AS m FROM t UNION SELECT 8, 'x') SELECT count(y), count(*) FROM old.t AS o "
    "FULL JOIN y ON y.id = o.id",
    "SELECT e.key, e.value FROM t, jsonb_each_text(jsonb_build_object('a', answer(t.body, 'colour?'))) AS e",
    "SELECT value FROM jsonb_each_text(jsonb_build_object('a', answer('red', 'colour?'))) AS e",
)
SCHEMAS = (
    f"SELECT old.t.id FROM old.t WHERE EXISTS (SELECT 1 FROM public.t WHERE public.t.id = old.t.id AND {NEW})",
    f"SELECT old.t.id, (SELECT count(*) FROM public.t WHERE public.t.id = old.t.id AND {NEW}) FROM old.t",
    f"SELECT id FROM old.t WHERE id NOT IN (SELECT public.t.id FROM public.t WHERE public.t.k = old.t.id AND {NEW})",
    f"SELECT public.t.id, old.t.body FROM public.t, old.t WHERE public.t.id = old.t.id AND {OLD}",
    f"SELECT old.t.*, public.t.k FROM public.t JOIN old.t USING (id) WHERE {NEW} AND {OLD}",
    f"WITH t AS (SELECT * FROM t WHERE id < 3) SELECT count(*) FROM public.t WHERE {A} = 'red'",
    f"WITH t AS (SELECT id, {A} AS m FROM t) SELECT x.id, x.m, t.m FROM t AS x JOIN t ON t.id = x.id",
    f"WITH t AS (SELECT id, {A} AS m FROM t) SELECT t.id, o.body, (SELECT count(*) FROM public.t) "
    "FROM t JOIN old.t AS o ON o.id = t.id",
    f"SELECT q.id, z.n FROM (SELECT id, {A} AS m FROM t) AS q, LATERAL (WITH w AS (SELECT q.m AS n) SELECT n FROM w) z",
)
CASES = (
    "SELECT answer(\"Body\", 'colour?'), \"ID\", id FROM memo WHERE answer(body, 'colour?') = 'red'",
    f'SELECT id, {A} FROM "Memo"',
    "SELECT m.*, answer(m.\"Body\", 'colour?') FROM memo AS m",
    f'SELECT (SELECT max("ID") FROM memo), {A} FROM t',
    f'WITH m AS (SELECT * FROM memo) SELECT "ID", {A} FROM m',
    'SELECT memo."ID" FROM memo JOIN (SELECT 10 AS "ID") AS x USING ("ID") WHERE answer("Body", \'q\') = \'blue\'',
    'SELECT "Memo".id, memo.id FROM "Memo", memo WHERE answer("Memo".body, \'q\') = answer(memo."Body", \'q\')',
)
TIES = (
    f"SELECT id, k, {A} FROM t ORDER BY k FETCH FIRST 2 ROWS WITH TIES",
    f"SELECT id, k, {A} FROM t ORDER BY k DESC NULLS LAST OFFSET 1 FETCH FIRST 1 ROWS WITH TIES",
    f"SELECT id FROM (SELECT id, k, {A} AS m FROM t ORDER BY k FETCH FIRST 2 ROWS WITH TIES) AS x WHERE m = 'red'",
    f"SELECT id, k FROM t ORDER BY k, {A} NULLS LAST FETCH FIRST 1 ROWS WITH TIES",
    "SELECT o.id, x.id, x.m FROM old.t AS o LEFT JOIN LATERAL (SELECT t.id, answer(t.body, 'colour?') AS m FROM t "
    "WHERE t.k = o.id ORDER BY t.k FETCH FIRST 1 ROWS WITH TIES) AS x ON true",
)
_AB = "t JOIN old.t AS b ON b.id = t.id AND answer(b.body, 'colour?') = 'red'"
PARENTHESES = (
    *(f"SELECT a.id, t.id, b.id FROM old.t AS a {side} JOIN ({_AB}) ON t.id = a.id" for side in ("", "LEFT", "FULL")),
    "SELECT a.id, t.id, b.id FROM old.t AS a RIGHT JOIN (t LEFT JOIN old.t AS b ON b.id = t.id) ON t.id = a.id "
    "AND answer(t.body, 'colour?') = 'red'",
    "SELECT a.id, t.id FROM old.t AS a CROSS JOIN (t LEFT JOIN old.t AS b ON answer(t.body, 'q') = 'red') "
    "WHERE b.id > 2",
    f"SELECT a.id, t.id, c.id FROM old.t AS c JOIN old.t AS a ON a.id = c.id JOIN ({_AB}) ON t.id = a.id",
)


@pytest.fixture(scope="module")
def servers(postgres_server: PostgresServer) -> Iterator[Servers]:
    """The same tables in a database with `answer` as a function, and in one without it through us."""
    urls = [postgres_server.new_database() for _ in range(2)]
    for url in urls:
        with psycopg.connect(url, autocommit=True) as made:
            made.execute(WORLD.encode())
    model = FunctionModel(lambda text, question: next((c for c in ("red", "blue") if c in text), None))
    with psycopg.connect(urls[0], autocommit=True) as plain, almanaq.connect(urls[1], model=model, cache=False) as ours:
        plain.execute(ANSWER.encode())
        yield Servers(plain, ours)


@pytest.mark.parametrize("sql", [*ROWS_OF_ITEMS, *SCHEMAS, *CASES, *TIES, *PARENTHESES])
def test_rows_and_names_are_those_of_a_server_that_answers(servers: Servers, sql: str) -> None:
    cursor = servers.plain.execute(sql.encode())
    found = servers.ours.sql(sql)
    assert list(found.columns) == [column.name for column in cursor.description or ()]
    assert sorted(found.rows, key=repr) == sorted(cursor.fetchall(), key=repr)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT a FROM ROWS FROM (generate_series(1, 2), unnest(ARRAY[answer('red', 'q')])) AS r(a, b)", "ROWS FROM"),
        (f"SELECT c.id FROM t AS c JOIN old.t AS a ON a.id = c.id LEFT JOIN ({_AB}) ON t.id = a.id", "in parentheses"),
        (
            "WITH RECURSIVE y(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM y WHERE n < 3) "
            f"SELECT to_jsonb(y), {A} FROM t LEFT JOIN y ON n = id",
            "a row of 'y'",
        ),
        (f"SELECT to_jsonb(x) FROM (SELECT {A}, {A} FROM t) AS x", "give each a name"),
    ],
)
def test_a_place_that_is_not_served_is_named(servers: Servers, sql: str, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        servers.ours.sql(sql)
