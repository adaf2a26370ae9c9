"""DuckDB, the embedded engine: DuckDB files, and tables that are loaded into its memory."""

from __future__ import annotations

import re
import threading
import uuid
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import duckdb

from almanaq.corpus.inference import LoadReport
from almanaq.engines import interruption
from almanaq.engines.common import complete_enums
from almanaq.engines.duckdb.catalog import CatalogReader
from almanaq.engines.duckdb.frames import as_arrow
from almanaq.engines.duckdb.language import DuckDBLanguage
from almanaq.engines.duckdb.session import DuckDBSession, open_instance
from almanaq.errors import SourceError, UsageError, first_line
from almanaq.suql.catalog.relations import Catalog, Relation
from almanaq.suql.catalog.schema_file import Schema, apply_schema, check_keys
from almanaq.text.sql_literals import quote, string_literal

"""Endings of DuckDB files."""
_OF_ONE = frozenset(["schema", "search_path", "progress_bar_time", "enable_progress_bar", "enable_progress_bar_print"])
"""Settings of a connection that change no rows."""
_REGISTERED = "registered"
"""The schema of tables that were added to a source, in the database of our own."""
_LOCK = (
    "TimeZone = 'UTC'",
    "enable_external_access = false",
    "python_enable_replacements = false",
    "lock_configuration = true",
)
"""Moments in UTC as from every engine; no files, no network, no Python variables as tables; no query changes that."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """What loading files found out.

    Attributes:
        reports: how their cells were read.
        declared: the keys and units that the catalog cannot show.
        separate: whether each schema is a database of its own.
        typed: (schema, name) of the tables whose source declares types: no ENUM is inferred there.
        made: rows by (schema, name) of every relation, where all are tables made by loading alone; None: unknown.
        catalog: what the tables hold as it was read once, before a schema file is applied; None: to be read.
        origins: by (schema, name) of a table, the file that it was read from and how that is written.
        lasting: whether reading it again would give the same; not where a part was left out for want of time.
    """

    reports: tuple[LoadReport, ...] = ()
    declared: Schema = field(default_factory=Schema)
    separate: bool = False
    typed: frozenset[tuple[str, str]] = frozenset()
    origins: Mapping[tuple[str, ...], str] = field(default_factory=dict)
    catalog: Catalog | None = None
    lasting: bool = True
    made: Mapping[tuple[str, str], int] | None = None


class DuckDBDatabase:
    """A Database on DuckDB.

    Args:
        connection: holds the source; every session works on further connections to the same instance.
        name: the source's name, for messages.
        database: the name under which DuckDB knows the source.
        schema: what a schema file says, applied over what the database says; its keys are checked.
        loaded: what loading found out, when the source was loaded into the engine's memory.
        infer_enums: whether columns of text may be found to be ENUM (sources without declared types).
        owned: whether the instance is ours: its configuration is locked.
        settings: statements by which each further connection gets the settings of its owner's.
        on_close: called once, on `close` or when the process ends, with the catalog as it was read, None where it was
            not.
    """

    dialect = "duckdb"
    typed = True

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        *,
        name: str,
        database: str,
        schema: Schema | None = None,
        loaded: Loaded | None = None,
        infer_enums: bool = False,
        owned: bool = True,
        on_close: Callable[[Catalog | None], None] | None = None,
        settings: str = "",
    ) -> None:
        self.name = name
        self.reports = loaded.reports if loaded else ()
        self._connection, self._database, self._owned = connection, database, owned
        self._settings = settings
        self._loaded = loaded or Loaded()
        self._found = [] if self._loaded.catalog is None else [self._loaded.catalog]
        self._finish = weakref.finalize(self, _finish, on_close, self._found)
        self._schema, self._infer_enums = schema or Schema(), infer_enums
        self._catalog: Catalog | None = None
        self._registered: dict[str, Relation] = {}
        self._lock = threading.Lock()
        self._work = f"work_{uuid.uuid4().hex[:8]}"
        connection.execute(f"ATTACH ':memory:' AS {quote(self._work)}")
        if owned:
            for setting in _LOCK:
                connection.execute(f"SET GLOBAL {setting}")

    def catalog(self) -> Catalog:
        """Return what the source holds, read once; raises SourceError when the schema file does not fit it."""
        with self._lock:
            if self._catalog is None:
                try:
                    with self._connection.cursor() as cursor:
                        loaded = self._loaded
                        reader = CatalogReader(cursor, self._database, self._infer_enums, loaded.typed, loaded.made)
                        found = self._read(reader)
                        self._catalog = replace(found, relations=(*found.relations, *self._registered.values()))
                except duckdb.Error as error:
                    raise SourceError(f"cannot read the catalog of {self.name}: {first_line(error)}") from error
            return self._catalog

    def register(self, name: str, frame: Any) -> None:
        """Copy a table of Arrow, pandas or polars beside those of the source, in place of one registered before.

        Raises:
            UsageError: the source has a table of that name, or the frame is no table.
        """
        known = self.catalog().find(name)
        if known is not None and known.name not in self._registered:
            raise UsageError(f"the source has a table {known.name!r}: register the frame under another name")
        table = as_arrow(name, frame)
        with self._lock, self._connection.cursor() as cursor:
            place = (self._work, _REGISTERED, name)
            cursor.execute(f"CREATE SCHEMA IF NOT EXISTS {quote(*place[:2])}")
            cursor.execute(f"DROP TABLE IF EXISTS {quote(*place)}")
            rows = load_table(cursor, place, table)
            made = CatalogReader(cursor, self._work, made={place[1:]: rows})
            self._registered |= {relation.name: relation for relation in made.read().relations}
            self._catalog = None

    def language(self, catalog: Catalog) -> DuckDBLanguage:
        """Return DuckDB's SQL over the relations of a catalog: this one's, or what is left of it."""
        views = (lambda _: None) if self._owned else self._view
        return DuckDBLanguage(self._cursor, lambda: catalog, views, owned=self._owned)

    def _view(self, relation: Relation) -> str | None:
        """Return the query that a view is, None of a table."""
        with self._cursor() as cursor:
            found = cursor.execute(
                "SELECT sql FROM duckdb_views() WHERE (database_name, schema_name, view_name) = ($1, $2, $3)",
                list(relation.location),
            ).fetchone()
        return None if found is None else query_of_view(str(found[0]))

    def session(self, deadline: float | None = None) -> DuckDBSession:
        """Open a session whose work is interrupted `deadline` seconds from now (None: never)."""
        return DuckDBSession(self._cursor, self._work, deadline, owned=self._owned)

    def close(self) -> None:
        """Let go of the source."""
        if not self._owned:
            with suppress(duckdb.ResourceInUseException):  # by work that was left: it goes with the connection
                self._connection.execute(f"DETACH DATABASE IF EXISTS {quote(self._work)}")
        self._finish()
        interruption.close_or_detach(self._connection, duckdb.ResourceInUseException)

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        with self._lock:
            cursor = self._connection.cursor()
            if self._settings:
                cursor.execute(self._settings)
            return cursor

    def _read(self, reader: CatalogReader) -> Catalog:
        """Read the catalog, apply the schema file, check its keys and complete its ENUMs."""
        if not self._found:
            self._found.append(reader.read())
        catalog = apply_schema(apply_schema(self._found[0], self._loaded.declared), self._schema)
        check_keys(catalog, self._schema, reader.key_holds)
        origins = self._loaded.origins
        relations = tuple(
            replace(
                complete_enums(relation, partial(reader.values, relation)),
                origin=origins.get(relation.location[1:], ""),
            )
            for relation in catalog.relations
        )
        return replace(catalog, relations=relations, separate=self._loaded.separate)


def _finish(on_close: Callable[[Catalog | None], None] | None, found: Sequence[Catalog]) -> None:
    if on_close is not None:
        on_close(found[0] if found else None)


def open_duckdb_file(path: Path, *, schema: Schema | None = None) -> DuckDBDatabase:
    """Open a DuckDB file read-only; raises SourceError when it is none or is open elsewhere for writing."""
    connection = open_instance()
    try:
        connection.execute(f"ATTACH '{str(path).replace(chr(39), chr(39) * 2)}' AS src (READ_ONLY)")
    except duckdb.Error as error:
        connection.close()
        raise SourceError(f"cannot open {path.name} as a DuckDB database: {first_line(error)}") from error
    return DuckDBDatabase(connection, name=path.name, database="src", schema=schema)


def open_tables(tables: Mapping[str, Any], *, name: str = "tables", schema: Schema | None = None) -> DuckDBDatabase:
    """Copy tables of Arrow, pandas, polars or what else streams Arrow into an in-memory database.

    Raises:
        UsageError: there are none, a name is empty, or a value is not a table.
    """
    if not tables:
        raise UsageError("no tables given: pass a mapping of names to tables of Arrow, pandas or polars")
    connection = open_instance()
    connection.execute("CREATE SCHEMA data")
    loaded = Loaded(
        made={
            ("data", table_name): load_table(connection, ("memory", "data", table_name), as_arrow(table_name, table))
            for table_name, table in tables.items()
        }
    )
    return DuckDBDatabase(connection, name=name, database="memory", schema=schema, loaded=loaded)


def open_connection(connection: duckdb.DuckDBPyConnection, *, schema: Schema | None = None) -> DuckDBDatabase:
    """Use the current database of a user's DuckDB connection.

    Every statement that is run is a single SELECT, and temporary tables lie in a database in memory of their own, but
    the connection's settings are left as they are, and hold for queries too, as they are now. DuckDB's functions that
    read files are refused by the compiler only. The user's temporary tables, registered frames and rows that are not
    committed are not seen: they belong to one connection.
    """
    # Fetched to its end: a connection with an unfinished result refuses its owner's next statement.
    ((database,),) = connection.execute("SELECT current_database()").fetchall()
    cursor = connection.cursor()
    settings = _own_settings(connection, cursor)
    return DuckDBDatabase(cursor, name=database, database=database, schema=schema, owned=False, settings=settings)


def _own_settings(connection: duckdb.DuckDBPyConnection, cursor: duckdb.DuckDBPyConnection) -> str:
    """Return the statements that give a further connection the settings that its owner has set for one alone."""
    read = "SELECT name, value FROM duckdb_settings() WHERE value IS NOT NULL"
    own, others = (dict(each.execute(read).fetchall()) for each in (connection, cursor))
    changed = {name: value for name, value in own.items() if others.get(name) != value and name not in _OF_ONE}
    return "; ".join(f"SET SESSION {quote(name)} = {string_literal(value)}" for name, value in changed.items())


def query_of_view(statement: str) -> str:
    """Return the query of a CREATE VIEW as DuckDB writes it.

    >>> query_of_view('CREATE VIEW "as" (a) AS SELECT 1 AS x;')
    'SELECT 1 AS x'
    """
    bare = re.sub(r'"(?:[^"]|"")*"', lambda name: "_" * len(name[0]), statement)
    found = re.search(r"\bAS\s", bare)
    return statement[found.end() :].strip().removesuffix(";") if found is not None else statement


def load_table(connection: duckdb.DuckDBPyConnection, place: tuple[str, ...], table: Any) -> int:
    """Make the table at `place` from Arrow data; a column of string dictionaries becomes an ENUM. Return its rows."""
    import pyarrow as pa

    try:
        connection.register("loaded", table)
        columns = [
            _enum_cast(field.name, table.column(field.name)) if _is_enum(pa, field.type) else quote(field.name)
            for field in table.schema
        ]
        made = connection.execute(f"CREATE TABLE {quote(*place)} AS SELECT {', '.join(columns)} FROM loaded")
        ((rows,),) = made.fetchall()
        return int(rows)
    except duckdb.Error as error:
        raise SourceError(f"cannot load the table {place[-1]!r}: {first_line(error)}") from error
    finally:
        connection.unregister("loaded")


def _is_enum(pa: Any, type_: Any) -> bool:
    texts = (pa.string(), pa.large_string(), pa.string_view())
    return bool(pa.types.is_dictionary(type_)) and type_.value_type in texts


def _enum_cast(name: str, column: Any) -> str:
    values = dict.fromkeys(v for v in column.unify_dictionaries().chunk(0).dictionary.to_pylist() if v is not None)
    if not values:
        return quote(name)
    listed = ", ".join(map(string_literal, values))
    return f"CAST({quote(name)} AS ENUM({listed})) AS {quote(name)}"
