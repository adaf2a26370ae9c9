"""SQLite files as a database, loaded into DuckDB's memory with their cells typed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from almanaq.corpus.files.kinds import total_bytes
from almanaq.corpus.inference import ColumnReport, LoadReport
from almanaq.corpus.read_cancellation import current_read, raise_if_cancelled
from almanaq.corpus.sqlite import (
    ViewTime,
    connect_sqlite,
    not_read,
    sqlite_files,
    sqlite_keys,
    sqlite_tables,
    sqlite_views,
    unreadable_views,
)
from almanaq.corpus.tabular import clean_header
from almanaq.errors import SourceError
from almanaq.suql.catalog.reading import relation_names
from almanaq.suql.catalog.schema_file import ForeignKey, RelationSchema, Schema
from almanaq.suql.databases.documents import open_documents
from almanaq.suql.databases.duckdb import DuckDBDatabase, Loaded, load_table
from almanaq.suql.databases.kept import KeptTables, sqlite_fingerprint
from almanaq.suql.databases.loading import DATABASE, Keeping, open_loaded
from almanaq.suql.databases.typed_columns import SQL_TYPES, type_column
from almanaq.text.sql_literals import quote

_BATCH_ROWS = 20_000
_TABLES_OF = f"SELECT table_name FROM duckdb_tables() WHERE database_name = '{DATABASE}' AND schema_name = ?"
_HIDDEN = 1
"""What SQLite's table_xinfo says of a column that belongs to how a virtual table works."""
_MOMENTS = ("date", "timestamp", "time")


def open_sqlite(
    path: Path, *, schema: Schema | None = None, seconds: float | None = None, kept: KeptTables | None = None
) -> DuckDBDatabase:
    """Load a SQLite file into an in-memory database, with its primary and foreign keys.

    SQLite types cells, not columns: a column of integers, of reals, of text or of blobs has that type; text declared
    DATE, DATETIME or TIME is read so; where numbers and text are mixed, the column is a number when 95 % of its cells
    are (the others NULL, counted in the report), else text.

    Args:
        seconds: how long the views may take together; what is not read then is left out. None takes VIEW_SECONDS.
        kept: where the tables are kept for the next time; None: nowhere.
    """
    return _open_sqlites({"data": path}, path.name, schema, ViewTime(seconds), kept)


def open_sqlite_folder(
    folder: Path, *, schema: Schema | None = None, seconds: float | None = None, kept: KeptTables | None = None
) -> DuckDBDatabase:
    """Load the SQLite files of a folder and of its sub-folders, each into a schema named after the file.

    A table whose name another file has, too, is called `file.table`. Files without a table are left out. `seconds`
    and `kept` are as for one file.

    Raises:
        SourceError: no file holds a table, two files have one name, or a file is at fault.
    """
    files: dict[str, Path] = {}
    for path in sqlite_files(folder):
        if path.stem in files:
            raise SourceError(
                f"{str(path)!r} and {str(files[path.stem])!r} would both be the database {path.stem!r}; rename one"
            )
        files[path.stem] = path
    return _open_sqlites(files, folder.resolve().name, schema, ViewTime(seconds), kept)


def _open_sqlites(
    files: Mapping[str, Path], name: str, schema: Schema | None, views: ViewTime, kept: KeptTables | None
) -> DuckDBDatabase:
    def load(connection: duckdb.DuckDBPyConnection) -> Loaded:
        return _load_all(connection, files, name, views)

    worth = kept is not None and total_bytes(list(files.values())) >= kept.LEAST_BYTES
    key = sqlite_fingerprint(files) if worth else ""
    return open_loaded(load, name=name, schema=schema, keeping=Keeping(kept, key))


def _load_all(connection: duckdb.DuckDBPyConnection, files: Mapping[str, Path], name: str, views: ViewTime) -> Loaded:
    read = SQLiteTables()
    for place, path in files.items():
        load_sqlite(connection, place, path, views, read)
    if not read.declared:
        raise SourceError(f"{name} holds no table")
    called = relation_names(list(read.declared))
    named = {called[at]: _renamed(entry, at[0], called) for at, entry in read.declared.items()}
    return Loaded(tuple(read.reports), Schema(named, name), separate=len(files) > 1, lasting=not views.over)


@dataclass(slots=True)
class SQLiteTables:
    """What was loaded of SQLite files.

    Attributes:
        declared: by the schema and name of a table, its keys.
    """

    reports: list[LoadReport] = field(default_factory=list)
    declared: dict[tuple[str, str], RelationSchema] = field(default_factory=dict)


