"""PostgreSQL: what its catalog gives, what it refuses, and what its failures look like."""

from __future__ import annotations

import decimal

import psycopg
import pyarrow as pa
import pytest

import almanaq
from almanaq.engines.postgres.engine import PostgresDatabase
from almanaq.errors import DatabaseError, SourceError, UnknownNameError
from almanaq.suql.catalog.relations import ColumnKind
from engines import PostgresServer

SETUP = """
    CREATE SCHEMA rich; CREATE TYPE rich.price AS ENUM ('cheap', 'moderate', 'dear');
    CREATE TABLE rich.owner (id int PRIMARY KEY, code varchar(9) UNIQUE);
    CREATE TABLE rich.r (
        a int NOT NULL, b int NOT NULL, p rich.price, ps rich.price[], tags text[], n numeric(10, 2), m numeric,
        j jsonb, u uuid, at timestamptz, owner int REFERENCES rich.owner (id), UNIQUE (a, b));
    INSERT INTO rich.owner VALUES (1, 'x'), (2, NULL);
    INSERT INTO rich.r VALUES
        (1, 1, 'cheap', '{cheap,dear}', '{ü,NULL}', 1.5, 12345678901234567890, '{"k": 1}', NULL, now(), 1),
        (1, 2, NULL, '{}', NULL, NULL, 0.125, NULL, NULL, NULL, NULL);
    COMMENT ON TABLE rich.r IS 'things'; COMMENT ON COLUMN rich.r.tags IS 'FREE_TEXT what people said';
    CREATE VIEW rich.v AS SELECT a, p FROM rich.r;
    CREATE TABLE rich.written (a int);
    CREATE FUNCTION rich.write() RETURNS int LANGUAGE sql VOLATILE AS 'INSERT INTO rich.written VALUES (1) RETURNING a';
"""


@pytest.fixture(scope="module")
def url(postgres: str) -> str:
    """A database of its own with every kind of column."""
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE DATABASE rich")
    rich = postgres.rsplit("/", 1)[0] + "/rich"
    with psycopg.connect(rich) as connection:
        connection.execute(SETUP)
    return rich


@pytest.fixture
def database(url: str) -> PostgresDatabase:
    return PostgresDatabase(url)


def test_catalog(database: PostgresDatabase) -> None:
    relation = database.catalog().relation("r")
    found = {c.name: (c.type, c.array, c.kind, c.values) for c in relation.columns}
    prices = ("cheap", "moderate", "dear")
    assert found["p"] == ("text", False, ColumnKind.ENUM, prices)
    assert found["ps"] == ("text", True, ColumnKind.ENUM, prices)
    assert found["tags"] == ("text", True, ColumnKind.FREE_TEXT, ())
    assert [found[name][0] for name in "nmju"] == ["numeric(10,2)", "numeric", "jsonb", "uuid"]
    assert found["at"][0] == "timestamp with time zone"
    assert (relation.key, relation.rows, relation.description) == (("a", "b"), 2, "things")
    assert relation.foreign_keys == ((("owner",), "owner", ("id",)),)
    owner = database.catalog().relation("owner")
    assert (owner.columns[1].type, owner.key) == ("text", ("id",))
    assert database.catalog().relation("v").row_id is None


def test_values_arrive_as_arrow(database: PostgresDatabase) -> None:
    with database.session() as session:
        table = session.fetch("SELECT p, ps, tags, n, m, j FROM rich.r ORDER BY b")
    first, second = table.to_pylist()
    assert (first["p"], first["ps"], first["tags"]) == ("cheap", ["cheap", "dear"], ["ü", None])
    assert (first["n"], first["m"]) == (decimal.Decimal("1.50"), decimal.Decimal("12345678901234567890"))
    assert first["j"] == '{"k": 1}'
    assert second["ps"] == []
    assert second["m"] == decimal.Decimal("0.125")


def test_stored_arrow_comes_back(database: PostgresDatabase) -> None:
    table = pa.table(
        {"k": [1, 2], "t": ["a\tb\\n", None], "l": [["x", None], None], "f": [1.5, None], "b": [True, None]}
    )
    with database.session() as session:
        session.store("kept", table)
        assert session.fetch(f'SELECT * FROM pg_temp."{session.locate("kept")[1]}"').to_pylist() == table.to_pylist()


@pytest.mark.parametrize("call", ["fetch", "stream", "create"])
def test_a_function_with_effects_is_refused_by_the_server(database: PostgresDatabase, call: str) -> None:
    sql = "SELECT rich.write() AS a"
    with database.session() as session:
        run = {
            "fetch": session.fetch,
            "stream": lambda s: list(session.stream(s)),
            "create": lambda s: session.create("t", s),
        }
        with pytest.raises(DatabaseError, match="read-only"):
            run[call](sql)
        assert session.fetch("SELECT count(*) AS n FROM rich.written").to_pylist() == [{"n": 0}]


