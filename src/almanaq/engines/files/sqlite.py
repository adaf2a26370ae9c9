"""SQLite files, loaded into DuckDB's memory with their cells typed and their JSON documents opened."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from almanaq.corpus.files.records import RecordTable, open_records
from almanaq.corpus.files.shape import clean_header
from almanaq.corpus.inference import ColumnReport, LoadReport
from almanaq.corpus.read_cancellation import current_read, raise_if_cancelled
from almanaq.corpus.sqlite import (
    ViewTime,
    connect_sqlite,
    not_read,
    sqlite_keys,
    sqlite_tables,
    sqlite_views,
    unreadable_views,
)
from almanaq.engines.common import RelationQueries
from almanaq.engines.duckdb.engine import load_table
from almanaq.engines.files.columns import SQL_TYPES, type_column, value_column
from almanaq.engines.files.table_cache import DATABASE
from almanaq.errors import SourceError
from almanaq.suql.catalog.relations import Relation
from almanaq.suql.catalog.schema_file import ForeignKey, RelationSchema
from almanaq.text.sql_literals import quote

# --- documents: columns of JSON objects become columns, and lists of objects tables -----------------------------------

_LOOKED_AT = 20


def open_documents(
    connection: duckdb.DuckDBPyConnection, place: tuple[str, str, str], key: str
) -> dict[str, tuple[RelationSchema, int]]:
    """Open up the columns of a loaded table whose every value is a JSON object; give the tables that this makes.

    Each comes with its keys and its number of rows.

    Args:
        key: the column by which the new tables refer to the table; "" where it has none, and a number is given.
    """
    made: dict[str, tuple[RelationSchema, int]] = {}
    for name in _document_columns(connection, place):
        table: Any = connection.sql(f"SELECT * FROM {quote(*place)}").to_arrow_table()
        texts = table.column(name).to_pylist()
        keys = table.column(key).to_pylist() if key else texts
        objects = [
            {**({key: own} if key else {}), **(json.loads(text) if text else {})}
            for own, text in zip(keys, texts, strict=True)
        ]
        first, *children = open_records(objects, place[2], key=key)
        connection.execute(f"DROP TABLE {quote(*place)}")
        load_table(connection, place, _widened(table, name, first, key))
        called = {place[2]: place[2]}
        for child in children:
            called[child.name] = _free(connection, place, child.name)
            rows = load_table(connection, (*place[:2], called[child.name]), _as_table(child))
            own, parent, theirs = child.parent or ("", place[2], "")
            made[called[child.name]] = RelationSchema(foreign_keys=(((own,), called[parent], (theirs,)),)), rows
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
_HIDDEN = 1
"""What SQLite's table_xinfo says of a column that belongs to how a virtual table works."""
_MOMENTS = ("date", "timestamp", "time")
_EMPTY = {"bytea": "BLOB"}


@dataclass(slots=True)
class SQLiteTables:
    """What was loaded of a SQLite file.

    Attributes:
        reports: how each table was read, by its name.
        declared: the keys of each.
        left_out: why views are missing.
    """

    reports: dict[str, LoadReport] = field(default_factory=dict)
    declared: dict[str, RelationSchema] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)


def load_sqlite(connection: duckdb.DuckDBPyConnection, place: str, path: Path, views: ViewTime) -> SQLiteTables:
    """Load the tables and views of a SQLite file into the schema `place`, which is made.

    SQLite types cells, not columns: a column of integers, of reals, of text or of blobs has that type; text declared
    DATE, DATETIME or TIME is read so; where numbers and text are mixed, the column is a number when 95 % of its cells
    are (the others NULL, counted in the report), else text.

    Raises:
        SourceError: it is no SQLite file, or a table of it cannot be read.
    """
    read = SQLiteTables()
    connection.execute(f"CREATE SCHEMA IF NOT EXISTS {DATABASE}.{quote(place)}")
    with connect_sqlite(path) as sqlite, current_read().interrupting(sqlite.interrupt):
        broken, slow = unreadable_views(sqlite), sqlite_views(sqlite)
        read.left_out += [f"the view {name!r} of {path.name} is left out: {why}" for name, why in broken.items()]
        connection.begin()  # one transaction for all tables: each by itself takes as long as reading a small one
        try:
            for table in sqlite_tables(sqlite):
                if table in broken:
                    continue
                try:
                    with views.bound(sqlite) if table in slow else nullcontext():
                        read.reports[table] = _load_table(connection, sqlite, path, (DATABASE, place, table))
                except SourceError:
                    if table not in slow or not views.over:
                        raise
                    read.left_out.append(f"{path.name}: {not_read(table, views)}")
        except BaseException:
            connection.rollback()
            raise
        connection.commit()
        known = {name.casefold(): name for name in read.reports}
        for table, report in list(read.reports.items()):
            declared = _sqlite_declared(connection, sqlite, (place, table), known, check=report.rows > 0)
            read.declared[table] = declared
            if report.rows:
                key = declared.key[0] if len(declared.key) == 1 else ""
                for child, (entry, rows) in open_documents(connection, (DATABASE, place, table), key).items():
                    read.declared[child], read.reports[child] = entry, LoadReport(child, rows, ())
    return read


def _load_table(
    connection: duckdb.DuckDBPyConnection, sqlite: sqlite3.Connection, path: Path, place: tuple[str, str, str]
) -> LoadReport:
    rows, report = _sqlite_table(sqlite, path, place[2])
    if report.rows:
        load_table(connection, place, rows)
    else:  # in a tenth of the time
        columns = (f"{quote(each.name)} {_EMPTY.get(each.type, each.type)}" for each in report.columns)
        connection.execute(f"CREATE TABLE {quote(*place)} ({', '.join(columns)})")
    return report


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
    known: Mapping[str, str],
    *,
    check: bool,
) -> RelationSchema:
    """Return the primary key and the foreign keys that lead somewhere.

    Args:
        known: the names of the tables that were loaded, by their folded names.
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
    foreign: list[ForeignKey] = []
    for own, other, column in references:
        target = known.get(other.casefold())
        theirs = (column,) if column else (sqlite_keys(sqlite, target)[0] if target else ())
        if target is not None and len(theirs) == 1:
            foreign.append(((own,), target, theirs))
    return RelationSchema(key=key, foreign_keys=tuple(foreign))
