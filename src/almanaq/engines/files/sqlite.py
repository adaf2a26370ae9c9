"""SQLite files, loaded into DuckDB's memory with their cells typed and their JSON documents opened."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
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
    """Open up the columns of a loaded table whose every value is a JSON object.

    Gives the tables that this makes, each with its keys and its number of rows. They refer to the table by its `key`;
    where it has none (""), a number is given.
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
            rows = load_table(
                connection,
                (*place[:2], called[child.name]),
                pa.table({name: value_column(name, values)[0] for name, values in child.columns.items()}),
            )
            own, parent, theirs = child.parent or ("", place[2], "")
            made[called[child.name]] = RelationSchema(foreign_keys=(((own,), called[parent], (theirs,)),)), rows
        key = key or first.key
    return made


def _free(connection: duckdb.DuckDBPyConnection, place: tuple[str, str, str], name: str) -> str:
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


# --- SQLite files -----------------------------------------------------------------------------------------------------

_BATCH_ROWS = 20_000
_HIDDEN = 1
"""What SQLite's table_xinfo says of a column that belongs to how a virtual table works."""
_MOMENTS = ("date", "timestamp", "time")
_EMPTY = {"bytea": "BLOB"}


def load_sqlite(
    connection: duckdb.DuckDBPyConnection, place: str, path: Path, views: ViewTime
) -> tuple[dict[str, LoadReport], dict[str, RelationSchema], list[str]]:
    """Load the tables and views of a SQLite file into the schema `place`, which is made.

    Gives by name how each table was read and its keys, and why views are missing.

    SQLite types cells, not columns: a column of integers, of reals, of text or of blobs has that type; text declared
    DATE, DATETIME or TIME is read so; where numbers and text are mixed, the column is a number when 95 % of its cells
    are (the others NULL, counted in the report), else text.
    """
    reports: dict[str, LoadReport] = {}
    found: dict[str, RelationSchema] = {}
    connection.execute(f"CREATE SCHEMA IF NOT EXISTS {DATABASE}.{quote(place)}")
    with connect_sqlite(path) as sqlite, current_read().interrupting(sqlite.interrupt):
        broken, slow = unreadable_views(sqlite), sqlite_views(sqlite)
        left_out = [f"the view {name!r} of {path.name} is left out: {why}" for name, why in broken.items()]
        connection.begin()  # one transaction for all tables: each by itself takes as long as reading a small one
        try:
            for table in sqlite_tables(sqlite):
                if table in broken:
                    continue
                try:
                    with views.bound(sqlite) if table in slow else nullcontext():
                        reports[table] = _load_table(connection, sqlite, path, (DATABASE, place, table))
                except SourceError:
                    if table not in slow or not views.over:
                        raise
                    left_out.append(f"{path.name}: {not_read(table, views)}")
        except BaseException:
            connection.rollback()
            raise
        connection.commit()
        known = {name.casefold(): name for name in reports}
        for table, report in list(reports.items()):
            declared = _sqlite_declared(connection, sqlite, (place, table), known, check=report.rows > 0)
            found[table] = declared
            if report.rows:
                key = declared.key[0] if len(declared.key) == 1 else ""
                for child, (entry, rows) in open_documents(connection, (DATABASE, place, table), key).items():
                    found[child], reports[child] = entry, LoadReport(child, rows, ())
    return reports, found, left_out


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
        names, declared = [row[1] for row in described], [row[2].upper() for row in described]
        total, stored = _stored_types(sqlite, name, names)
        header = clean_header(names, name)
        schema = pa.schema(list(zip(header.names, map(_sqlite_type, stored, declared), strict=True)))
        batches = _batches(sqlite.execute(f"SELECT {', '.join(map(quote, names))} FROM {quote(name)}"), schema)
        by_cells = [
            _is_mixed(types) or (set(types) == {"text"} and ("DATE" in said or "TIME" in said))
            for types, said in zip(stored, declared, strict=True)
        ]
        as_stored = tuple(map(_as_stored, schema, stored))
        if not any(by_cells):
            streamed = pa.RecordBatchReader.from_batches(schema, batches)
            return streamed, LoadReport(name, total, as_stored, header.warnings)
        table = pa.Table.from_batches(list(batches), schema)
    except sqlite3.DatabaseError as error:
        raise SourceError(f"{path.name}: cannot read {name!r} ({error})") from error
    columns, reports = table.columns, list(as_stored)
    for i, column in enumerate(columns):
        if by_cells[i]:
            typed, report = type_column(header.names[i], column)
            if _is_mixed(stored[i]) or report.type in _MOMENTS:  # text declared a date that is none stays text
                columns[i], reports[i] = typed, report
    return pa.table(columns, names=list(header.names)), LoadReport(name, total, tuple(reports), header.warnings)


