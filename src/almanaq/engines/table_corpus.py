"""The tables of any source as a corpus, for searching them: of files and databases alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache, lru_cache, partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from almanaq.corpus.files.documents import read_documents
from almanaq.corpus.files.listing import (
    DUCKDB,
    KNOWN,
    Format,
    FoundFile,
    Listing,
    find_named_files,
    find_path,
    join_files,
    kind_of,
    list_folder,
    list_paths,
    not_opened,
    total_bytes,
)
from almanaq.corpus.files.reader import read_parts, read_rows
from almanaq.corpus.files.shape import Header, clean_header
from almanaq.corpus.files.sheets import SheetTable, read_workbook
from almanaq.corpus.schema_places import refuse_private
from almanaq.corpus.sqlite import SQLITE, VIEW_SECONDS, connect_sqlite, is_sqlite, not_read, sqlite_tables
from almanaq.corpus.table import SourceTables, Table, TableId, cell_text, read_cells, tables_corpus
from almanaq.engines.protocols import Database
from almanaq.errors import DeadlineExceeded, MissingExtraError, SourceError, first_line
from almanaq.sample import load as load_sample
from almanaq.suql.catalog.reading import written_name
from almanaq.suql.catalog.relations import Relation

ROWS = 1000
"""Rows of each table that are looked at: a server's tables may have any number."""
LARGE_BYTES, LARGE_ROWS = 64 << 20, 1000
"""Of a file that is larger, so many rows are searched: a table of any size must not fill the memory."""
_SAMPLE = "sample:"
_BATCH_ROWS = 1000
_READER: dict[str, Any] = {"threads": 1, "enable_external_file_cache": False}
"""Of each file only the beginning may be read, and once: nothing of it is kept in memory."""


