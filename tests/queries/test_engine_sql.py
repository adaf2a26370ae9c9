"""The rows of a query are those of the engine itself, in its own SQL, with `answer` as a function of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import duckdb
import pytest

import almanaq
from almanaq.testing import FunctionModel
from engines import PostgresServer

from .support import Row, said

pytestmark = pytest.mark.usefixtures("engine")

WORLD = """
CREATE TYPE grade AS ENUM ('low', 'mid', 'high');
CREATE TABLE places (id int, city text, stars int, price grade, opened date, tags text[], body text);
INSERT INTO places VALUES
    (1, 'Oslo', 3, 'low', '2021-05-01', ARRAY['x', 'y', NULL], 'calm=Yes;seats=10'),
    (2, 'Oslo', 5, 'high', '2019-12-28', ARRAY['y'], 'calm=No;seats=30'),
    (3, 'Rome', 4, 'mid', NULL, NULL, 'calm=Yes'),
    (4, 'ROM_', 4, NULL, '2024-02-29', ARRAY['z', 'x'], 'calm=Yes;seats=7'),
    (5, NULL, 1, 'mid', '2020-01-01', ARRAY['x'], 'seats=7'),
    (6, 'Älmhult', NULL, 'high', NULL, ARRAY['y', 'y'], NULL);
