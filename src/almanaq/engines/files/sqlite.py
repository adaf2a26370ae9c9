"""SQLite files as a database, loaded into DuckDB's memory with their cells typed and their JSON documents opened."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from almanaq.corpus.files.listing import total_bytes
from almanaq.corpus.files.reader import clean_header
from almanaq.corpus.files.records import RecordTable, open_records
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
from almanaq.engines.common import RelationQueries
from almanaq.engines.duckdb.engine import DuckDBDatabase, Loaded, load_table
from almanaq.engines.files.columns import SQL_TYPES, type_column, value_column
from almanaq.engines.files.table_cache import DATABASE, CacheEntry, TableCache, open_loaded, sqlite_fingerprint
from almanaq.errors import SourceError
from almanaq.suql.catalog.reading import relation_names
from almanaq.suql.catalog.relations import Relation
from almanaq.suql.catalog.schema_file import ForeignKey, RelationSchema, Schema
from almanaq.text.sql_literals import quote

# --- documents: columns of JSON objects become columns, and lists of objects tables -----------------------------------

_LOOKED_AT = 20


def open_documents(
    connection: duckdb.DuckDBPyConnection, place: tuple[str, str, str], key: str
) -> dict[str, RelationSchema]:
    """Open up the columns of a loaded table whose every value is a JSON object; give the tables that this makes.

    Args:
        key: the column by which the new tables refer to the table; "" where it has none, and a number is given.
    """
    made: dict[str, RelationSchema] = {}
    for name in _document_columns(connection, place):
        table: Any = connection.sql(f"SELECT * FROM {quote(*place)}").to_arrow_table()
        texts = table.column(name).to_pylist()
        keys = table.column(key).to_pylist() if key else texts
        rows = [
            {**({key: own} if key else {}), **(json.loads(text) if text else {})}
            for own, text in zip(keys, texts, strict=True)
        ]
        first, *children = open_records(rows, place[2], key=key)
        connection.execute(f"DROP TABLE {quote(*place)}")
        load_table(connection, place, _widened(table, name, first, key))
        called = {place[2]: place[2]}
        for child in children:
            called[child.name] = _free(connection, place, child.name)
            load_table(connection, (*place[:2], called[child.name]), _as_table(child))
            own, parent, theirs = child.parent or ("", place[2], "")
            made[called[child.name]] = RelationSchema(foreign_keys=(((own,), called[parent], (theirs,)),))
        key = key or first.key
    return made


def _free(connection: duckdb.DuckDBPyConnection, place: tuple[str, str, str], name: str) -> str:
    """Return a name that no table beside has."""
    query = "SELECT lower(table_name) FROM duckdb_tables() WHERE database_name = ? AND schema_name = ?"
    taken = {found for (found,) in connection.execute(query, list(place[:2])).fetchall()}
    number, candidate = 2, name
    while candidate.lower() in taken:
        candidate, number = f"{name}_{number}", number + 1
    return candidate


def _document_columns(connection: duckdb.DuckDBPyConnection, place: tuple[str, str, str]) -> list[str]:
    """Return the columns of text that hold JSON objects and nothing else."""
    described = connection.execute(f"DESCRIBE {quote(*place)}").fetchall()
    found = []
    for name in (row[0] for row in described if row[1] == "VARCHAR"):
        column = quote(name)
        begins = f"SELECT {column} AS c FROM {quote(*place)} WHERE {column} IS NOT NULL LIMIT {_LOOKED_AT}"
        ((some, like),) = connection.execute(
            f"SELECT count(*), count(*) FILTER (ltrim(c) LIKE '{{%') FROM ({begins})"
        ).fetchall()
        if some and some == like:
            ((strange,),) = connection.execute(
                f"SELECT count(*) FROM {quote(*place)} WHERE {column} IS NOT NULL AND"
                f" CASE WHEN json_valid({column}) THEN json_type({column}) <> 'OBJECT' ELSE true END"
            ).fetchall()
            found += [] if strange else [name]
    return found


def _widened(table: Any, name: str, opened: RecordTable, key: str) -> pa.Table:
    """Return a table with the columns that its documents hold in the place of the documents."""
    taken = {each.casefold() for each in table.column_names if each != name}
    columns: dict[str, Any] = {}
    for each in table.column_names:
        if each != name:
            columns[each] = table.column(each)
            continue
        for inner, values in opened.columns.items():
            if inner != key:
                called = inner if inner.casefold() not in taken else f"{name}_{inner}"
                columns[called] = value_column(called, values)[0]
    return pa.table(columns)


def _as_table(opened: RecordTable) -> pa.Table:
    return pa.table({name: value_column(name, values)[0] for name, values in opened.columns.items()})


# --- SQLite files -----------------------------------------------------------------------------------------------------

_BATCH_ROWS = 20_000
_TABLES_OF = f"SELECT table_name FROM duckdb_tables() WHERE database_name = '{DATABASE}' AND schema_name = ?"
_HIDDEN = 1
"""What SQLite's table_xinfo says of a column that belongs to how a virtual table works."""
_MOMENTS = ("date", "timestamp", "time")


