"""The engines under attack, and what would show that an attack came through."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import duckdb
import pyarrow as pa
import sqlglot

import mariadb_server
from almanaq import connect
from almanaq.connection import Connection
from almanaq.engines.ibis.engine import IbisDatabase
from almanaq.engines.ibis.profiles import _LISTS
from almanaq.errors import AlmanaqError
from almanaq.suql.catalog.schema_file import parse_schema
from almanaq.testing import FunctionModel

from .attacks import LARGE_OBJECT, LOCK, SECRET, SLEEP, Attack

_TABLE = "CREATE TABLE t (x text, d date, js json)"
_ROW = """INSERT INTO t VALUES ('abc', '2024-01-31', '{"a": {"b": 1}}')"""
_OURS = re.compile(
    r"SET |ALTER SESSION |START |ROLLBACK|DROP (?:TEMPORARY )?TABLE |CREATE TEMPORARY TABLE \S+ \("
    r"|.*(?:information_schema|system\.columns)"
)
_LISTINGS = frozenset(sql for asked in _LISTS.values() for sql in asked)
_MADE = re.compile(r"CREATE TEMPORARY TABLE \S+ AS ")
"""Statements that no part of a query is in: settings, the catalog, lists of functions, the tables of steps."""


_STATE = (
    "FROM t",
    "SELECT name, value FROM duckdb_settings()",
    "SELECT database_name, path FROM duckdb_databases()",
    "SELECT name, value FROM duckdb_variables()",
    "SELECT database_name, schema_name, table_name FROM duckdb_tables()",
    "SELECT sequence_name, last_value FROM duckdb_sequences()",
    "SELECT function_name, macro_definition FROM duckdb_functions() WHERE NOT internal",
    "SELECT view_name FROM duckdb_views() WHERE NOT internal",
)
"""What an attack could change in a DuckDB instance."""


@contextlib.contextmanager
def user_duckdb(folder: Path) -> Iterator[Connection]:
    """Open a user's own DuckDB connection, which may do anything: the compiler alone stands before it.

    The folder's file `canary` gets siblings that replacement scans find. A variable, a frame, a setting, the
    environment and the names of an index and a type hold the same secret.
    """
    canary, kinds = str(folder / "canary"), ("csv", "json", "parquet")
    with duckdb.connect() as connection, mock.patch.dict(os.environ, ALMANAQ_CANARY=SECRET):
        for statement in (
            *(_TABLE, _ROW, "CREATE SEQUENCE numbers", f'CREATE INDEX "{SECRET}" ON t (x)'),
            *(f"SET VARIABLE canary = '{SECRET}'", f"SET extension_directory = '/{SECRET}'"),
            *(f"""CREATE TYPE "{SECRET}" AS ENUM ('a')""", "SET python_scan_all_frames = true"),
            f"CREATE MACRO reads_canary(a) AS (SELECT content FROM read_text('{canary}'))",
            "CREATE MACRO rows_of(a) AS TABLE SELECT * FROM read_text(a)",
            *(f"COPY (SELECT '{SECRET}' AS x) TO '{canary}.{kind}'" for kind in kinds),
            f"COPY (SELECT '{SECRET}' AS x) TO '{folder}/k.csv'",
        ):
            connection.execute(statement)
        assert connection.execute("SELECT content FROM read_text(?)", [canary]).fetchone() == (SECRET,)
        canary_frame = pa.table({"x": [SECRET]})
        assert connection.execute("FROM canary_frame").fetchone() == (SECRET,)
        before = _state(connection, folder)
        with connect(connection, model=_model(), cache=False, deadline=10) as con:
            yield con
        assert _state(connection, folder) == before
        del canary_frame


def _state(connection: duckdb.DuckDBPyConnection, folder: Path) -> list[Any]:
    found: list[Any] = [sorted(map(str, connection.execute(query).fetchall())) for query in _STATE]
    return [*found, sorted(path.name for path in folder.iterdir())]


@contextlib.contextmanager
def postgres(url: str, settings: str = "") -> Iterator[Connection]:
    """Open a PostgreSQL database as its superuser, who may do anything; `settings` are those of the database."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as admin:
        for statement in (_TABLE, _ROW, "CREATE SEQUENCE numbers", settings):
            if statement:
                admin.execute(statement)
    with connect(url, model=_model(), cache=False, deadline=10) as con:
        yield con
    with psycopg.connect(url, autocommit=True) as admin:
        assert admin.execute("SELECT count(*) FROM t").fetchone() == (1,)
        assert admin.execute("SELECT is_called FROM numbers").fetchone() == (False,)
        assert admin.execute(f"SELECT count(*) FROM pg_locks WHERE objid = {LOCK}").fetchone() == (0,)
        found = admin.execute(f"SELECT count(*) FROM pg_largeobject_metadata WHERE oid = {LARGE_OBJECT}")
        assert found.fetchone() == (0,)


