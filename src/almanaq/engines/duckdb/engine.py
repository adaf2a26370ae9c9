"""DuckDB, the embedded engine: DuckDB files, and tables loaded into its memory; what a database holds."""

from __future__ import annotations

import re
import threading
import uuid
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import duckdb

from almanaq.corpus.inference import LoadReport
from almanaq.engines import interruption
from almanaq.engines.common import RelationQueries
from almanaq.engines.duckdb.frames import as_arrow
from almanaq.engines.duckdb.language import DuckDBLanguage
from almanaq.engines.duckdb.session import DuckDBSession, open_instance
from almanaq.errors import SourceError, UsageError, first_line
from almanaq.suql.catalog.reading import (
    ENUM_VALUES,
    SAMPLE_ROWS,
    ColumnSample,
    declared_column,
    flatten,
    holds_value,
    infer_kind,
    relation_names,
    shown_samples,
)
from almanaq.suql.catalog.relations import Catalog, Column, ColumnKind, Relation
from almanaq.suql.catalog.schema_file import Schema, apply_schema
from almanaq.text.sql_literals import quote, string_literal

Place = tuple[str, str]
"""A schema and a table."""
_SAMPLE_CHARACTERS = 400
_LOOK_SECONDS = 2.0
"""The longest that a view is waited for when the catalog takes samples."""
_SPELLED_ALIKE = ("bigint", "integer", "smallint", "double precision")
"""Types whose values Python writes as DuckDB does."""
_READS_A_FILE = "it reads a file, which no query may do here; keep its rows in a table (CREATE TABLE … AS SELECT)"
_PG_TYPES = {
    "tinyint": "smallint",
    "utinyint": "smallint",
    "usmallint": "integer",
    "uinteger": "bigint",
    "ubigint": "numeric(20,0)",
    "hugeint": "numeric(38,0)",
    "uhugeint": "numeric(39,0)",
    "float": "real",
    "double": "double precision",
    "varchar": "text",
    "blob": "bytea",
    "timestamp_s": "timestamp",
    "timestamp_ms": "timestamp",
    "timestamp_ns": "timestamp",
}


