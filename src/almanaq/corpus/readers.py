"""Corpora from files: the tables of a folder, a file of rows, or a SQLite or DuckDB file, streamed as text."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from almanaq.corpus.files.documents import read_documents
from almanaq.corpus.files.listing import (
    KNOWN,
    FetchedFolder,
    Format,
    FoundFile,
    Listing,
    find_named_files,
    find_path,
    kind_of,
    list_folder,
    list_paths,
    not_opened,
)
from almanaq.corpus.files.partitions import join_files
from almanaq.corpus.files.reader import Header, SheetTable, read_parts, read_rows, read_workbook
from almanaq.corpus.schema_places import refuse_private
from almanaq.corpus.sqlite import (
    SQLITE,
    VIEW_SECONDS,
    ViewTime,
    connect_sqlite,
    is_sqlite,
    not_read,
    sqlite_keys,
    sqlite_tables,
    sqlite_views,
)
from almanaq.corpus.table import Table, TableId
from almanaq.errors import MissingExtraError, SourceError, first_line
from almanaq.sample import load as load_sample
from almanaq.text.sql_literals import quote

DUCKDB = (".duckdb", ".ddb")
_SAMPLE = "sample:"
LARGE_BYTES, LARGE_ROWS = 64 << 20, 1000
"""Of a file that is larger, so many rows are searched: a table of any size must not fill the memory."""
_DuckDBKey = tuple[str, list[str], str | None, list[str]]


@dataclass(frozen=True, slots=True)
class SourceTables:
    """A Corpus: the ids of its tables, and how to read each; a table is read when the iteration reaches it.

    Attributes:
        held: the folder of files that were fetched.
        faults: what could not be read, in words for people; it grows as the iteration comes upon more.
    """

    ids: tuple[TableId, ...]
    read: Callable[[TableId], Table] = field(repr=False)
    faults: list[str] = field(default_factory=list, repr=False)
    held: FetchedFolder | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[Table]:
        """Yield the tables that can be read; raises SourceError where none can."""
        read = 0
        for table_id in self.ids:
            try:
                table = self.read(table_id)
            except (SourceError, MissingExtraError) as error:
                self._blame(f"{table_id} was left out: {error}")
                continue
            for warning in table.context.get("warnings", ()):  # type: ignore[attr-defined]
                self._blame(str(warning))
            read += 1
            yield table
        if self.ids and not read:
            raise SourceError("; ".join(self.faults))

    def _blame(self, message: str) -> None:
        if message not in self.faults:
            self.faults.append(message)


def read_corpus(
    source: str | Path, *, rows: int | None = None, allow_http: bool = False, separate: bool = False
) -> SourceTables:
    """Return the tables of a source as text, one at a time.

    Args:
        source: a folder of CSV, JSON, Parquet files or workbooks, one such file, several separated by commas, a glob,
            `-` (standard input), a SQLite or a DuckDB file, or `sample:NAME`, a bundled sample. The tables of a
            folder's own files lie in the database named after the folder, those of a sub-folder in one named after it;
            deeper folders are not looked at, but for the parts of a Parquet table.
        rows: at most so many rows of each table; None reads all.
        separate: files that look like parts of one table are tables of their own.

    Raises:
        SourceError: there is no such source, it holds no table, or one of its files is at fault.
        PrivateTablesError: a schema file marks a column of it as private.
    """
    if str(source).startswith(_SAMPLE):
        sample = load_sample(str(source).removeprefix(_SAMPLE))
        return tables_corpus(sample.tables, sample.name, rows=rows)
    named = find_named_files(str(source), allow_http=allow_http)
    if named is not None:
        refuse_private(named.paths)
        return replace(
            _files(_join(list_paths(named.paths, separate=separate), separate, any_name=True), rows), held=named.held
        )
    path = find_path(source)
    refuse_private([path])
    if path.is_dir():
        return _files(_join(list_folder(path, separate=separate), separate), rows)
    kind = kind_of(path)
    if kind is not None:
        return _files(list_paths([path]), rows, database=kind.stem)
    if path.suffix.lower() in SQLITE or is_sqlite(path):
        return _sqlite(path, rows)
    if path.suffix.lower() in DUCKDB:
        return _duckdb(path, rows)
    known = ", ".join((KNOWN, *SQLITE, *DUCKDB))
    raise SourceError(f"{path.name}: files of this kind cannot be read; known: a folder, or a file ending in {known}")


def _join(listing: Listing, separate: bool, *, any_name: bool = False) -> Listing:
    return listing if separate else join_files(listing, any_name=any_name)


def table_from_arrow(table_id: TableId, arrow: Any, *, rows: int | None = None) -> Table:
    """Return an Arrow table as text."""
    part = arrow if rows is None else arrow.slice(0, rows)
    cells = zip(*(map(cell_text, column.to_pylist()) for column in part.columns), strict=True)
    return Table(table_id, tuple(arrow.column_names), tuple(cells), title=table_id.table)


def cell_text(value: object) -> str:
    """Return a value as the text of a cell: "" for NULL, the elements of an array joined by "; "."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return "; ".join(cell_text(element) for element in value)
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    return str(value)