CREATE TABLE visits (place int, who text, notes text);
INSERT INTO visits VALUES (1, 'Ann', 'calm=No'), (1, 'Bob', NULL), (3, 'Ann', 'calm=Yes'), (9, 'Eve', 'calm=Yes');
CREATE SCHEMA old;
CREATE TABLE old.visits (place int, notes text);
INSERT INTO old.visits VALUES (1, 'calm=Yes'), (3, 'calm=No'), (4, NULL);
"""
ANSWER_ON_POSTGRES = """
CREATE FUNCTION answer(t text, q text) RETURNS text LANGUAGE sql AS
$$ SELECT (regexp_match(t, '(?:^|;)' || rtrim(q, '?') || '=([^;]*)'))[1] $$
"""
CALM, SEATS = "answer(body, 'calm?')", "answer(body, 'seats?')"

BOTH = (
    f"SELECT id, 7 / 2 AS half, stars / 2 AS stars, {CALM} AS calm FROM places ORDER BY id",
    f"SELECT id FROM places WHERE {CALM} = 'Yes' AND price > 'low' ORDER BY id",
    # a table of one name within and around a nested query
    f"SELECT id FROM (SELECT id, stars, body FROM places) AS a WHERE {CALM} = 'Yes' "
    "AND EXISTS (SELECT 1 FROM (SELECT id FROM places) AS b WHERE b.id = a.stars + 2) ORDER BY id",
    f"WITH a AS (SELECT id, stars, body FROM places) SELECT id FROM a WHERE {CALM} = 'Yes' "
    "AND EXISTS (SELECT 1 FROM places WHERE places.id = a.stars + 2) ORDER BY id",
    "SELECT any_value(city ORDER BY id), answer(any_value(body ORDER BY id), 'calm?') FROM places "
    "GROUP BY stars ORDER BY ALL",
    f"SELECT id, any_value({CALM}) OVER (PARTITION BY stars ORDER BY id) AS calm FROM places ORDER BY id",
    # a group key with a nested query, in a member of WITH
    f"WITH a AS (SELECT CASE WHEN stars IN (SELECT b.id FROM places AS b) THEN {CALM} END AS calm, count(*) AS n "
    f"FROM places GROUP BY CASE WHEN stars IN (SELECT b.id FROM places AS b) THEN {CALM} END) "
    "SELECT c.calm, d.n FROM a AS c JOIN a AS d ON c.calm = d.calm ORDER BY ALL",
    # ORDER BY means an output before what USING merges
    "SELECT b.* FROM places AS a LEFT JOIN (SELECT id, city FROM places WHERE stars > 3) AS b USING (id) "
    "WHERE answer(a.body, 'calm?') IS NOT NULL ORDER BY id DESC NULLS LAST, a.stars LIMIT 3",
    "SELECT upper(a.city) AS id FROM places AS a JOIN places AS b USING (id) "
    "WHERE answer(a.body, 'calm?') = 'Yes' ORDER BY id",
    f"SELECT id FROM places WHERE {CALM} IS NOT NULL ORDER BY price DESC NULLS LAST, id",
    f"SELECT max(price), min(price) FROM places WHERE {CALM} = 'Yes'",
    f"SELECT id FROM places ORDER BY CASE WHEN {CALM} = 'Yes' THEN price ELSE 'high' END, id LIMIT 4",
    f"SELECT id FROM places WHERE ({CALM}, city) = ('Yes', 'Rome') ORDER BY id",
    f"SELECT id FROM places WHERE ({CALM}, city) <> ('Yes', 'Rome') ORDER BY id",
    f"SELECT id FROM places WHERE ({CALM}, city) IN (('Yes', 'Rome'), ('No', 'Oslo')) ORDER BY id",
    f"SELECT id FROM places WHERE (stars, {CALM}) >= (4, 'Yes') ORDER BY id",
    f"SELECT id, (city, {CALM}) IS NOT NULL AS said FROM places ORDER BY id",
    f"SELECT id FROM places WHERE {CALM} <> ALL (SELECT {CALM} FROM places WHERE id < 2) ORDER BY id",
    f"SELECT id FROM places WHERE city LIKE '%\\_' AND {CALM} = 'Yes' ORDER BY id",
    f"SELECT id FROM places WHERE city ILIKE 'ro%' AND {CALM} = 'Yes' ORDER BY id",
    f"SELECT id, tags[1] AS one, tags[0] AS none, tags[2:3] AS two, {CALM} AS calm FROM places ORDER BY id",
    f"SELECT id, 'x' = ANY (tags) AS has, {CALM} AS calm FROM places ORDER BY id",
    f"SELECT id, extract(dow FROM opened) AS day, {SEATS}::int / 4 AS seats FROM places ORDER BY id",
    f"SELECT {CALM} AS calm, string_agg(city, '/' ORDER BY id) FROM places GROUP BY 1 ORDER BY 1 NULLS LAST",
    f"SELECT id, lag(id, 1, 0) OVER (ORDER BY id) AS before FROM places WHERE {CALM} = 'Yes' ORDER BY id",
    f"SELECT v.who, {CALM} AS calm FROM places RIGHT JOIN visits AS v ON v.place = id ORDER BY v.who, v.place",
    "SELECT p.id, w.who FROM visits AS v LEFT JOIN places AS p ON p.id = v.place + 1 LEFT JOIN visits AS w "
    "ON (w.place = p.id OR p.id IS NULL) AND answer(w.notes, 'calm?') = 'Yes' ORDER BY p.id NULLS LAST, w.who",
    f"SELECT max(m.stars) FROM (SELECT n.* FROM (SELECT * FROM places WHERE {CALM} = 'Yes') AS n(number, town)) AS m",
    f"WITH w (number) AS (SELECT * FROM places WHERE {CALM} = 'Yes') SELECT w.*, v.stars FROM w, w AS v(n) "
    "WHERE v.n = w.number ORDER BY number",
)
ONE_NAME_IN_TWO_SCHEMAS = (
    "SELECT old.visits.place FROM old.visits WHERE EXISTS (SELECT 1 FROM {schema}.visits WHERE "
    "{schema}.visits.place = old.visits.place AND answer({schema}.visits.notes, 'calm?') = 'Yes') ORDER BY 1",
    "SELECT old.visits.place, (SELECT count(*) FROM {schema}.visits WHERE {schema}.visits.place = old.visits.place "
    "AND answer({schema}.visits.notes, 'calm?') = 'No') AS n FROM old.visits ORDER BY 1",
    "SELECT old.visits.notes, {schema}.visits.who FROM old.visits, {schema}.visits "
    "WHERE old.visits.place = {schema}.visits.place AND answer(old.visits.notes, 'calm?') = 'Yes' ORDER BY 2",
    "WITH visits AS (SELECT * FROM visits WHERE place < 3) SELECT count(*) FROM {schema}.visits "
    "WHERE answer(notes, 'calm?') IS NOT NULL AND place NOT IN (SELECT place FROM visits)",
)
DUCKDB = (
    *(sql.format(schema="main") for sql in ONE_NAME_IN_TWO_SCHEMAS),
    "FROM visits",
    "VALUES (1, 'a'), (2, 'b')",
    "SELECT format('{}', id) AS f, len(tags), tags[-1], 7 // 2 FROM places ORDER BY ALL",
    "SELECT max(p.id) FROM places AS p JOIN visits AS v ON v.place = p.id GROUP BY ALL HAVING count(*) > 1",
    f"SELECT * EXCLUDE (body) REPLACE (upper(city) AS city) FROM places WHERE {CALM} = 'Yes' ORDER BY ALL",
    f"FROM places SELECT id WHERE regexp_matches(city, '^R') AND {CALM} = 'Yes' ORDER BY id",
    f"SELECT {CALM} AS calm, count(*), list(id ORDER BY id) FROM places GROUP BY ALL ORDER BY ALL",
    f"SELECT id FROM places WHERE {CALM} = 'Yes' QUALIFY row_number() OVER (PARTITION BY stars ORDER BY id) = 1 "
    "ORDER BY id",
    f"SELECT {{'id': id, 'calm': {CALM}}} AS s, [{CALM}, city] AS l FROM places ORDER BY id",
    f"SELECT id, {CALM} AS calm FROM places WHERE calm = 'Yes' ORDER BY id",
    f"SELECT list_transform(tags, lambda x: x || '!') AS t, {CALM} AS calm FROM places ORDER BY id",
    f"SELECT id FROM places WHERE city SIMILAR TO 'R.*' AND {CALM} = 'Yes' ORDER BY id",
    f"SELECT city FROM places WHERE {CALM} IS NULL ORDER BY city COLLATE de",
    f"SELECT who FROM visits SEMI JOIN places ON place = id AND {CALM} = 'Yes' ORDER BY who",
    "SELECT d.* FROM (SELECT DISTINCT place, answer(notes, 'calm?') AS calm FROM visits) AS d "
    "ANTI JOIN places AS p ON p.id = d.place AND d.place > 1 ORDER BY ALL",
    f"SELECT v.who, p.id FROM visits AS v ANTI JOIN places AS q ON q.id = v.place AND q.stars > 3 "
    f"FULL JOIN places AS p ON p.id = v.place WHERE {CALM} = 'Yes' ORDER BY ALL",
    f"SELECT v.who FROM visits AS v SEMI JOIN (SELECT id FROM places WHERE {CALM} = 'Yes') AS p ON p.id = v.place "
    "ANTI JOIN places AS q ON q.id = v.place AND q.stars > 3 AND answer(q.body, 'calm?') = 'No' ORDER BY v.who",
    f"PIVOT (SELECT price, {CALM} AS calm FROM places) ON calm USING count(*) GROUP BY price ORDER BY price",
    f"SELECT id, try_cast({SEATS} AS int) AS seats FROM places ORDER BY id",
    f"SELECT id FROM places WHERE {CALM} = 'Yes' ORDER BY id LIMIT 50%",
    f"SELECT id, {CALM} COLLATE NOCASE FROM places WHERE {CALM} COLLATE NOCASE <> 'no' ORDER BY id",
    f"SELECT id FROM places WHERE {CALM} IS NOT NULL ORDER BY {CALM} COLLATE NOCASE DESC, id",
    f"SELECT s.a COLLATE NOCASE FROM (SELECT min({CALM}) AS a, price FROM places GROUP BY price) AS s ORDER BY s.price",
    f"SELECT id, 1_000, {SEATS}::int + 1_0.5 FROM places WHERE {SEATS}::int < 1_0e1 ORDER BY id LIMIT 1_0",
    f"SELECT id, unnest(tags) AS tag, {CALM} AS calm FROM places ORDER BY ALL",
    f"SELECT id, {CALM} AS calm FROM places ORDER BY calm COLLATE NOCASE, id",
    f"SELECT -stars AS rowid, {CALM} AS calm FROM places ORDER BY rowid, calm",
    "PIVOT places ON city || stars USING count(*) GROUP BY price ORDER BY price",
)
POSTGRES = (
    *(sql.format(schema="public") for sql in ONE_NAME_IN_TWO_SCHEMAS),
    "TABLE visits",
    "VALUES (1, 'a'), (2, 'b')",
    "SELECT FROM visits",
    f"SELECT id, {SEATS}::oid AS seats, to_regclass('visits')::text AS found FROM places ORDER BY id",
    "SELECT '{\"a\": 1}'::jsonb ? 'a' AS has, to_char(opened, 'FMDay') FROM places ORDER BY id",
    "SELECT stars FROM places ORDER BY stars FETCH FIRST 2 ROWS WITH TIES",
    f"SELECT id FROM places WHERE city ~ '\\yR' AND {CALM} = 'Yes' ORDER BY id",
    f"SELECT id FROM places WHERE city SIMILAR TO '(R|O)%' AND {CALM} = 'Yes' ORDER BY id",
    f'SELECT city FROM places WHERE {CALM} IS NULL ORDER BY city COLLATE "C"',
    f"SELECT DISTINCT ON (stars) stars, id FROM places WHERE {CALM} = 'Yes' ORDER BY stars, id DESC",
    f"SELECT id, jsonb_build_object('calm', {CALM}) ->> 'calm' AS calm FROM places ORDER BY id",
    f"SELECT id, coalesce({CALM}, 'x') || format('%s', id) AS f FROM places ORDER BY id",
    f"SELECT id FROM places WHERE {CALM} LIKE ANY (ARRAY['N%', 'x%']) ORDER BY id",
    f"SELECT id FROM places WHERE id = ANY (ARRAY(SELECT id FROM places WHERE {CALM} = 'No'))",
)


class Engine(Protocol):
    """The client of an engine, and what `almanaq.connect` takes for the same tables."""

    source: Any

    def run(self, sql: str) -> tuple[Sequence[str], Sequence[Row]]:
        """Return the names of a query's columns and its rows."""

    def close(self) -> None:
        """Close the client."""


