"""DuckDB, the embedded engine: DuckDB files, tables loaded into its memory, and connections of the user's."""

from __future__ import annotations

import re
import threading
import uuid
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import duckdb

from almanaq.corpus.inference import LoadReport
from almanaq.engines import interruption
from almanaq.engines.common import Derived, mark_derived
from almanaq.engines.duckdb.catalog import CHANGE_ROWS, LISTS_TABLES, CatalogReader, read_session
from almanaq.engines.duckdb.frames import as_arrow
from almanaq.engines.duckdb.language import DuckDBLanguage
from almanaq.engines.duckdb.session import DuckDBSession, open_instance
from almanaq.errors import SourceError, UsageError, first_line
from almanaq.suql.catalog.relations import Catalog, Relation
from almanaq.suql.catalog.schema_file import Schema, apply_schema
from almanaq.text.sql_literals import quote, string_literal

_OF_ONE = frozenset(["schema", "search_path", "progress_bar_time", "enable_progress_bar", "enable_progress_bar_print"])
"""Settings of a connection that change no rows."""
_REGISTERED = "registered"
"""The schema of tables that were added to a source, in the database of our own."""
_GENERATED = """SELECT table_catalog, table_schema, table_name, column_name, generation_expression
FROM information_schema.columns WHERE table_catalog = $1 AND is_generated = 'ALWAYS'"""
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
        declared: the keys and units that the catalog cannot show.
        separate: whether each schema is a database of its own.
        typed: (schema, name) of the tables whose source declares types: no ENUM is inferred there.
        origins: by `"schema"."name"` of a table, the file that it was read from and how that is written.
        catalog: what the tables hold as it was read once, before a schema file is applied; None: to be read.
        lasting: whether reading it again would give the same; not where a part was left out for want of time.
        derived: what is made of other columns, where DuckDB does not know it.
        made: rows by (schema, name) of every relation, where all are tables made by loading alone; None: unknown.
    """

    reports: tuple[LoadReport, ...] = ()
    declared: Schema = field(default_factory=Schema)
    separate: bool = False
    typed: frozenset[tuple[str, str]] = frozenset()
    origins: Mapping[str, str] = field(default_factory=dict)
    catalog: Catalog | None = None
    lasting: bool = True
    derived: tuple[Derived, ...] = ()
    made: Mapping[tuple[str, str], int] | None = None


class DuckDBDatabase:
    """A Database on DuckDB.

    Args:
        connection: holds the source; every session works on further connections to the same instance.
        database: the name under which DuckDB knows the source.
        schema: what a schema file says, applied over what the database says; its keys are checked.
        infer_enums: whether columns of text may be found to be ENUM (sources without declared types).
        owned: whether the instance is ours: its configuration is locked.
        path: the schemas in which each further connection looks for bare names; (): DuckDB's own.
        user: the connection of the source's owner, whose `USE` and `SET` are followed.
        settings: what each further connection is to be set to, as its owner's is.
        followed: the values of settings that are read again before each query.
        on_close: called once, on `close` or when the process ends, with the catalog as it was read, if it was.
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
        on_close: Callable[[Sequence[Catalog]], None] = lambda _: None,
        path: Sequence[str] = (),
        user: duckdb.DuckDBPyConnection | None = None,
        settings: Mapping[str, str] | None = None,
        followed: Mapping[str, str] | None = None,
        is_stale: Callable[[], bool] = bool,
    ) -> None:
        self.name, self._is_stale = name, is_stale
        self.reports = loaded.reports if loaded else ()
        self._connection, self._database, self._owned = connection, database, owned
        self._settings, self._followed = dict(settings or {}), dict(followed or {})
        self._path, self._user = tuple(path), user
        self._listed: Sequence[tuple[Any, ...]] = ()
        self._loaded = loaded or Loaded()
        self._found = [] if self._loaded.catalog is None else [self._loaded.catalog]
        self._finish = weakref.finalize(self, on_close, self._found)
        self._schema, self._infer_enums = schema or Schema(), infer_enums
        self._catalog: Catalog | None = None
        self._registered: dict[str, Relation] = {}
        self._lock = threading.RLock()  # the language that a catalog is read with asks, too
        self._work = f"work_{uuid.uuid4().hex[:8]}"
        connection.execute(f"ATTACH ':memory:' AS {quote(self._work)} (READ_WRITE)")  # whatever the instance may
        if owned:
            for setting in _LOCK:
                connection.execute(f"SET GLOBAL {setting}")

    def catalog(self) -> Catalog:
        with self._lock:
            self._catalog = self._catalog or self._read_catalog()
            return self._catalog

    def follow(self, *, tables: bool = False, unknown: bool = False) -> None:
        """Do as the user's connection by now: set what it was set to, read the catalog again where it was told `USE`.

        Args:
            tables: also where tables were made, renamed or dropped, whatever that changes.
            unknown: look whether files changed, which are not read again: the catalog says so of an unknown name.

        Raises:
            UsageError: a schema file was given, and its names would mean other tables.
        """
        if unknown and self._catalog is not None and not self._catalog.stale and self._is_stale():
            self._catalog = replace(self._catalog, stale=True)
        if self._user is None:
            return
        with self._lock:
            try:
                database, path, values = read_session(self._user, self._followed)
            except duckdb.Error:  # closed, at work elsewhere, or in a failed transaction: it reads what it read last
                database, path, values = self._database, self._path, self._followed
            where, known = (database, path), self._catalog
            if values != self._followed:
                with self._connection.cursor() as cursor:
                    *_, usual = read_session(cursor, values)
                unchanged = {name: value for name, value in self._settings.items() if name not in values}
                self._settings = unchanged | dict(values.items() - usual.items())
                self._followed = values
                self._catalog = known = known and replace(known)  # for nothing that was planned is planned so by now
            if known is None:
                self._database, self._path = where
                return
            if where == (self._database, self._path):
                # A table made in the first schema takes a name that is known as one of another schema.
                first = (*self._path, "main")[0]
                bare = (r for r in known.relations if r.location[0] == self._database and r.name == r.location[-1])
                if not (tables or any(r.location[1] != first for r in bare)) or self._list() == self._listed:
                    return
            before = self._database, self._path, self._listed, self._found[:]
            (self._database, self._path), self._found[:] = where, ()
            try:
                self._catalog = self._read_catalog()
                names = {relation.location: relation.name for relation in self._catalog.relations}
                kept = all(names.get(each.location, each.name) == each.name for each in known.relations)
                if self._schema.relations and (self._database != before[0] or not kept):
                    raise UsageError(
                        f"names of {self._schema.name} would mean other tables than before: go back with USE, or "
                        "connect again"
                    )
            except BaseException:
                self._catalog, (self._database, self._path, self._listed, self._found[:]) = known, before
                raise

    def _read_catalog(self) -> Catalog:
        loaded = self._loaded
        try:
            self._listed = self._list()
            with self._connection.cursor() as cursor:
                path = self._path or ("main",)
                reader = CatalogReader(cursor, self._database, path, self._infer_enums, loaded.typed, loaded.made)
                if not self._found:
                    self._found.append(reader.read())
                catalog = reader.queries.complete(apply_schema(self._found[0], loaded.declared), self._schema)
                catalog = mark_derived(catalog, self._list_derived(catalog), self.language, self._schema)
        except duckdb.Error as error:
            raise SourceError(f"cannot read the catalog of {self.name}: {first_line(error)}") from error
        relations = [replace(r, origin=loaded.origins.get(quote(*r.location[1:]), "")) for r in catalog.relations]
        return replace(catalog, relations=(*relations, *self._registered.values()), separate=loaded.separate)

    def _list_derived(self, catalog: Catalog) -> Sequence[Derived]:
        """Return the views and the generated columns, where a column is private."""
        if self._loaded.origins or not catalog.has_private:
            return self._loaded.derived
        with self._connection.cursor() as cursor:
            generated = cursor.execute(_GENERATED, [self._database]).fetchall()
        views = [(r.location, (), query) for r in catalog.relations if not r.row_id and (query := self._view(r))]
        return [*views, *((tuple(at), (name,), f"SELECT {sql} FROM {quote(*at)}") for *at, name, sql in generated)]

    def _list(self) -> Sequence[tuple[Any, ...]]:
        """Return the tables and views that a connection of the user's has by now."""
        if self._user is None:
            return ()
        with self._connection.cursor() as cursor:
            return cursor.execute(LISTS_TABLES, [self._database]).fetchall()

    def register(self, name: str, frame: Any) -> None:
        """Copy a table of Arrow, pandas or polars beside those of the source, in place of one registered before."""
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
        views = (lambda _: None) if self._owned else self._view
        return DuckDBLanguage(self._cursor, catalog, views, owned=self._owned)

    def _view(self, relation: Relation) -> str | None:
        with self._cursor() as cursor:
            found = cursor.execute(
                "SELECT sql FROM duckdb_views() WHERE (database_name, schema_name, view_name) = ($1, $2, $3)",
                list(relation.location),
            ).fetchone()
        return None if found is None else query_of_view(str(found[0]))

    def session(self, deadline: float | None = None) -> DuckDBSession:
        return DuckDBSession(self._cursor, self._work, deadline, owned=self._owned)

    def close(self) -> None:
        if not self._owned:
            with suppress(duckdb.ResourceInUseException, duckdb.ConnectionException):  # it goes with the connection
                self._connection.execute(f"DETACH DATABASE IF EXISTS {quote(self._work)}")
        self._finish()
        interruption.close_or_detach(self._connection.close, duckdb.ResourceInUseException)

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        with self._lock:
            try:
                cursor = self._connection.cursor()
            except duckdb.ConnectionException as error:
                raise UsageError(f"the duckdb connection of {self.name} is closed: connect again") from error
            if self._settings:
                cursor.execute(
                    "; ".join(f"SET SESSION {quote(n)} = {string_literal(v)}" for n, v in self._settings.items())
                )
            if self._path:
                path = ",".join(quote(self._database, schema) for schema in self._path)
                cursor.execute(f"SET SESSION search_path = {string_literal(path)}")
            return cursor


