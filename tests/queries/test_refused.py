"""Statements and functions that are refused, and names and types at fault: each error says where and what to do."""

from __future__ import annotations

import pytest

from almanaq.errors import (
    DatabaseError,
    QueryError,
    QuerySyntaxError,
    QueryTypeError,
    RefusedQueryError,
    UnknownNameError,
    UnsupportedError,
)

from .support import Asked, texts

pytestmark = pytest.mark.usefixtures("engine")


@pytest.fixture(scope="module")
def town(engine: str) -> Asked:
    return Asked(places={"id": [1, 2], "stars": [3, 4], "body": texts("calm=Yes", "calm=No")})


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO places VALUES (3, 1, 'x')",
        "UPDATE places SET stars = 5",
        "DELETE FROM places",
        "DROP TABLE places",
        "CREATE TABLE x AS SELECT * FROM places",
        "CREATE VIEW x AS SELECT * FROM places",
        "ALTER TABLE places ADD COLUMN x int",
        "TRUNCATE places",
        "SELECT 1; SELECT 2",
        "SELECT id FROM places; DROP TABLE places",
        "COPY places TO 'out.csv'",
        "COPY (SELECT * FROM places) TO 'out.csv'",
        "EXPORT DATABASE 'x'",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_csv_auto('/etc/passwd')",
        "SELECT * FROM read_parquet('x.parquet')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM read_blob('/etc/passwd')",
        "SELECT * FROM read_json('/etc/passwd')",
        "SELECT * FROM glob('/*')",
        "SELECT * FROM '/etc/passwd.csv'",
        'SELECT * FROM "/etc/passwd.csv"',
        "SELECT pg_read_file('/etc/passwd')",
        "SELECT pg_ls_dir('/')",
        "SELECT lo_import('/etc/passwd')",
        "SELECT * FROM dblink('host=x', 'select 1') AS t(a int)",
        "SELECT getenv('HOME')",
        "SELECT pg_sleep(100)",
        "SELECT set_config('a', 'b', false)",
        "SELECT current_setting('secret_directory')",
        "SELECT nextval('s')",
        "SELECT * FROM duckdb_secrets()",
        "SELECT * FROM duckdb_settings()",
        "SELECT * FROM query('SELECT 1')",
        "SELECT * FROM query_table('places')",
        "SELECT * FROM pragma_table_info('places')",
        "ATTACH 'x.duckdb'",
        "DETACH x",
        "PRAGMA database_list",
        "SET memory_limit = '1GB'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "CALL pragma_version()",
        "SELECT id INTO x FROM places",
        "WITH x AS (DELETE FROM places RETURNING id) SELECT * FROM x",
        "WITH x AS (INSERT INTO places VALUES (1, 1, 'a') RETURNING id) SELECT * FROM x",
        "SELECT id FROM places WHERE id IN (SELECT count(*) FROM read_csv('/etc/passwd'))",
        "SELECT answer(body, getenv('HOME')) FROM places",
        "SELECT id FROM places FOR UPDATE",
        "VACUUM",
        "BEGIN",
    ],
)
def test_refused(town: Asked, sql: str) -> None:
    before = town.model.calls
    with pytest.raises(QueryError) as caught:
        town.con.sql(sql)
    assert len(str(caught.value)) > 20
    assert town.model.calls == before


@pytest.mark.parametrize("sql", ["SELECT 1; SELECT 2", "COPY places TO 'x'", "INSERT INTO places VALUES (1)"])
def test_statements_that_are_not_one_select_are_called_refused(town: Asked, sql: str) -> None:
    with pytest.raises(RefusedQueryError):
        town.con.sql(sql)


def test_explain_is_pointed_at_what_gives_the_plan(town: Asked) -> None:
    with pytest.raises(RefusedQueryError, match=r"con\.explain\(query\), or --explain"):
        town.con.sql("EXPLAIN SELECT id FROM places")


@pytest.mark.parametrize(
    "sql", ["", "   ", ";", "-- only a comment", "SELEC id FROM places", "SELECT FROM WHERE", "SELECT (1", "SELECT 'x"]
)
def test_what_is_no_query(town: Asked, sql: str) -> None:
    with pytest.raises((QuerySyntaxError, RefusedQueryError)):
        town.con.sql(sql)


