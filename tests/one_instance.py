"""Tables in one instance of DuckDB for the whole process: making an instance takes longer than most queries."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from itertools import count
from typing import Any

import duckdb

from almanaq.engines.duckdb import engine
from almanaq.suql.catalog.schema_file import Schema

_numbers = count(1)


@cache
def _instance() -> duckdb.DuckDBPyConnection:
    connection = engine.open_instance()
    for setting in engine._LOCK:
        connection.execute(f"SET GLOBAL {setting}")
    return connection


class _InOneInstance(engine.DuckDBDatabase):
    def __init__(self, connection: duckdb.DuckDBPyConnection, **named: Any) -> None:
        super().__init__(connection, owned=False, **named)
        self._owned = True  # but that the settings of the instance are locked already

    def close(self) -> None:
        with suppress(duckdb.Error):  # closed before, or in use by work that was left
            self._connection.execute(f"DETACH {self._work}; DETACH {self._database}")
        super().close()


def open_in_one_instance(
    tables: Mapping[str, Any], *, name: str = "tables", schema: Schema | None = None
) -> engine.DuckDBDatabase:
    """Open tables as `open_tables` does."""
    database = f"tables_{next(_numbers)}"
    connection = _instance().cursor()
    connection.execute(f"ATTACH ':memory:' AS {database}; CREATE SCHEMA {database}.data")
    made = {
        ("data", table): engine.load_table(connection, (database, "data", table), engine.as_arrow(table, rows))
        for table, rows in tables.items()
    }
    return _InOneInstance(connection, name=name, database=database, schema=schema, loaded=engine.Loaded(made=made))
