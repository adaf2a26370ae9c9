"""What views, generated columns and heirs make of a private column is private; a schema file may deny it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import duckdb
import psycopg
import pyarrow as pa
import pytest
from tests.engines import PostgresServer

import almanaq
from almanaq.errors import PrivateColumnError
from almanaq.testing import ScriptedModel

VIEWS = """
CREATE VIEW a(n, number) AS SELECT name, ssn FROM people;
CREATE VIEW b AS SELECT upper(number) AS big, n FROM a;
CREATE VIEW c AS SELECT p.id, (SELECT max(ssn) FROM people) AS most FROM people AS p WHERE ssn IS NOT NULL;
CREATE VIEW d AS SELECT name AS x FROM people UNION ALL SELECT ssn FROM people;
CREATE VIEW e AS SELECT count(ssn) AS n FROM people;
CREATE VIEW f AS SELECT name, count(*) AS n FROM people GROUP BY name, ssn
"""
RULES = "[people.columns.ssn]\nprivate = true\n[e.columns.n]\nprivate = false\n"
PRIVATE = {"people.ssn", "a.number", "b.big", "c.most", "d.x"}


def make_file(path: Path, _: PostgresServer) -> object:
    with duckdb.connect(str(path / "s.duckdb")) as made:
        made.execute("CREATE TABLE people AS SELECT 1 AS id, 'Ada' AS name, 'canary' AS ssn")
        made.execute(VIEWS)
    return str(path / "s.duckdb")


def make_connection(path: Path, server: PostgresServer) -> object:
    return duckdb.connect(str(make_file(path, server)))


def make_server(_: Path, server: PostgresServer) -> object:
    url = server.source({"people": pa.table({"id": [1], "name": ["Ada"], "ssn": ["canary"]})})
    with psycopg.connect(url) as made:
        made.execute(VIEWS)
    return url


def make_sqlite(path: Path, _: PostgresServer) -> object:
    with closing(sqlite3.connect(path / "s.sqlite")) as made:
        made.execute("CREATE TABLE people (id, name, ssn)")
        made.execute("INSERT INTO people VALUES (1, 'Ada', 'canary')")
        made.executescript(VIEWS.lower())
    return str(path / "s.sqlite")


@pytest.mark.parametrize("make", [make_file, make_connection, make_server, make_sqlite])
def test_what_views_make_of_private_columns_is_private(
    make: Callable[[Path, PostgresServer], object], tmp_path: Path, postgres_server: PostgresServer
) -> None:
    source = make(tmp_path, postgres_server)
    (tmp_path / "rules.toml").write_text(RULES)
    model = ScriptedModel({})
    with almanaq.connect(source, schema=str(tmp_path / "rules.toml"), model=model, cache=False) as con:  # type: ignore[arg-type]
        found = {f"{r.name}.{column.name}" for r in con.catalog.relations for column in r.columns if column.private}
        assert found == PRIVATE
        with pytest.raises(PrivateColumnError, match=r"b\.big"):
            con.sql("SELECT answer(big, 'is it long?') FROM b")
        with pytest.raises(PrivateColumnError, match=r"b\.big"):
            con.public().sql("SELECT big FROM b")
        assert con.public().sql("SELECT * FROM b").rows == [("Ada",)]
        assert con.sql("SELECT big FROM b").rows == [("CANARY",)]
    assert not model.prompts


PEOPLE = """CREATE TABLE people (
    id int DEFAULT 1, name text, ssn text, low text GENERATED ALWAYS AS (lower(ssn)) {stored},
    big text GENERATED ALWAYS AS (upper(name)) {stored})"""
HEIRS = "; CREATE TABLE staff (pay int, phone text) INHERITS (people); CREATE TABLE guests () INHERITS (people)"


@pytest.mark.parametrize("engine", ["duckdb", "sqlite", "postgres"])
def test_what_a_generated_or_an_inherited_column_holds_of_a_private_one_is_private(
    engine: str, tmp_path: Path, postgres_server: PostgresServer
) -> None:
    rules = tmp_path / "rules.toml"
    if engine == "duckdb":
        source = str(tmp_path / "s.duckdb")
        with duckdb.connect(source) as made:
            made.execute(PEOPLE.format(stored=""))
        rules.write_text("[people.columns.ssn]\nprivate = true\n")
        expected = {"people.ssn", "people.low"}
    elif engine == "sqlite":
        source = str(tmp_path / "s.sqlite")
        with closing(sqlite3.connect(source)) as file:
            file.execute(PEOPLE.format(stored="STORED"))
        rules.write_text("[people.columns.ssn]\nprivate = true\n")
        expected = {
            "people.ssn",
            "people.low",
            "people.big",
        }  # SQLite does not say which is made of what
    else:
        source = postgres_server.new_database()
        with psycopg.connect(source) as connection:
            connection.execute(PEOPLE.format(stored="STORED") + HEIRS)
        rules.write_text("[staff.columns.ssn]\nprivate = true\n[staff.columns.phone]\nprivate = true\n")
        expected = {f"{table}.{column}" for table in ("people", "staff", "guests") for column in ("ssn", "low")}
        expected |= {"staff.phone"}
    with almanaq.connect(source, schema=str(rules), model="local", cache=False) as con:
        assert {f"{r.name}.{c.name}" for r in con.catalog.relations for c in r.columns if c.private} == expected
        with pytest.raises(PrivateColumnError):
            con.public().sql("SELECT low FROM people")