def load_sqlite(
    connection: duckdb.DuckDBPyConnection, place: str, path: Path, views: ViewTime, read: SQLiteTables
) -> None:
    """Load the tables and views of a SQLite file into the schema `place`, which is made, and add them to `read`.

    Raises:
        SourceError: it is no SQLite file, or a table of it cannot be read.
    """
    names, unread = _sqlite_names(path)
    read.reports += unread
    connection.execute(f"CREATE SCHEMA IF NOT EXISTS {DATABASE}.{quote(place)}")
    with connect_sqlite(path) as sqlite, current_read().interrupting(sqlite.interrupt):
        read.reports += [_load_sqlite(connection, sqlite, path, (place, table), views) for table in names]
        loaded = {name for (name,) in connection.execute(_TABLES_OF, [place]).fetchall()}
        tables = [table for table in names if table in loaded]
        for table in tables:
            declared = _sqlite_declared(connection, sqlite, (place, table), tables)
            read.declared[place, table] = declared
            key = declared.key[0] if len(declared.key) == 1 else ""
            opened = open_documents(connection, (DATABASE, place, table), key)
            read.declared |= {(place, child): entry for child, entry in opened.items()}


def _renamed(entry: RelationSchema, place: str, called: Mapping[tuple[str, str], str]) -> RelationSchema:
    """Return what is declared of a table with the names that queries use for the tables it refers to."""
    return replace(
        entry, foreign_keys=tuple((own, called[place, to], theirs) for own, to, theirs in entry.foreign_keys)
    )


def _load_sqlite(
    connection: duckdb.DuckDBPyConnection, sqlite: sqlite3.Connection, path: Path, at: tuple[str, str], views: ViewTime
) -> LoadReport:
    """Load a table; a view that takes longer than views may is left out, as its report says."""
    place, table = at
    is_view = table in sqlite_views(sqlite)
    try:
        with views.bound(sqlite) if is_view else nullcontext():
            rows, report = _sqlite_table(sqlite, path, table)
            load_table(connection, (DATABASE, place, table), rows)
    except SourceError:
        if not (is_view and views.over):
            raise
        return LoadReport(table, 0, (), (f"{path.name}: {not_read(table, views)}",))
    return report


def _sqlite_names(path: Path) -> tuple[list[str], list[LoadReport]]:
    """Return the tables and views of a file, and a report for each view that is left out since it cannot be read."""
    with connect_sqlite(path) as sqlite:
        broken = unreadable_views(sqlite)
        names = [name for name in sqlite_tables(sqlite) if name not in broken]
    warnings = [f"the view {name!r} of {path.name} is left out: {why}" for name, why in broken.items()]
    return names, [LoadReport(name, 0, (), (message,)) for name, message in zip(broken, warnings, strict=True)]


def _sqlite_table(sqlite: sqlite3.Connection, path: Path, name: str) -> tuple[Any, LoadReport]:
    """Return a table as Arrow: as a stream of its rows where no column has to be seen whole to be typed."""
    try:
        # Generated columns are among these; the hidden ones of virtual tables are not.
        described = [row for row in sqlite.execute(f"PRAGMA table_xinfo({quote(name)})") if row[6] != _HIDDEN]
        names = [row[1] for row in described]
        total, stored = _stored_types(sqlite, name, names)
        arrow = [_sqlite_type(types, row[2].upper()) for row, types in zip(described, stored, strict=True)]
        header = clean_header(names, name)
        schema = pa.schema(list(zip(header.names, arrow, strict=True)))
        texts = [pa.types.is_large_string(type_) for type_ in arrow]
        cursor = sqlite.execute(f"SELECT {', '.join(map(quote, names))} FROM {quote(name)}")
        rows = ([_as_text(v) if text else v for v, text in zip(row, texts, strict=True)] for row in cursor)
        batches = (_batch(chunk, schema) for chunk in _chunks(rows))
        typed = [_is_typed_by_cells(types, row[2].upper()) for row, types in zip(described, stored, strict=True)]
        if not any(typed):
            columns = tuple(map(_as_stored, schema, stored))
            streamed = pa.RecordBatchReader.from_batches(schema, batches)
            return streamed, LoadReport(name, total, columns, header.warnings)
        table = pa.Table.from_batches(list(batches), schema)
    except sqlite3.DatabaseError as error:
        raise SourceError(f"{path.name}: cannot read {name!r} ({error})") from error
    read = [
        _sqlite_typed(table.column(field.name), field, types, by_cells=by_cells)
        for field, types, by_cells in zip(schema, stored, typed, strict=True)
    ]
    found = pa.table([column for column, _ in read], names=list(header.names))
    return found, LoadReport(name, total, tuple(report for _, report in read), header.warnings)