def open_duckdb_file(path: Path, *, schema: Schema | None = None) -> DuckDBDatabase:
    connection = open_instance()
    try:
        connection.execute(f"ATTACH {string_literal(path)} AS src (READ_ONLY)")
    except duckdb.Error as error:
        connection.close()
        raise SourceError(f"cannot open {path.name} as a DuckDB database: {first_line(error)}") from error
    return DuckDBDatabase(connection, name=path.name, database="src", path=("main",), schema=schema)


def open_tables(tables: Mapping[str, Any], *, name: str = "tables", schema: Schema | None = None) -> DuckDBDatabase:
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

    Bare names mean what they mean to the connection, also after a later `USE`. Every statement is a single SELECT, and
    temporary tables lie in a database in memory of their own. The connection's
    settings hold for queries too. DuckDB's functions that read files are refused by the compiler only. The user's
    temporary tables, registered frames and rows that are not committed belong to one connection, and are not seen.
    """
    try:
        cursor = connection.cursor()
        read = "SELECT name, value FROM duckdb_settings() WHERE value IS NOT NULL"
        # Fetched to its end: a connection with an unfinished result refuses its owner's next statement.
        own, others = (dict(each.execute(read).fetchall()) for each in (connection, cursor))
        changed = {name: value for name, value in own.items() if others.get(name) != value and name not in _OF_ONE}
        database, path, followed = read_session(connection, CHANGE_ROWS & own.keys())
        given: dict[str, Any] = {"path": path, "user": connection, "owned": False}
        given |= {"settings": changed, "followed": followed}
        return DuckDBDatabase(cursor, name=database, database=database, schema=schema, **given)
    except duckdb.Error as error:
        raise SourceError(f"the duckdb connection cannot be used: {first_line(error)}") from error


def query_of_view(statement: str) -> str:
    """Return the query of a CREATE VIEW as DuckDB writes it.

    >>> query_of_view('CREATE VIEW "as" (a) AS SELECT 1 AS x;')
    'SELECT 1 AS x'
    """
    bare = re.sub(r'"(?:[^"]|"")*"', lambda name: "_" * len(name[0]), statement)
    found = re.search(r"\bAS\s", bare, re.IGNORECASE)
    return statement[found.end() :].strip().removesuffix(";") if found is not None else statement


def load_table(connection: duckdb.DuckDBPyConnection, place: tuple[str, ...], table: Any) -> int:
    """Make the table at `place` from Arrow data; a column of string dictionaries becomes an ENUM. Return its rows."""
    import pyarrow as pa

    try:
        connection.register("loaded", table)
        texts = (pa.string(), pa.large_string(), pa.string_view())
        columns = [
            _enum_cast(field.name, table.column(field.name))
            if pa.types.is_dictionary(field.type) and field.type.value_type in texts
            else quote(field.name)
            for field in table.schema
        ]
        made = connection.execute(f"CREATE TABLE {quote(*place)} AS SELECT {', '.join(columns)} FROM loaded")
        return int(made.fetchall()[0][0])
    except duckdb.Error as error:
        raise SourceError(f"cannot load the table {place[-1]!r}: {first_line(error)}") from error
    finally:
        with suppress(duckdb.Error):  # of a transaction that failed
            connection.unregister("loaded")


def _enum_cast(name: str, column: Any) -> str:
    values = dict.fromkeys(v for v in column.unify_dictionaries().chunk(0).dictionary.to_pylist() if v is not None)
    if not values:
        return quote(name)
    listed = ", ".join(map(string_literal, values))
    return f"CAST({quote(name)} AS ENUM({listed})) AS {quote(name)}"