@contextlib.contextmanager
def mariadb(url: str) -> Iterator[tuple[Connection, str]]:
    """Open a MariaDB database as a user who may do anything, files included; give also a file that it can read."""
    with tempfile.TemporaryDirectory() as folder, mariadb_server.connect(url) as admin, admin.cursor() as cursor:
        canary = Path(folder) / "canary"
        canary.write_text(SECRET)
        canary.chmod(0o644)
        canary.parent.chmod(0o777)
        for statement in (_TABLE.replace("x text", "x varchar(9)"), _ROW, "CREATE SEQUENCE numbers"):
            cursor.execute(statement)
        assert _first(cursor, f"SELECT LOAD_FILE('{canary}')") == SECRET.encode(), "an attack could not come through"
        with connect(url, model=_model(), cache=False, deadline=10) as con:
            yield con, str(canary)
        assert _first(cursor, "SELECT count(*) FROM t") == 1
        assert _first(cursor, "SELECT next_not_cached_value FROM numbers") == 1
        assert _first(cursor, f"SELECT IS_USED_LOCK('{LOCK}')") is None
        assert [path.name for path in canary.parent.iterdir()] == ["canary"]
        cursor.execute("DROP TABLE t")
        cursor.execute("DROP SEQUENCE numbers")


def _first(cursor: Any, query: str) -> Any:
    cursor.execute(query)
    return cursor.fetchone()[0]


@dataclass(frozen=True)
class Recorded:
    """A connection to a stand-in for an engine that no server can be had for, and the SELECTs that were sent to it."""

    connection: Connection
    queries: list[str]


class _Engine:
    """What almanaq uses of an ibis backend: one empty table, and a note of each statement."""

    def __init__(self, name: str, queries: list[str]) -> None:
        self.name, self._queries = name, queries
        self.con = SimpleNamespace(
            get_server_info=lambda: "8.4.2", thread_id=lambda: 1, cursor=lambda _: _Cursor(self._rows)
        )

    def list_tables(self) -> list[str]:
        return ["t"]

    def get_schema(self, _: str) -> Any:
        import ibis

        return ibis.schema({"x": "string", "d": "date", "js": "json"})

    def disconnect(self) -> None:
        """Do nothing."""

    def raw_sql(self, sql: str) -> Any:
        names, rows = self._rows(sql)
        if self.name == "clickhouse":
            return SimpleNamespace(column_names=names, result_rows=rows)
        if self.name == "bigquery":
            return _BigQueryRows(names, rows)
        cursor = _Cursor(self._rows)
        cursor.take(names, rows)
        return cursor

    def _rows(self, sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Note a statement; give the names of its columns, and no row but that of a count."""
        if _OURS.match(sql) or sql in _LISTINGS:
            return ["x"], []
        made = _MADE.match(sql)
        query = sql[made.end() :] if made is not None else sql
        self._queries.append(query)
        tree = sqlglot.parse_one(query, read=self.name)
        return list(getattr(tree, "named_selects", ["x"])), [(0,)] if sql.startswith("SELECT COUNT(*) FROM ") else []


class _Cursor:
    """A DB-API cursor."""

    def __init__(self, run: Callable[[str], tuple[list[str], list[tuple[Any, ...]]]]) -> None:
        self._run = run

    def take(self, names: list[str], rows: list[tuple[Any, ...]]) -> None:
        self.description, self._left = [(name,) for name in names], rows

    def execute(self, sql: str) -> None:
        self.take(*self._run(sql))

    def fetchmany(self, _: int) -> list[tuple[Any, ...]]:
        return self.fetchall()

    def fetchall(self) -> list[tuple[Any, ...]]:
        rows, self._left = self._left, []
        return rows

    def close(self) -> None:
        """Do nothing."""


class _BigQueryRows(list[Any]):
    def __init__(self, names: list[str], rows: list[tuple[Any, ...]]) -> None:
        super().__init__(SimpleNamespace(values=lambda row=row: row) for row in rows)
        self.schema = [SimpleNamespace(name=name) for name in names]


@contextlib.contextmanager
def recorded(engine: str) -> Iterator[Recorded]:
    """Open a stand-in for an engine that ibis reaches."""
    queries: list[str] = []
    schema = parse_schema('[t]\nkey = ["x"]\n')
    database = IbisDatabase(lambda: _Engine(engine, queries), name=engine, schema=schema)
    with connect(database, model=_model(), cache=False, deadline=10) as con:
        assert con.engine.catalog.relation("t").key == ("x",)  # it is read now, before the first attack
        queries.clear()
        yield Recorded(con, queries)


def attack(con: Connection, attempts: Iterable[Attack]) -> Counter[str]:
    """Run attacks; give how they ended, by the kind of the error.

    Raises:
        AssertionError: one read the canary, took as long as its sleep, or ended in an error that is none of ours.
    """
    ended: Counter[str] = Counter()
    for attempt in attempts:
        started = time.monotonic()
        found: Any = ""
        try:
            found = con.sql(attempt.query, attempt.parameters).rows
            ended["ran"] += 1
        except AlmanaqError as error:
            found = error
            ended[type(error).__name__] += 1
        except Exception as error:
            raise AssertionError(f"{attempt} ended in {error!r}") from error
        assert SECRET not in str(found), attempt
        assert time.monotonic() - started < SLEEP, attempt
    return ended


def _model() -> FunctionModel:
    """Return a model that answers with what it reads, so that a document nobody may read is seen in the rows."""
    return FunctionModel(lambda document, question: f"{document} {question}")