def open_sqlite(
    path: Path, *, schema: Schema | None = None, seconds: float | None = None, cache: TableCache | None = None
) -> DuckDBDatabase:
    """Load a SQLite file into an in-memory database, with its primary and foreign keys.

    SQLite types cells, not columns: a column of integers, of reals, of text or of blobs has that type; text declared
    DATE, DATETIME or TIME is read so; where numbers and text are mixed, the column is a number when 95 % of its cells
    are (the others NULL, counted in the report), else text.

    Args:
        seconds: how long the views may take together; what is not read then is left out. None takes VIEW_SECONDS.
        cache: where the tables are cached for the next time; None: nowhere.
    """
    return _open_sqlites({"data": path}, path.name, schema, ViewTime(seconds), cache)


def open_sqlite_folder(
    folder: Path, *, schema: Schema | None = None, seconds: float | None = None, cache: TableCache | None = None
) -> DuckDBDatabase:
    """Load the SQLite files of a folder and of its sub-folders, each into a schema named after the file.

    A table whose name another file has, too, is called `file.table`. Files without a table are left out. `seconds`
    and `cache` are as for one file.

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
    return _open_sqlites(files, folder.resolve().name, schema, ViewTime(seconds), cache)


def _open_sqlites(
    files: Mapping[str, Path], name: str, schema: Schema | None, views: ViewTime, cache: TableCache | None
) -> DuckDBDatabase:
    def load(connection: duckdb.DuckDBPyConnection) -> Loaded:
        return _load_all(connection, files, name, views)

    worth = cache is not None and total_bytes(list(files.values())) >= cache.LEAST_BYTES
    key = sqlite_fingerprint(files) if worth else ""
    return open_loaded(load, name=name, schema=schema, entry=CacheEntry(cache, key))


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
        connection.begin()  # one transaction for all tables: each by itself takes as long as reading a small one
        try:
            reports = [_load_sqlite(connection, sqlite, path, (place, table), views) for table in names]
        except BaseException:
            connection.rollback()
            raise
        connection.commit()
        read.reports += reports
        empty = {report.table for report in reports if not report.rows}
        loaded = {name for (name,) in connection.execute(_TABLES_OF, [place]).fetchall()}
        tables = [table for table in names if table in loaded]
        for table in tables:
            declared = _sqlite_declared(connection, sqlite, (place, table), tables, check=table not in empty)
            read.declared[place, table] = declared
            if table in empty:
                continue
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
    connection: duckdb.DuckDBPyConnection,
    sqlite: sqlite3.Connection,
    at: tuple[str, str],
    tables: list[str],
    *,
    check: bool,
) -> RelationSchema:
    """Return the primary key and the foreign keys that lead somewhere.

    Args:
        check: whether the rows must keep the key, as SQLite lets it be null.
    """
    database, table = at
    key, references = sqlite_keys(sqlite, table)
    loaded = Relation(table, (DATABASE, database, table), ())
    if (
        key
        and check
        and not RelationQueries(lambda sql: connection.execute(sql).fetchall(), "duckdb").key_holds(loaded, key)
    ):
        key = ()
    known = {name.casefold(): name for name in tables}
    foreign: list[ForeignKey] = []
    for own, other, column in references:
        target = known.get(other.casefold())
        theirs = (column,) if column else (sqlite_keys(sqlite, target)[0] if target else ())
        if target is not None and len(theirs) == 1:
            foreign.append(((own,), target, theirs))
    return RelationSchema(key=key, foreign_keys=tuple(foreign))