@dataclass(frozen=True, slots=True)
class CatalogReader:
    """Reads the catalog of one attached database.

    Attributes:
        connection: a connection of the reader's own.
        infer_enums: whether columns of text may be found to be ENUM: only where the source declares no types (CSV).
        typed: (schema, name) of tables among them whose types are declared all the same (Parquet).
        made: rows by (schema, name) of every relation, where we made them all as plain tables; None: DuckDB is asked.
    """

    connection: duckdb.DuckDBPyConnection
    database: str
    infer_enums: bool = False
    typed: frozenset[tuple[str, str]] = frozenset()
    made: Mapping[tuple[str, str], int] | None = None

    def read(self) -> Catalog:
        if self.made is None:
            places = self._rows(
                "SELECT schema_name, table_name, comment, true FROM duckdb_tables()"
                " WHERE database_name = $1 AND NOT internal UNION ALL SELECT schema_name, view_name, comment, false"
                " FROM duckdb_views() WHERE database_name = $1 AND NOT internal ORDER BY ALL",
                self.database,
            )
        else:
            places = [(*place, None, True) for place in sorted(self.made)]
        names = relation_names([(schema, table) for schema, table, _, _ in places], ["main"])
        constraints, comments = self._read_declarations()
        relations: list[Relation] = []
        broken: list[tuple[str, str]] = []
        for schema, table, comment, is_table in places:
            try:
                place = (self.database, schema, table)
                described = self.connection.execute(f"SELECT * FROM {quote(*place)} LIMIT 0").description or []
                columns = tuple(_column(name, kind, comments[schema, table].get(name)) for name, kind, *_ in described)
                relation = Relation(names[schema, table], place, columns, description=comment or "")
                declared = constraints[schema, table]
                relations.append(self._read_rows(relation, names, declared) if is_table else relation)
            except duckdb.Error as error:
                if is_table:
                    raise
                outside = isinstance(error, duckdb.PermissionException)
                broken.append((f"{schema}.{table}", _READS_A_FILE if outside else first_line(error)))
        has_prose = any(c.kind is ColumnKind.FREE_TEXT for r in relations for c in r.columns)
        sampled = tuple(self._add_samples(relation, infer_prose=not has_prose) for relation in relations)
        return Catalog(sampled, broken=tuple(broken))

    @property
    def queries(self) -> RelationQueries:
        return RelationQueries(self._rows, "duckdb")

    def _rows(self, sql: str, *parameters: str) -> list[tuple[Any, ...]]:
        return self.connection.execute(sql, parameters).fetchall()

    def _read_declarations(self) -> tuple[dict[Place, list[tuple[Any, ...]]], dict[Place, dict[str, str]]]:
        """Return by place the constraints (kind, own columns, other table, its columns), and comments by column."""
        constraints: dict[Place, list[tuple[Any, ...]]] = defaultdict(list)
        comments: dict[Place, dict[str, str]] = defaultdict(dict)
        if self.made is not None:
            return constraints, comments
        for schema, table, *constraint in self._rows(
            "SELECT schema_name, table_name, constraint_type, constraint_column_names, referenced_table,"
            " referenced_column_names FROM duckdb_constraints() WHERE database_name = $1 ORDER BY constraint_index",
            self.database,
        ):
            constraints[schema, table].append(tuple(constraint))
        for schema, table, column, comment in self._rows(
            "SELECT schema_name, table_name, column_name, comment FROM duckdb_columns()"
            " WHERE database_name = $1 AND comment IS NOT NULL",
            self.database,
        ):
            comments[schema, table][column] = comment
        return constraints, comments

    def _read_rows(
        self, relation: Relation, names: Mapping[Place, str], constraints: list[tuple[Any, ...]]
    ) -> Relation:
        """Return a table with what tells of its rows: their number, keys and references."""
        location = relation.location
        if self.made is None:
            ((rows,),) = self._rows(f"SELECT count(*) FROM {quote(*location)}")
            numbered = self._is_numbered(location, int(rows))
        else:
            rows, numbered = self.made[location[1], location[2]], True  # made by loading alone
        foreign = tuple(
            (tuple(own), names.get((location[1], other), other), tuple(theirs))
            for kind, own, other, theirs in constraints
            if kind == "FOREIGN KEY"
        )
        key = self._key(relation, constraints)
        return replace(relation, row_id="rowid", numbered=numbered, rows=rows, key=key, foreign_keys=foreign)

    def _is_numbered(self, location: tuple[str, ...], rows: int) -> bool:
        """Tell whether row ids count the rows from 0: where some were deleted, ids go beyond their number."""
        try:
            return not self._rows(f"SELECT 1 FROM {quote(*location)} WHERE rowid >= {rows} LIMIT 1")
        except duckdb.Error:  # a table of another kind of database that is attached
            return False

    def _key(self, relation: Relation, constraints: list[tuple[Any, ...]]) -> tuple[str, ...]:
        """Return the primary key, else the first unique one that is never null (UNIQUE admits nulls)."""
        for kind in ("PRIMARY KEY", "UNIQUE"):
            for constraint in constraints:
                key = tuple(constraint[1])
                if constraint[0] == kind and (kind == "PRIMARY KEY" or self.queries.key_holds(relation, key)):
                    return key
        return ()

    def _add_samples(self, relation: Relation, *, infer_prose: bool) -> Relation:
        if relation.rows == 0:
            return relation
        picked = ", ".join(_sample_expression(column) for column in relation.columns)
        sql = f"SELECT {picked} FROM {quote(*relation.location)} LIMIT {SAMPLE_ROWS}"
        try:
            rows = self._rows(sql) if relation.row_id is not None else self._query_view(sql)
        except duckdb.Error as error:
            if relation.row_id is not None:
                raise
            rows, relation = [], replace(relation, unread=first_line(error))
        columns = []
        for position, column in enumerate(relation.columns):
            values: Iterable[str] = map(str, flatten(row[position] for row in rows))
            if column.type == "text" and column.kind is ColumnKind.STRUCTURED:
                values = tuple(values)
                # Where the first rows say nothing of the column, others may.
                if relation.row_id is not None and not any(map(holds_value, values)):
                    values = (*values, *self.queries.values(relation, column, ENUM_VALUES))
                distinct = None
                if self.infer_enums and relation.location[1:] not in self.typed and len(set(values)) <= ENUM_VALUES:
                    distinct = self.queries.values(relation, column, ENUM_VALUES + 1)
                total = (relation.rows or 0) if not column.array else len(values)
                inferred = infer_kind(column, ColumnSample(values, distinct, total))
                column = column if inferred.kind is ColumnKind.FREE_TEXT and not infer_prose else inferred
            columns.append(replace(column, samples=shown_samples(values)))
        return replace(relation, columns=tuple(columns))

    def _query_view(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows of a view, which may take any time to compute, or none at all to begin with."""
        timer = threading.Timer(_LOOK_SECONDS, self.connection.interrupt)
        timer.start()
        try:
            return self._rows(sql)
        finally:
            timer.cancel()
            timer.join()


def _column(name: str, duck_type: Any, comment: str | None) -> Column:
    array = duck_type.id in ("list", "array")
    element = duck_type.children[0][1] if array else duck_type
    values = tuple(element.children[0][1]) if element.id == "enum" else ()
    return declared_column(name, _pg_type(element), array=array, values=values, comment=comment or "")


def _pg_type(duck_type: Any) -> str:
    """Return the PostgreSQL name of a DuckDB type; nested types keep DuckDB's."""
    if duck_type.id == "enum":
        return "text"
    if duck_type.id == "decimal":
        (_, precision), (_, scale) = duck_type.children
        return f"numeric({precision},{scale})"
    if str(duck_type) == "JSON":
        return "json"
    if duck_type.id in ("list", "array"):
        return _pg_type(duck_type.children[0][1]) + "[]"
    name = str(duck_type.id)
    return _PG_TYPES.get(name, name)


def _sample_expression(column: Column) -> str:
    name = quote(column.name)
    if column.array and column.type == "text":
        return f"list_transform({name}[:20], lambda x: left(CAST(x AS VARCHAR), {_SAMPLE_CHARACTERS}))"
    if column.type in _SPELLED_ALIKE and not column.array:  # planning a cast of each of many columns takes long
        return name
    return f"left(CAST({name} AS VARCHAR), {_SAMPLE_CHARACTERS})" if column.type != "bytea" else "NULL"


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
        declared: the keys and units that the catalog cannot show.
        separate: whether each schema is a database of its own.
        typed: (schema, name) of the tables whose source declares types: no ENUM is inferred there.
        origins: by `"schema"."name"` of a table, the file that it was read from and how that is written.
        catalog: what the tables hold as it was read once, before a schema file is applied; None: to be read.
        lasting: whether reading it again would give the same; not where a part was left out for want of time.
        made: rows by (schema, name) of every relation, where all are tables made by loading alone; None: unknown.
    """

    reports: tuple[LoadReport, ...] = ()
    declared: Schema = field(default_factory=Schema)
    separate: bool = False
    typed: frozenset[tuple[str, str]] = frozenset()
    origins: Mapping[str, str] = field(default_factory=dict)
    catalog: Catalog | None = None
    lasting: bool = True
    made: Mapping[tuple[str, str], int] | None = None


class DuckDBDatabase:
    """A Database on DuckDB.

    Args:
        connection: holds the source; every session works on further connections to the same instance.
        database: the name under which DuckDB knows the source.
        schema: what a schema file says, applied over what the database says; its keys are checked.
        infer_enums: whether columns of text may be found to be ENUM (sources without declared types).
        owned: whether the instance is ours: its configuration is locked.
        settings: statements by which each further connection gets the settings of its owner's.
        on_close: called once, on `close` or when the process ends, with the catalog if it was read.
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
        return DuckDBLanguage(self._cursor, lambda: catalog, views, owned=self._owned)

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
            with suppress(duckdb.ResourceInUseException):  # by work that was left: it goes with the connection
                self._connection.execute(f"DETACH DATABASE IF EXISTS {quote(self._work)}")
        self._finish()
        interruption.close_or_detach(self._connection.close, duckdb.ResourceInUseException)

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        with self._lock:
            cursor = self._connection.cursor()
            if self._settings:
                cursor.execute(self._settings)
            return cursor

    def _read(self, reader: CatalogReader) -> Catalog:
        if not self._found:
            self._found.append(reader.read())
        catalog = reader.queries.complete(apply_schema(self._found[0], self._loaded.declared), self._schema)
        origins = self._loaded.origins
        relations = (replace(r, origin=origins.get(quote(*r.location[1:]), "")) for r in catalog.relations)
        return replace(catalog, relations=tuple(relations), separate=self._loaded.separate)


def _finish(on_close: Callable[[Catalog | None], None] | None, found: Sequence[Catalog]) -> None:
    if on_close is not None:
        on_close(found[0] if found else None)


def open_duckdb_file(path: Path, *, schema: Schema | None = None) -> DuckDBDatabase:
    connection = open_instance()
    try:
        connection.execute(f"ATTACH '{str(path).replace(chr(39), chr(39) * 2)}' AS src (READ_ONLY)")
    except duckdb.Error as error:
        connection.close()
        raise SourceError(f"cannot open {path.name} as a DuckDB database: {first_line(error)}") from error
    return DuckDBDatabase(connection, name=path.name, database="src", schema=schema)


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

    Every statement is a single SELECT, and temporary tables lie in a database in memory of their own. The connection's
    settings hold for queries too. DuckDB's functions that read files are refused by the compiler only. The user's
    temporary tables, registered frames and rows that are not committed belong to one connection, and are not seen.
    """
    # Fetched to its end: a connection with an unfinished result refuses its owner's next statement.
    ((database,),) = connection.execute("SELECT current_database()").fetchall()
    cursor = connection.cursor()
    read = "SELECT name, value FROM duckdb_settings() WHERE value IS NOT NULL"
    own, others = (dict(each.execute(read).fetchall()) for each in (connection, cursor))
    changed = {name: value for name, value in own.items() if others.get(name) != value and name not in _OF_ONE}
    settings = "; ".join(f"SET SESSION {quote(name)} = {string_literal(value)}" for name, value in changed.items())
    return DuckDBDatabase(cursor, name=database, database=database, schema=schema, owned=False, settings=settings)


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
        connection.unregister("loaded")


def _enum_cast(name: str, column: Any) -> str:
    values = dict.fromkeys(v for v in column.unify_dictionaries().chunk(0).dictionary.to_pylist() if v is not None)
    if not values:
        return quote(name)
    listed = ", ".join(map(string_literal, values))
    return f"CAST({quote(name)} AS ENUM({listed})) AS {quote(name)}"
