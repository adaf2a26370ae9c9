"""Sources that are loaded into DuckDB: from what was kept of them, else read, and then kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import duckdb

from almanaq.corpus.read_cancellation import current_read
from almanaq.suql.catalog.relations import Catalog
from almanaq.suql.catalog.schema_file import Schema
from almanaq.suql.databases.duckdb import DuckDBDatabase, Loaded
from almanaq.suql.databases.kept import KeptTables, Save
from almanaq.suql.databases.own_duckdb import own_instance

DATABASE = "files"
"""Under this name DuckDB knows what was loaded."""
Work = Callable[[duckdb.DuckDBPyConnection], None]


def _nothing(_: duckdb.DuckDBPyConnection) -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True)
class Keeping:
    """Where the tables of a source are kept.

    Attributes:
        key: tells the content of the source from any other; "": it is not worth being kept.
    """

    tables: KeptTables | None = None
    key: str = ""


@dataclass(frozen=True, slots=True)
class _Closing:
    """What is done when a database is let go of; it holds until then what must live so long."""

    save: Save | None
    held: object

    def __call__(self, catalog: Catalog | None) -> None:
        if self.save is not None:
            self.save(catalog)


def open_loaded(
    load: Callable[[duckdb.DuckDBPyConnection], Loaded],
    *,
    name: str,
    schema: Schema | None,
    keeping: Keeping,
    lock: Work = _nothing,
    held: object = None,
) -> DuckDBDatabase:
    """Return the database of the tables that `load` makes in DATABASE, or that were kept of it.

    Args:
        lock: says what files the engine may read from then on; none by itself.
        held: what must live as long as the database, as a folder of files that were fetched.
    """
    kept, key = keeping.tables, keeping.key
    found = kept.open(key) if kept is not None and key else None
    if found is not None:
        lock(found[0])
        return _database(found[0], name, schema, found[1], None)
    connection = own_instance()
    try:
        connection.execute(f"ATTACH ':memory:' AS {DATABASE}")
        with current_read().interrupting(connection.interrupt):
            loaded = load(connection)
        lock(connection)
        save = kept.prepare(connection, key, loaded) if kept is not None and key and loaded.lasting else None
    except BaseException:
        connection.close()
        raise
    return _database(connection, name, schema, loaded, _Closing(save, held))


def _database(
    connection: duckdb.DuckDBPyConnection, name: str, schema: Schema | None, loaded: Loaded, closing: _Closing | None
) -> DuckDBDatabase:
    return DuckDBDatabase(
        connection, name=name, database=DATABASE, schema=schema, loaded=loaded, infer_enums=True, on_close=closing
    )