@pytest.mark.parametrize(
    ("sql", "near", "at"),
    [
        ("SELECT id FROM place", "places", "place"),
        ("SELECT id, starz FROM places", "stars", "starz"),
        ("SELECT p.starz FROM places p", "stars", "starz"),
        ("SELECT id FROM places WHERE answr(body, 'calm?') = 'Yes'", "answer", "answr"),
        ("SELECT id FROM places WHERE answer(bodi, 'calm?') = 'Yes'", "body", "bodi"),
        ("SELECT id FROM places ORDER BY answer(bdy, 'calm?')", "body", "bdy"),
        ("SELECT\n  id,\n  starz\nFROM places", "stars", "starz"),
        ("SELECT id FROM places WHERE body = 'x' AND \"bodyy\" = 'y'", "body", '"bodyy"'),
    ],
)
def test_unknown_names_are_pointed_at_with_a_near_one(town: Asked, sql: str, near: str, at: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        town.con.sql(sql)
    error = caught.value
    assert near in error.message
    assert error.start is not None
    assert sql[error.start :].startswith(at) or sql[error.start :].startswith(("p." + at, "q." + at))


@pytest.mark.parametrize(
    ("sql", "kind", "at"),
    [
        ("SELECT id FROM places WHERE body = 'it''s", QuerySyntaxError, "'it"),
        ('SELECT "id FROM places', QuerySyntaxError, '"id'),
        ("SELECT id /* all FROM places", QuerySyntaxError, "/*"),
        ("SELECT id FROM places WHERE", QuerySyntaxError, "WHERE"),
        ("SELECT id,, stars FROM places", QuerySyntaxError, ", stars"),
        ("SELECT answer(body, 'when?')::dat FROM places", QueryTypeError, "dat "),
        ("SELECT id, answer(body, 'calm?') OVER () FROM places", UnsupportedError, "answer"),
    ],
)
def test_errors_point_at_their_place(town: Asked, sql: str, kind: type[QueryError], at: str) -> None:
    with pytest.raises(kind) as caught:
        town.con.sql(sql)
    assert caught.value.start is not None
    assert sql[caught.value.start :].startswith(at)
    assert "sqlglot" not in str(caught.value)


def test_what_the_database_names_is_pointed_at(town: Asked) -> None:
    with pytest.raises(DatabaseError, match=r"(?s)line 1, column 8:.*\n +\^\^\^\^\^$"):
        town.con.sql("SELECT stars FROM places GROUP BY id")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT answer(stars, 'calm?') FROM places",
        "SELECT summary(id) FROM places",
        "SELECT id FROM places WHERE answer(stars + 1, 'calm?') = 'Yes'",
        "SELECT answer(body, 3) FROM places",
        "SELECT answer(array_agg(stars), 'calm?') FROM places",
    ],
)
def test_text_functions_read_text(town: Asked, sql: str) -> None:
    with pytest.raises(QueryTypeError) as caught:
        town.con.sql(sql)
    assert caught.value.start is not None


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT answer(body) FROM places",
        "SELECT answer() FROM places",
        "SELECT summary(body, 'x', 'y', 'z') FROM places",
    ],
)
def test_text_functions_take_the_arguments_they_take(town: Asked, sql: str) -> None:
    with pytest.raises(QueryError) as caught:
        town.con.sql(sql)
    assert caught.value.start is not None


def test_a_fault_is_told_before_any_call(town: Asked) -> None:
    before = town.model.calls
    with pytest.raises(QueryError):
        town.con.sql("SELECT id, nope FROM places WHERE answer(body, 'calm?') = 'Yes'")
    assert town.model.calls == before


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT avg(answer(body, 'calm?')) FROM places",
        "SELECT sum(n) FROM (SELECT answer(body, 'calm?') AS n FROM places) AS asked",
        "SELECT id FROM places ORDER BY abs(answer(body, 'calm?'))",
    ],
)
def test_what_the_engine_does_not_take_a_text_for_costs_no_call(town: Asked, sql: str) -> None:
    before = town.model.calls
    with pytest.raises(QueryTypeError, match=r"(?i)(varchar|text)\)"):
        town.con.sql(sql)
    assert town.model.calls == before


def test_text_that_looks_like_sql_is_only_text() -> None:
    evil = "calm=Yes' OR '1'='1"
    asked = Asked(t={"id": [1], "body": texts(evil)})
    assert asked.rows("SELECT answer(body, 'calm?') FROM t") == [("Yes' OR '1'='1",)]
