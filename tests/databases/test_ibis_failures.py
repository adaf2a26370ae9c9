"""What goes wrong with a source that ibis opens: each is an error that says what, and prints no password."""

from __future__ import annotations

import importlib.util

import psycopg
import pytest
from psycopg import sql

import almanaq
from almanaq.engines.ibis.engine import IbisDatabase, open_ibis_url
from almanaq.errors import DatabaseError, SourceError, UnsupportedError
from almanaq.testing import FunctionModel
from engines import PostgresServer
from postgres_server import LOCKED

ibis = pytest.importorskip("ibis")


@pytest.fixture
def url(postgres_server: PostgresServer) -> str:
    url = postgres_server.new_database()
    with psycopg.connect(url) as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT i AS id, 'text ' || i AS body, int4range(i, i + 1) AS r, point(i, 2) AS p, "
            "'<a/>'::xml AS x, ('{\"k\": ' || i || '}')::jsonb AS j FROM generate_series(1, 50) i"
        )
    return url


def connect(url: str, model: FunctionModel) -> almanaq.Connection:
    database = IbisDatabase(lambda: ibis.connect(url), name="ibis")
    return almanaq.connect(database, model=model, order="table", cache=False)


@pytest.mark.parametrize(
    "written", ["postgres://someone:hunter22@127.0.0.1:1/x", "postgres://a:hunt%40er22@127.0.0.1:1/x"]
)
def test_a_server_that_is_down_is_named_without_the_password(written: str) -> None:
    with pytest.raises(SourceError, match="cannot connect to postgres") as caught:
        open_ibis_url(written)
    assert "er22" not in f"{caught.value!r} {caught.value.__cause__!r}"


def test_an_engine_that_nobody_has_described_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match="druid is no engine that almanaq has learned"):
        almanaq.connect("druid://localhost/x")
    with pytest.raises(UnsupportedError, match="mysql"):
        almanaq.connect("mysqll://localhost/x")


@pytest.mark.skipif(importlib.util.find_spec("trino") is not None, reason="the driver is installed here")
def test_a_driver_that_is_missing_is_named() -> None:
    with pytest.raises(SourceError, match=r"ibis-framework\[trino\]"):
        almanaq.connect("trino://u@localhost/c/s")


def test_types_that_ibis_does_not_know_come_as_text(url: str) -> None:
    with connect(url, FunctionModel(lambda t, q: "Yes")) as con:
        kinds = {c.name: c.type for c in con.engine.catalog.relation("t").columns}
        assert (kinds["r"], kinds["j"]) == ("unknown", "jsonb")
        sql = "SELECT r, p, x, j FROM t WHERE answer(body, 'calm?') = 'Yes' AND id = 1 LIMIT 1"
        assert list(con.sql(sql).rows) == [("[1, 2)", "(1,2)", "<a/>", '{"k": 1}')]


def test_a_connection_lost_in_the_middle_is_an_error_and_not_fewer_rows(url: str) -> None:
    calls: list[str] = []

    def kill(text: str, question: str) -> str:
        calls.append(text)
        if len(calls) == 5:
            with psycopg.connect(url, autocommit=True) as other:
                other.execute(
                    "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
        return "Yes"

    with connect(url, FunctionModel(kill)) as con:
        sql = "SELECT id FROM t WHERE answer(body, 'calm?') = 'Yes'"
        with pytest.raises(DatabaseError):
            con.sql(sql)
        assert len(con.sql(sql).rows) == 50  # the next query takes a new connection
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT 1 FROM pg_class WHERE relpersistence = 't'").fetchall() == []


def test_a_postgresql_backend_of_ibis_is_spoken_to_directly(url: str) -> None:
    backend = ibis.connect(url)
    with almanaq.connect(backend, model=FunctionModel(lambda t, q: "Yes"), cache=False) as con:
        assert con.engine.catalog.relation("t").row_id == "ctid::text"
        assert len(con.sql("SELECT id FROM t WHERE answer(body, 'calm?') = 'Yes' LIMIT 2").rows) == 2
    backend.disconnect()


def test_a_backend_s_password_of_any_characters_is_taken_over(url: str) -> None:
    password = "p w'd\\x"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"DROP ROLE IF EXISTS {LOCKED}")
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(sql.Identifier(LOCKED), password))
        port, name = connection.info.port, connection.info.dbname
    backend = ibis.postgres.connect(host="127.0.0.1", port=port, user=LOCKED, password=password, database=name)
    with almanaq.connect(backend) as con:
        assert con.sql("SELECT 1").rows == [(1,)]
    backend.disconnect()