def read_corpus(
    source: str | Path, *, rows: int | None = None, allow_http: bool = False, separate: bool = False
) -> SourceTables:
    """Return the tables of a source as text, one at a time.

    Args:
        source: a folder of CSV, JSON, Parquet files or workbooks, one such file, several separated by commas, a glob,
            `-` (standard input), a SQLite or a DuckDB file, or `sample:NAME`, a bundled sample. The tables of a
            folder's own files lie in the database named after the folder, those of a sub-folder in one named after
            it; deeper folders are not looked at, but for the parts of a Parquet table.
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
        listing = list_paths(named.paths, separate=separate)
        listing = listing if separate else join_files(listing, any_name=True)
        return replace(_files(listing, rows), held=named.held)
    path = find_path(source)
    refuse_private([path])
    if path.is_dir():
        listing = list_folder(path, separate=separate)
        return _files(listing if separate else join_files(listing), rows)
    if path.suffix.lower() in DUCKDB:
        from almanaq.engines.duckdb.engine import open_duckdb_file

        return database_corpus(open_duckdb_file(path), rows=rows, name=path.stem, view_seconds=VIEW_SECONDS)
    kind = kind_of(path)
    if kind is not None or path.suffix.lower() in SQLITE or is_sqlite(path):
        return _files(list_paths([path]), rows, database=kind.stem if kind else "")
    known = ", ".join((KNOWN, *SQLITE, *DUCKDB))
    raise SourceError(f"{path.name}: files of this kind cannot be read; known: a folder, or a file ending in {known}")


# --- folders and files of rows ---------------------------------------------------------------------------------------


def _files(listing: Listing, rows: int | None, database: str = "") -> SourceTables:
    """Return the tables of files; each sheet of a workbook is one."""
    readers: dict[TableId, Callable[[TableId], Table]] = {}
    engine = cache(_open_reader)
    faults = [*listing.problems]
    for found in listing.files:
        place = database or found.id.database
        if found.kind.format is Format.SHEETS:
            try:
                for sheet in read_workbook(found.path, found.id.table):
                    readers[TableId(place, sheet.name)] = partial(_sheet_table, sheet, rows)
            except (SourceError, MissingExtraError) as error:
                faults.append(not_opened(found.path.name, str(error)))
        else:
            read = partial(_parquet_table, engine) if found.kind.format is Format.PARQUET else _file_table
            readers[TableId(place, found.id.table)] = partial(read, found, rows)
    # One SQLite file is held at a time, as all of them may be larger than the memory.
    opened = lru_cache(maxsize=1)(partial(_open_sqlite, rows))
    for path in listing.databases:
        try:
            with connect_sqlite(path) as connection:
                names = sqlite_tables(connection)
            readers |= {TableId(path.stem, name): partial(_read_from, opened, path) for name in names}
            faults += [] if names else [not_opened(path.name, "holds no table")]
        except SourceError as error:
            faults.append(not_opened(path.name, str(error)))
    if not readers:
        raise SourceError("; ".join(faults))
    return SourceTables(tuple(readers), lambda table_id: readers[table_id](table_id), faults)


def _open_reader() -> Any:
    import duckdb  # here, as a search of CSV files needs none

    return duckdb.connect(config=_READER)


def _open_sqlite(rows: int | None, path: Path) -> SourceTables | SourceError:
    from almanaq.engines.files.load import open_files

    try:
        return database_corpus(open_files(path), rows=rows, name=path.stem)
    except SourceError as error:  # kept, so that the file is not loaded again for each of its tables
        return error


def _read_from(opened: Callable[[Path], SourceTables | SourceError], path: Path, table_id: TableId) -> Table:
    tables = opened(path)
    if isinstance(tables, SourceError):
        raise tables
    if table_id not in tables.ids:
        raise SourceError("; ".join(tables.faults) or f"{path.name}: cannot read {table_id.table!r}")
    return tables.read(table_id)


def _limit_rows(found: FoundFile, rows: int | None, table_id: TableId) -> tuple[int | None, tuple[str, ...]]:
    """Return how many rows of a file are read, of a large one the first, and what to say of it."""
    if rows is not None or total_bytes(found.paths) <= LARGE_BYTES:
        return rows, ()
    return LARGE_ROWS, (f"{table_id}: only its first {LARGE_ROWS:,} rows are searched, because it is large",)


def _text_table(
    table_id: TableId, header: Header, cells: Iterable[tuple[str, ...]], notes: tuple[str, ...] = ()
) -> Table:
    context = {"warnings": header.warnings + notes} if header.warnings or notes else {}
    return Table(table_id, header.names, tuple(cells), title=table_id.table, context=context)


def _file_table(found: FoundFile, rows: int | None, table_id: TableId) -> Table:
    rows, notes = _limit_rows(found, rows, table_id)
    read: Iterable[Iterable[Any]]
    if found.kind.format is Format.DOCUMENTS:
        documents = read_documents(found, rows)
        header = Header(tuple(documents.columns), documents.notes)
        read = zip(*documents.columns.values(), strict=True)
    else:
        parted = found.root is not None or found.columns
        header, read = read_parts(found, rows) if parted else read_rows(found.path, rows)
    return _text_table(table_id, header, (tuple(map(cell_text, row)) for row in read), notes)


def _parquet_table(engine: Callable[[], Any], found: FoundFile, rows: int | None, table_id: TableId) -> Table:
    import duckdb

    from almanaq.engines.files.load import parquet_source

    rows, notes = _limit_rows(found, rows, table_id)
    file, limit = found.path.name, "" if rows is None else f" LIMIT {rows}"
    parts = [found]
    if found.root is None and found.columns:  # one after another, as DuckDB would begin with all of them
        parts = [replace(found, paths=(p,), values=(v,)) for p, v in zip(found.paths, found.values, strict=True)]
    with engine().cursor() as connection:
        try:
            read = (connection.sql(f"SELECT * FROM {parquet_source(part)}{limit}") for part in parts)
            first: Any = next(read)
            batches = (batch for each in chain([first], read) for batch in each.to_arrow_reader(_BATCH_ROWS))
            cells = islice(read_cells(batches, file), rows)
            return _text_table(table_id, clean_header(first.columns, file), cells, notes)
        except duckdb.Error as error:
            raise SourceError(f"{file} is not a Parquet file: {first_line(error)}") from error


def _sheet_table(sheet: SheetTable, rows: int | None, table_id: TableId) -> Table:
    cells = (tuple(map(cell_text, row)) for row in sheet.rows[:rows])
    return _text_table(table_id, Header(sheet.header.names), cells, sheet.notes)


# --- databases --------------------------------------------------------------------------------------------------------


def database_corpus(
    database: Database, *, rows: int | None = ROWS, name: str = "", view_seconds: float | None = None
) -> SourceTables:
    """Return the relations that may be read, each with its first rows, when the iteration reaches it.

    Of a private column nothing is read: it has its name and its description, and its cells are empty. What is made of
    these tables, by any retriever, can so hold and send nothing of it.

    Args:
        rows: at most so many of each table; None reads all.
        name: of the database that the tables are said to lie in; "": its own.
        view_seconds: how long reading a view may take; None: any time.
    """
    catalog = database.catalog()
    catalog.check_readable()
    ids = {TableId(name or database.name, relation.name): relation for relation in catalog.relations}
    read = {table_id: partial(_table, database, table_id, each, rows, view_seconds) for table_id, each in ids.items()}
    faults = [warning for report in getattr(database, "reports", ()) for warning in report.warnings]
    faults += [f"{view} was left out: {why}" for view, why in catalog.broken]
    if not ids:
        raise SourceError("; ".join(faults) or f"{database.name} holds no table")
    return SourceTables(tuple(ids), lambda table_id: read[table_id](), faults)


def _table(database: Database, table_id: TableId, relation: Relation, rows: int | None, seconds: float | None) -> Table:
    foreign = [
        f"{column} -> {other}.{theirs}"
        for own, other, others in relation.foreign_keys
        for column, theirs in zip(own, others, strict=True)
    ]
    notes = [f"{column.name}: {column.description}" for column in relation.columns if column.description]
    return Table(
        table_id,
        tuple(column.name for column in relation.columns),
        () if relation.unread else _cells(database, relation, rows, seconds if relation.row_id is None else None),
        title=relation.name,
        description="\n".join(part for part in (relation.description, *notes) if part),
        keys=(*relation.key, *foreign),
    )


def _cells(
    database: Database, relation: Relation, rows: int | None, seconds: float | None
) -> tuple[tuple[str, ...], ...]:
    """Return the cells of a relation, those of private columns empty."""
    read = [column.name for column in relation.columns if not column.private]
    if not read:
        return ()
    columns = ", ".join(written_name([name], database.dialect) for name in read)
    place = written_name(relation.location, database.dialect)
    limit = "" if rows is None else f" LIMIT {rows}"
    try:
        with database.session(seconds) as session:
            found = read_cells(session.stream(f"SELECT {columns} FROM {place}{limit}"), relation.name)
            known = [dict(zip(read, row, strict=True)) for row in found]
    except DeadlineExceeded as error:
        raise SourceError(not_read(relation.name, seconds)) from error
    return tuple(tuple(row.get(column.name, "") for column in relation.columns) for row in known)