# --- folders and files of rows ---------------------------------------------------------------------------------------


def _files(listing: Listing, rows: int | None, database: str = "") -> SourceTables:
    """Return the tables of files; each sheet of a workbook is one."""
    readers: dict[TableId, Callable[[TableId], Table]] = {}
    faults = [str(problem) for problem in listing.problems]
    for found in listing.files:
        place = database or found.id.database
        if found.kind.format is Format.SHEETS:
            try:
                readers |= _sheets(found, place, rows)
            except (SourceError, MissingExtraError) as error:
                faults.append(str(not_opened(found.path.name, str(error))))
        else:
            readers[TableId(place, found.id.table)] = partial(_file_table, found, rows)
    for path in listing.databases:
        try:
            inner = _sqlite(path, rows)
            readers |= dict.fromkeys(inner.ids, inner.read)
        except SourceError as error:
            faults.append(str(not_opened(path.name, str(error))))
    if not readers:
        raise SourceError("; ".join(faults))
    return SourceTables(tuple(readers), lambda table_id: readers[table_id](table_id), faults)


def _file_table(found: FoundFile, rows: int | None, table_id: TableId) -> Table:
    """Return the table of one file; of a large one its first rows, as of a database's."""
    notes: tuple[str, ...] = ()
    if rows is None and sum(path.stat().st_size for path in found.paths) > LARGE_BYTES:
        rows, notes = LARGE_ROWS, (f"{table_id}: only its first {LARGE_ROWS:,} rows are searched, because it is large",)
    header, read = _read_file(found, rows)
    cells = tuple(tuple(map(cell_text, row)) for row in read)
    warnings = header.warnings + notes
    return Table(
        table_id, header.names, cells, title=table_id.table, context={"warnings": warnings} if warnings else {}
    )


def _read_file(found: FoundFile, rows: int | None) -> tuple[Header, list[list[Any]]]:
    if found.kind.format is Format.DOCUMENTS:
        documents = read_documents(found, rows)
        cells = map(list, zip(*documents.columns.values(), strict=True))
        return Header(tuple(documents.columns), documents.notes), list(cells)
    return read_parts(found, rows) if found.root is not None or found.columns else read_rows(found.path, rows)


def _sheets(found: FoundFile, database: str, rows: int | None) -> dict[TableId, Callable[[TableId], Table]]:
    return {
        TableId(database, sheet.name): partial(_sheet_table, sheet, rows)
        for sheet in read_workbook(found.path, found.id.table)
    }


def _sheet_table(sheet: SheetTable, rows: int | None, table_id: TableId) -> Table:
    cells = tuple(tuple(map(cell_text, row)) for row in sheet.rows[:rows])
    context = {"warnings": sheet.notes} if sheet.notes else {}
    return Table(table_id, sheet.header.names, cells, title=table_id.table, context=context)


# --- SQLite ----------------------------------------------------------------------------------------------------------


def _sqlite(path: Path, rows: int | None) -> SourceTables:
    with connect_sqlite(path) as connection:
        names = sqlite_tables(connection)
    if not names:
        raise SourceError(f"{path.name} holds no table")
    ids = tuple(TableId(path.stem, name) for name in names)
    return SourceTables(ids, lambda table_id: _sqlite_table(path, table_id, rows))


def _sqlite_table(path: Path, table_id: TableId, rows: int | None) -> Table:
    with connect_sqlite(path) as connection:
        views = ViewTime()
        try:
            with views.bound(connection) if table_id.table in sqlite_views(connection) else nullcontext():
                cursor = connection.execute(f"SELECT * FROM {quote(table_id.table)}")
                cells = tuple(tuple(map(cell_text, row)) for row in islice(cursor, rows))
        except sqlite3.DatabaseError as error:
            if views.over:
                raise SourceError(f"{path.name}: {not_read(table_id.table, views)}") from error
            raise SourceError(f"{path.name}: cannot read {table_id.table!r} ({error})") from error
        header = tuple(column[0] for column in cursor.description)
        primary, foreign = sqlite_keys(connection, table_id.table)
    keys = (
        *primary,
        *(f"{own} -> {other}.{column}" if column else f"{own} -> {other}" for own, other, column in foreign),
    )
    return Table(table_id, header, cells, title=table_id.table, keys=keys)