@pytest.mark.parametrize("sql", ["WITH d AS (DELETE FROM rich.r RETURNING a) SELECT * FROM d", "SELECT 1 AS a INTO t"])
def test_a_select_that_changes_something_is_refused(database: PostgresDatabase, sql: str) -> None:
    with database.session() as session, pytest.raises(DatabaseError, match="single SELECT"):
        session.fetch(sql)


def test_an_error_leaves_the_other_streams_alive(database: PostgresDatabase) -> None:
    with database.session() as session:
        stream = session.stream("SELECT generate_series(1, 10000) AS x", 100)
        seen = next(stream).num_rows
        failing = session.stream("SELECT 1 / (3 - generate_series(1, 5)) AS x", 1)
        with pytest.raises(DatabaseError, match="division by zero"):
            list(failing)
        with pytest.raises(DatabaseError):
            session.create("t", "SELECT nothing AS a")
        assert session.create("t", "SELECT 1 AS a") == 1
        assert seen + sum(batch.num_rows for batch in stream) == 10_000


def test_one_session_sees_one_snapshot(database: PostgresDatabase, url: str) -> None:
    with database.session() as session:
        before = session.fetch("SELECT count(*) AS n FROM rich.owner").to_pylist()
        with psycopg.connect(url) as other:
            other.execute("INSERT INTO rich.owner VALUES (3, 'y')")
        assert session.fetch("SELECT count(*) AS n FROM rich.owner").to_pylist() == before
        with psycopg.connect(url) as other:
            other.execute("DELETE FROM rich.owner WHERE id = 3")


def test_a_lost_connection_is_an_error_not_an_end(database: PostgresDatabase, url: str) -> None:
    session = database.session()
    stream = session.stream("SELECT generate_series(1, 100000) AS x", 10)
    next(stream)
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'almanaq'")
    with pytest.raises(DatabaseError, match="lost"):
        list(stream)
    session.__exit__(None, None, None)


def test_a_connection_that_was_lost_while_it_lay_idle_is_replaced(database: PostgresDatabase, url: str) -> None:
    for _ in range(3):
        with database.session() as session:
            assert session.fetch("SELECT 1 AS x").num_rows == 1
        with psycopg.connect(url, autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE application_name = 'almanaq'"
            )


def test_a_stream_that_was_left_is_closed_with_the_next_statement(database: PostgresDatabase) -> None:
    with database.session() as session:
        stream = session.stream("SELECT generate_series(1, 100000) AS x", 10)
        next(stream)
        stream.close()
        assert session.fetch("SELECT count(*) AS n FROM pg_cursors").to_pylist() == [{"n": 0}]
        left = session.stream("SELECT generate_series(1, 100000) AS x", 10)
        next(left)
        left.close()
        with pytest.raises(DatabaseError, match="division"):
            session.fetch("SELECT 1 / (SELECT 0) AS x")
        assert session.fetch("SELECT count(*) AS n FROM pg_cursors").to_pylist() == [{"n": 0}]


def test_a_session_that_says_nothing_sends_nothing(database: PostgresDatabase) -> None:
    with database.session() as first:
        first.fetch("SELECT 1 AS x")
    with database.session() as session:
        assert session._connection.info.transaction_status.name == "IDLE"


def test_a_server_that_is_down_is_named_without_the_password() -> None:
    with pytest.raises(SourceError, match="cannot connect to PostgreSQL") as caught:
        PostgresDatabase("postgresql://someone:hunter22@127.0.0.1:1/x")
    assert "hunter22" not in str(caught.value)


def test_a_table_made_after_connecting_is_found(postgres_server: PostgresServer) -> None:
    url = postgres_server.source({"t": pa.table({"id": [1]})})
    with almanaq.connect(url, model="local") as con, psycopg.connect(url, autocommit=True) as owner:
        public = con.public()
        assert con.sql("SELECT id FROM t").rows == [(1,)]
        with pytest.raises(UnknownNameError, match="no relation named 'late'"):
            con.sql("SELECT id FROM late")
        owner.execute("CREATE TABLE late AS SELECT 7 AS id; ALTER TABLE t ADD COLUMN more int")
        assert con.sql("SELECT id FROM late").rows == public.sql("SELECT id FROM late").rows == [(7,)]
        assert con.sql("SELECT more FROM t").rows == [(None,)]
