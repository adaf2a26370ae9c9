"""One small source in every form that a Database can be opened from."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import mariadb_server
from almanaq.engines.open_source import open_database
from almanaq.engines.protocols import Database
from almanaq.suql.catalog.schema_file import RelationSchema, Schema
from engines import PostgresServer

ROWS = [
    (1, "Café Ölé", 4.5, "2020-02-29"),
    (2, 'O\'Hara "quoted", with comma', None, "1968-02-15"),
    (3, "日本料理 🍣", 3.0, None),
    (4, None, -1.25, "1999-12-31"),
]


def _duckdb_file(folder: Path) -> str:
    path = str(folder / "places.duckdb")
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE places (id BIGINT PRIMARY KEY, name VARCHAR, rating DOUBLE, opened DATE)")
        connection.executemany("INSERT INTO places VALUES (?, ?, ?, ?)", ROWS)
    return path


def _sqlite_file(folder: Path) -> str:
    path = str(folder / "places.sqlite")
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE places (id INTEGER PRIMARY KEY, name TEXT, rating REAL, opened DATE)")
    connection.executemany("INSERT INTO places VALUES (?, ?, ?, ?)", ROWS)
    connection.commit()
    connection.close()
    return path


def _csv_folder(folder: Path) -> str:
    import csv

    with (folder / "places.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerows([("id", "name", "rating", "opened"), *ROWS])
    return str(folder)


def _arrow(_: Path) -> object:
    import datetime

    ids, names, ratings, opened = zip(*ROWS, strict=True)
    days = [None if day is None else datetime.date.fromisoformat(day) for day in opened]
    return {"places": pa.table({"id": ids, "name": names, "rating": ratings, "opened": days})}


def _connection(folder: Path) -> object:
    return duckdb.connect(_duckdb_file(folder))


@pytest.fixture(scope="session")
def postgres(postgres_server: PostgresServer) -> str:
    """The URL of a PostgreSQL database with the four places."""
    import psycopg

    url = postgres_server.new_database()
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE places (id bigint PRIMARY KEY, name text, rating float8, opened date)")
        connection.cursor().executemany("INSERT INTO places VALUES (%s, %s, %s, %s)", ROWS)
    connection.close()
    return url


@pytest.fixture(scope="session")
def ibis_postgres(postgres: str) -> Callable[[], Database]:
    """The same database through ibis: the path of the engines that no server can be had for."""
    ibis = pytest.importorskip("ibis")
    from almanaq.engines.ibis.engine import IbisDatabase

    said = Schema({"places": RelationSchema(key=("id",))})
    return lambda: IbisDatabase(lambda: ibis.connect(postgres), name="ibis", schema=said)


@pytest.fixture(scope="session")
def mariadb() -> Iterator[str]:
    """The URL of a MariaDB database with the four places."""
    pytest.importorskip("ibis")
    if not mariadb_server.is_installed():
        pytest.skip("no MariaDB or no driver for it here: apt-get install mariadb-server, pip install mysqlclient")
    with mariadb_server.run_server() as url:
        with mariadb_server.connect(url) as connection, connection.cursor() as cursor:
            cursor.execute("CREATE TABLE places (id bigint PRIMARY KEY, name text, rating double, opened date)")
            cursor.executemany("INSERT INTO places VALUES (%s, %s, %s, %s)", ROWS)
        yield url


SOURCES: dict[str, Callable[[Path], object]] = {
    "duckdb": _duckdb_file,
    "sqlite": _sqlite_file,
    "csv": _csv_folder,
    "arrow": _arrow,
    "connection": _connection,
}


@pytest.fixture(params=[*SOURCES, "postgres", "ibis_postgres", "mariadb"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """The four places, in one of the forms."""
    chosen = SOURCES.get(request.param)
    source = chosen(tmp_path) if chosen else request.getfixturevalue(request.param)
    opened = source() if callable(source) else open_database(source)
    yield opened
    opened.close()
    if isinstance(source, duckdb.DuckDBPyConnection):
        source.close()