class _DuckDB:
    def __init__(self) -> None:
        self.source = duckdb.connect()
        self.source.execute(WORLD)
        self._native = self.source.cursor()
        options: Any = {"null_handling": "special"}
        told = self._native.create_function("answer", self._answer, ["VARCHAR", "VARCHAR"], "VARCHAR", **options)
        assert told is not None

    @staticmethod
    def _answer(text: str | None, question: str) -> str | None:
        return None if text is None else said(text, question)

    def run(self, sql: str) -> tuple[Sequence[str], Sequence[Row]]:
        found = self._native.sql(sql)
        return found.columns, found.fetchall()

    def close(self) -> None:
        self._native.close()
        self.source.close()


class _Postgres:
    def __init__(self, server: PostgresServer) -> None:
        import psycopg

        self.source = server.new_database()
        self._native = psycopg.connect(self.source, autocommit=True)
        self._native.execute(WORLD.encode())
        self._native.execute(ANSWER_ON_POSTGRES.encode())

    def run(self, sql: str) -> tuple[Sequence[str], Sequence[Row]]:
        found = self._native.execute(sql.encode())
        return [column.name for column in found.description or ()], found.fetchall()

    def close(self) -> None:
        self._native.close()


@pytest.fixture(scope="module", params=["duckdb", "postgres"], autouse=True)
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """The engines whose clients can be asked directly."""
    opened = _DuckDB() if request.param == "duckdb" else _Postgres(request.getfixturevalue("postgres_server"))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def con(engine: Engine) -> Iterator[almanaq.Connection]:
    model = FunctionModel(said)
    with almanaq.connect(engine.source, model=model, cache=False, link=False) as opened:
        yield opened


@pytest.mark.parametrize("sql", [*BOTH, *DUCKDB, *POSTGRES])
def test_rows_and_names_are_the_engines(engine: Engine, con: almanaq.Connection, sql: str) -> None:
    own = BOTH + (DUCKDB if isinstance(engine, _DuckDB) else POSTGRES)
    if sql not in own:
        pytest.skip("it is the other engine's SQL")
    names, rows = engine.run(sql)
    result = con.sql(sql)
    assert result.rows == list(rows)
    assert list(result.columns) == list(names)


def test_parameters_of_a_query_that_is_ordered_by_all(engine: Engine, con: almanaq.Connection) -> None:
    if not isinstance(engine, _DuckDB):
        pytest.skip("it is DuckDB's SQL")
    for shown in ("city", CALM):
        found = con.sql(f"SELECT id, {shown} AS v FROM places WHERE id < $1 ORDER BY ALL DESC LIMIT $2", [4, 2])
        assert [row[0] for row in found.rows] == [3, 2]