# --- DuckDB ----------------------------------------------------------------------------------------------------------


def _duckdb(path: Path, rows: int | None) -> SourceTables:
    query = (
        "SELECT schema_name, table_name, false FROM duckdb_tables() WHERE NOT internal UNION ALL "
        "SELECT schema_name, view_name, true FROM duckdb_views() WHERE NOT internal ORDER BY ALL"
    )
    found = _duckdb_rows(path, query)
    names = [(schema, name) for schema, name, _ in found]
    if not names:
        raise SourceError(f"{path.name} holds no table")
    several = {name for _, name in names if sum(other == name for _, other in names) > 1}
    places = {TableId(path.stem, f"{s}.{n}" if n in several else n): (s, n) for s, n in names}
    views = {(schema, name) for schema, name, is_view in found if is_view}

    def read(table_id: TableId) -> Table:
        place = places[table_id]
        return _duckdb_table(path, table_id, place, rows, is_view=place in views)

    return SourceTables(tuple(places), read)


def _duckdb_rows(path: Path, query: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
    import duckdb

    try:
        with closing(_connect_duckdb(path)) as connection:
            rows: list[tuple[Any, ...]] = connection.execute(query, parameters).fetchall()
            return rows
    except duckdb.Error as error:
        raise SourceError(f"{path.name}: cannot be read as a DuckDB database ({first_line(error)})") from error


def _connect_duckdb(path: Path) -> Any:
    """Open a DuckDB file, read-only; a view in it reads no other file and nothing from the network."""
    import duckdb

    return duckdb.connect(str(path), read_only=True, config={"enable_external_access": "false"})


def _duckdb_view(path: Path, query: str) -> list[tuple[Any, ...]]:
    """Return the rows of a view; none of one that cannot be read, or not in time."""
    import duckdb

    with closing(_connect_duckdb(path)) as connection:
        timer = threading.Timer(VIEW_SECONDS, connection.interrupt)
        timer.start()
        try:
            rows: list[tuple[Any, ...]] = connection.execute(query).fetchall()
            return rows
        except duckdb.Error:
            return []
        finally:
            timer.cancel()
            timer.join()


def _duckdb_table(path: Path, table_id: TableId, place: tuple[str, str], rows: int | None, *, is_view: bool) -> Table:
    columns = _duckdb_rows(
        path,
        "SELECT column_name, comment FROM duckdb_columns() WHERE schema_name = ? AND table_name = ?"
        " ORDER BY column_index",
        place,
    )
    comments = _duckdb_rows(
        path,
        "SELECT comment FROM duckdb_tables() WHERE schema_name = ? AND table_name = ? AND comment IS NOT NULL",
        place,
    )
    keys: list[_DuckDBKey] = _duckdb_rows(
        path,
        "SELECT constraint_type, constraint_column_names, referenced_table, referenced_column_names "
        "FROM duckdb_constraints() WHERE schema_name = ? AND table_name = ?",
        place,
    )
    limit = "" if rows is None else f" LIMIT {int(rows)}"
    select = f"SELECT * FROM {quote(place[0])}.{quote(place[1])}{limit}"
    cells = _duckdb_view(path, select) if is_view else _duckdb_rows(path, select)
    notes = [text for (text,) in comments] + [f"{name}: {text}" for name, text in columns if text]
    return Table(
        table_id,
        tuple(name for name, _ in columns),
        tuple(tuple(map(cell_text, row)) for row in cells),
        title=table_id.table,
        description="\n".join(notes),
        keys=_key_names(keys),
    )


def _key_names(constraints: list[_DuckDBKey]) -> tuple[str, ...]:
    names: list[str] = []
    for kind, own, other, others in constraints:
        if kind == "PRIMARY KEY":
            names.extend(own)
        elif kind == "FOREIGN KEY":
            names.extend(f"{mine} -> {other}.{theirs}" for mine, theirs in zip(own, others, strict=True))
    return tuple(names)


def tables_corpus(tables: Mapping[str, Any], database: str, *, rows: int | None = None) -> SourceTables:
    """Return Arrow tables by name as a corpus of one database."""
    ids = tuple(TableId(database, name) for name in tables)
    return SourceTables(ids, lambda table_id: table_from_arrow(table_id, tables[table_id.table], rows=rows))
