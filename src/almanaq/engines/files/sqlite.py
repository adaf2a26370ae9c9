"""SQLite files, loaded into DuckDB's memory with their cells typed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

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
from almanaq.engines.common import Derived, RelationQueries
from almanaq.engines.duckdb.engine import load_table, query_of_view
from almanaq.engines.files.columns import SQL_TYPES, type_column
from almanaq.engines.files.table_cache import DATABASE
from almanaq.errors import SourceError
from almanaq.suql.catalog.relations import Relation
from almanaq.suql.catalog.schema_file import ForeignKey, RelationSchema
from almanaq.text.sql_literals import quote

_BATCH_ROWS = 20_000
_HIDDEN, _GENERATED = 1, (2, 3)
"""What SQLite's table_xinfo says of a column that belongs to how a virtual table works, and of a generated one."""
_MOMENTS = ("date", "timestamp", "time")
_EMPTY = {"bytea": "BLOB"}


def load_sqlite(
    connection: duckdb.DuckDBPyConnection, place: str, path: Path, views: ViewTime
) -> tuple[dict[str, LoadReport], dict[str, RelationSchema], list[str], list[Derived]]:
    """Load the tables and views of a SQLite file into the schema `place`, which is made.

    Gives by name how each table was read and its keys, why views are missing, and what is made of other columns.

    SQLite types cells, not columns: a column of integers, of reals, of text or of blobs has that type; text declared
    DATE, DATETIME or TIME is read so; where numbers and text are mixed, the column is a number when 95 % of its cells
    are (the others NULL, counted in the report), else text.
    """
    reports: dict[str, LoadReport] = {}
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
                    left_out.append(f"{path.name}: {not_read(table, views.seconds)}")
        except BaseException:
            connection.rollback()
            raise
        connection.commit()
        known = {name.casefold(): name for name in reports}
        found = {
            table: _sqlite_declared(connection, sqlite, (place, table), known, check=report.rows > 0)
            for table, report in reports.items()
        }
        derived = _list_derived(sqlite, place)
    return reports, found, left_out, derived


def _list_derived(sqlite: sqlite3.Connection, place: str) -> list[Derived]:
    """Return the views, and the generated columns of tables: by their table's statement, they are made of all of it."""
    found: list[Derived] = []
    for kind, name, sql in sqlite.execute("SELECT type, name, sql FROM sqlite_master").fetchall():
        if kind == "view":
            found.append(((DATABASE, place, name), (), query_of_view(sql)))
        elif kind == "table":
            described = sqlite.execute(f"PRAGMA table_xinfo({quote(name)})")
            if generated := tuple(row[1] for row in described if row[6] in _GENERATED):
                found.append(((DATABASE, place, name), generated, sql))
    return found


def _load_table(
    connection: duckdb.DuckDBPyConnection, sqlite: sqlite3.Connection, path: Path, place: tuple[str, str, str]
) -> LoadReport:
    decode = sqlite.text_factory = _TextDecoder()
    rows, report = _sqlite_table(sqlite, path, place[2])
    if report.rows:
        load_table(connection, place, rows)
    else:  # in a tenth of the time
        columns = (f"{quote(each.name)} {_EMPTY.get(each.type, each.type)}" for each in report.columns)
        connection.execute(f"CREATE TABLE {quote(*place)} ({', '.join(columns)})")
    note = f"{path.name}: {decode.faults:,} cells of {place[2]!r} are not UTF-8, and their bytes are read as \ufffd"
    return replace(report, warnings=(*report.warnings, note)) if decode.faults else report


class _TextDecoder:
    """Reads bytes as UTF-8, and counts the cells that are not."""

    faults = 0

    def __call__(self, raw: bytes) -> str:
        text = raw.decode("utf-8", errors="replace")
        self.faults += "\ufffd" in text and text.encode("utf-8") != raw
        return text


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


def _batches(rows: sqlite3.Cursor, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    def as_text(value: Any) -> str | None:
        decoded = rows.connection.text_factory(value) if isinstance(value, bytes) else value
        return None if decoded is None else str(decoded)

    texts = [pa.types.is_large_string(type_) for type_ in schema.types]
    iterator = iter(rows)
    while chunk := list(islice(iterator, _BATCH_ROWS)):
        raise_if_cancelled()
        columns = [
            pa.array(map(as_text, values) if text else values, type_)
            for values, type_, text in zip(zip(*chunk, strict=True), schema.types, texts, strict=True)
        ]
        yield pa.record_batch(columns, schema=schema)


def _stored_types(sqlite: sqlite3.Connection, table: str, columns: list[str]) -> tuple[int, list[dict[str, int]]]:
    """Return the number of rows and, for each column, how many cells of each storage class it holds.

    Integers that no double holds, beside reals, count as "large": such a column is read by its cells.
    """
    kinds = ("integer", "real", "text", "blob")
    sums = [f"coalesce(sum(typeof({quote(c)}) = '{kind}'), 0)" for c in columns for kind in kinds]
    counts = iter(sqlite.execute(f"SELECT {', '.join(['count(*)', *sums])} FROM {quote(table)}").fetchone())
    total = int(next(counts))
    stored = [{kind: count for kind in kinds if (count := next(counts))} for _ in columns]
    for column, types in zip(map(quote, columns), stored, strict=True):
        if types.keys() >= {"integer", "real"}:
            large = f"typeof({column}) = 'integer' AND {column} NOT BETWEEN -{2**53} AND {2**53}"
            if sqlite.execute(f"SELECT 1 FROM {quote(table)} WHERE {large} LIMIT 1").fetchone():
                types["large"] = types.pop("integer")
    return total, stored


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
