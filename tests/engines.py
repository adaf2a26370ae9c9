"""Arrow tables as a source in each engine, for tests that hold on all of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa

Source = Callable[[Mapping[str, pa.Table]], Any]
"""Makes of tables what `almanaq.connect` takes."""


def quote(name: str) -> str:
    """Return a quoted identifier."""
    return '"' + name.replace('"', '""') + '"'


# --- PostgreSQL ------------------------------------------------------------------------------------------------------


class PostgresServer:
    """A running server and its log; `source` makes a new database of tables and gives its URL."""

    def __init__(self, url: str, log: Path) -> None:
        self.url, self.log = url, log
        self._numbers = count(1)

    def source(self, tables: Mapping[str, pa.Table], options: str = "STRATEGY FILE_COPY") -> str:
        """Return the URL of a database that holds the tables."""
        import psycopg

        url = self.new_database(options)
        with psycopg.connect(url, autocommit=True) as connection:
            fill(connection, tables)
        return url

    def new_database(self, options: str = "STRATEGY FILE_COPY") -> str:
        """Return the URL of a new, empty database."""
        import psycopg

        name = f"made_{next(self._numbers)}"
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} {options}")
        return f"{self.url.rsplit('/', 1)[0]}/{name}"


def fill(connection: Any, tables: Mapping[str, pa.Table]) -> None:
    """Make tables in PostgreSQL; a column of dictionaries becomes an ENUM, those with the same values one type."""
    made: dict[str, str] = {}
    for name, table in tables.items():
        columns = []
        for field in table.schema:
            type_ = _postgres_type(field.type)
            if pa.types.is_dictionary(field.type):
                values = table.column(field.name).combine_chunks().dictionary.to_pylist()
                labels = ", ".join("'" + value.replace("'", "''") + "'" for value in values)
                type_ = made.get(labels) or quote(f"{name}_{field.name}")
                if labels not in made:
                    connection.execute(f"CREATE TYPE {type_} AS ENUM ({labels})")
                made[labels] = type_
            columns.append(f"{quote(field.name)} {type_}")
        connection.execute(f"CREATE TABLE {quote(name)} ({', '.join(columns)})")
        with connection.cursor() as cursor, cursor.copy(f"COPY {quote(name)} FROM STDIN") as copy:
            for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
                copy.write_row(row)


def _postgres_type(type_: pa.DataType) -> str:
    from almanaq.engines.postgres.driver import sql_type

    return "integer" if type_ == pa.int32() else sql_type(type_)


# --- SQLite ----------------------------------------------------------------------------------------------------------

_SQLITE_TYPES = {pa.int64(): "INTEGER", pa.int32(): "INTEGER", pa.float64(): "REAL", pa.string(): "TEXT"}


def in_sqlite(tables: Mapping[str, pa.Table]) -> tuple[str, ...]:
    """Return the names of the tables that SQLite has types for."""
    known = {*_SQLITE_TYPES, pa.date32()}
    return tuple(name for name, table in tables.items() if all(field.type in known for field in table.schema))


def sqlite_source(tables: Mapping[str, pa.Table], folder: Path) -> str:
    """Return the path of a SQLite file that holds the tables that SQLite has types for."""
    path = folder / "made.sqlite"
    connection = sqlite3.connect(path)
    for name in in_sqlite(tables):
        table = tables[name]
        columns = ", ".join(f"{quote(f.name)} {_SQLITE_TYPES.get(f.type, 'DATE')}" for f in table.schema)
        connection.execute(f"CREATE TABLE {quote(name)} ({columns})")
        rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
        marks = ", ".join("?" for _ in table.schema)
        written = [tuple(v if v is None or isinstance(v, int | float | str) else str(v) for v in row) for row in rows]
        connection.executemany(f"INSERT INTO {quote(name)} VALUES ({marks})", written)
    connection.commit()
    connection.close()
    return str(path)