def _batches(rows: Iterable[tuple[Any, ...]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    texts = [pa.types.is_large_string(type_) for type_ in schema.types]
    iterator = iter(rows)
    while chunk := list(islice(iterator, _BATCH_ROWS)):
        raise_if_cancelled()
        columns = [
            pa.array(map(_as_text, values) if text else values, type_)
            for values, type_, text in zip(zip(*chunk, strict=True), schema.types, texts, strict=True)
        ]
        yield pa.record_batch(columns, schema=schema)


def _as_text(value: Any) -> str | None:
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    return None if value is None else str(value)


def _stored_types(sqlite: sqlite3.Connection, table: str, columns: list[str]) -> tuple[int, list[dict[str, int]]]:
    """Return the number of rows and, for each column, how many cells of each storage class it holds."""
    kinds = ("integer", "real", "text", "blob")
    sums = [f"coalesce(sum(typeof({quote(c)}) = '{kind}'), 0)" for c in columns for kind in kinds]
    counts = iter(sqlite.execute(f"SELECT {', '.join(['count(*)', *sums])} FROM {quote(table)}").fetchone())
    return int(next(counts)), [{kind: count for kind in kinds if (count := next(counts))} for _ in columns]


def _sqlite_type(stored: dict[str, int], declared: str) -> pa.DataType:
    """Return the Arrow type that holds every cell of a column; of an empty one, that of its declaration."""
    if stored.keys() == {"blob"}:
        return pa.large_binary()
    if stored.keys() == {"integer"} or (not stored and "INT" in declared):
        return pa.int64()
    numbers = any(kind in declared for kind in ("REAL", "FLOA", "DOUB", "NUM", "DEC"))
    return pa.float64() if (stored or numbers) and stored.keys() <= {"integer", "real"} else pa.large_string()


def _is_mixed(stored: dict[str, int]) -> bool:
    return len(stored) > 1 and not stored.keys() <= {"integer", "real"}


def _as_stored(field: pa.Field, stored: dict[str, int]) -> ColumnReport:
    written = "bytea" if pa.types.is_large_binary(field.type) else SQL_TYPES.get(field.type, "text")
    return ColumnReport(field.name, written, sum(stored.values()))


def _sqlite_declared(
    connection: duckdb.DuckDBPyConnection,
    sqlite: sqlite3.Connection,
    at: tuple[str, str],
    known: Mapping[str, str],
    *,
    check: bool,
) -> RelationSchema:
    """Return the primary key and the foreign keys that lead to one of the `known` tables, whose names are folded."""
    database, table = at
    key, references = sqlite_keys(sqlite, table)
    loaded = Relation(table, (DATABASE, database, table), ())
    queries = RelationQueries(lambda sql: connection.execute(sql).fetchall(), "duckdb")
    if key and check and not queries.key_holds(loaded, key):  # SQLite lets keys be null
        key = ()
    foreign: list[ForeignKey] = []
    for own, other, column in references:
        target = known.get(other.casefold())
        theirs = (column,) if column else (sqlite_keys(sqlite, target)[0] if target else ())
        if target is not None and len(theirs) == 1:
            foreign.append(((own,), target, theirs))
    return RelationSchema(key=key, foreign_keys=tuple(foreign))