def _chunks(rows: Iterable[Any]) -> Iterator[list[Any]]:
    iterator = iter(rows)
    while chunk := list(islice(iterator, _BATCH_ROWS)):
        raise_if_cancelled()
        yield chunk


def _batch(rows: list[Any], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    return pa.record_batch(
        [pa.array(list(c), field.type) for c, field in zip(columns, schema, strict=True)], schema=schema
    )


def _stored_types(sqlite: sqlite3.Connection, table: str, columns: list[str]) -> tuple[int, list[dict[str, int]]]:
    """Return the number of rows and, for each column, how many cells of each storage class it holds."""
    kinds = ("integer", "real", "text", "blob")
    sums = [f"coalesce(sum(typeof({quote(c)}) = '{kind}'), 0)" for c in columns for kind in kinds]
    counts = iter(sqlite.execute(f"SELECT {', '.join(['count(*)', *sums])} FROM {quote(table)}").fetchone())
    return int(next(counts)), [{kind: count for kind in kinds if (count := next(counts))} for _ in columns]


def _sqlite_type(stored: dict[str, int], declared: str) -> pa.DataType:
    """Return the Arrow type that holds every cell of a column; of an empty one, that of its declaration."""
    if not stored:
        if "INT" in declared:
            return pa.int64()
        return pa.float64() if any(d in declared for d in ("REAL", "FLOA", "DOUB", "NUM", "DEC")) else pa.large_string()
    if set(stored) == {"integer"}:
        return pa.int64()
    if set(stored) == {"blob"}:
        return pa.large_binary()
    return pa.float64() if set(stored) <= {"integer", "real"} else pa.large_string()


def _is_typed_by_cells(stored: dict[str, int], declared: str) -> bool:
    """Tell whether a column's type depends on what its cells say: they are mixed, or text declared a date or time."""
    moment = set(stored) == {"text"} and ("DATE" in declared or "TIME" in declared)
    mixed = len(stored) > 1 and not set(stored) <= {"integer", "real"}
    return mixed or moment


def _sqlite_typed(column: Any, field: pa.Field, stored: dict[str, int], *, by_cells: bool) -> tuple[Any, ColumnReport]:
    """Type a column by its cells, where it has to be; text that is declared a date and is none stays text."""
    if by_cells:
        typed, report = type_column(field.name, column)
        if len(stored) > 1 or report.type in _MOMENTS:
            return typed, report
    return column, _as_stored(field, stored)


def _as_stored(field: pa.Field, stored: dict[str, int]) -> ColumnReport:
    written = "bytea" if pa.types.is_large_binary(field.type) else SQL_TYPES.get(field.type, "text")
    return ColumnReport(field.name, written, sum(stored.values()))


def _as_text(value: Any) -> str | None:
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    return None if value is None else str(value)


def _sqlite_declared(
    connection: duckdb.DuckDBPyConnection, sqlite: sqlite3.Connection, at: tuple[str, str], tables: list[str]
) -> RelationSchema:
    """Return the primary key, if the rows keep it (SQLite lets it be null), and the foreign keys
    that lead somewhere.
    """
    database, table = at
    key, references = sqlite_keys(sqlite, table)
    place = f"{DATABASE}.{quote(database)}.{quote(table)}"
    if key:
        names = ", ".join(map(quote, key))
        null = " OR ".join(f"{quote(name)} IS NULL" for name in key)
        faults = (
            f"SELECT 1 FROM {place} WHERE {null} UNION ALL SELECT 1 FROM {place} GROUP BY {names} HAVING count(*) > 1"
        )
        key = () if connection.execute(f"{faults} LIMIT 1").fetchone() else key
    known = {name.casefold(): name for name in tables}
    foreign: list[ForeignKey] = []
    for own, other, column in references:
        target = known.get(other.casefold())
        theirs = (column,) if column else (sqlite_keys(sqlite, target)[0] if target else ())
        if target is not None and len(theirs) == 1:
            foreign.append(((own,), target, theirs))
    return RelationSchema(key=key, foreign_keys=tuple(foreign))
