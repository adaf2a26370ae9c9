"""Corpora from files: the tables of a folder, a file of rows, or a SQLite or DuckDB file, streamed as text."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from almanaq.corpus.table import Table, TableId
from almanaq.corpus.tabular import TABULAR, find_path, list_tabular, read_header, read_rows
from almanaq.errors import SourceError
from almanaq.sample import load as load_sample

VIEW_SECONDS = 30.0
_OPERATIONS = 20_000
"""How many steps SQLite takes between two looks at the time."""
SQLITE = (".sqlite", ".sqlite3", ".db")
DUCKDB = (".duckdb", ".ddb")
_SAMPLE = "sample:"
_DuckDBKey = tuple[str, list[str], str | None, list[str]]


@dataclass(frozen=True, slots=True)
class SourceTables:
    """A Corpus: the ids of its tables, and how to read each; a table is read when the iteration reaches it."""

    ids: tuple[TableId, ...]
    read: Callable[[TableId], Table] = field(repr=False)

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[Table]:
        return (self.read(table_id) for table_id in self.ids)


def read_corpus(source: str | Path, *, rows: int | None = None) -> SourceTables:
    """Give the tables of a source as text, one at a time.

    Args:
        source: a folder of CSV, TSV, JSON Lines or Parquet files, one such file, a SQLite or a DuckDB file, or
            `sample:NAME`, a bundled sample. The tables of a folder's own files lie in the database named after the
            folder, those of a sub-folder in one named after it; deeper folders are not looked at.
        rows: at most so many rows of each table; None reads all.

    Raises:
        SourceError: there is no such source, it holds no table, or one of its files is at fault.
    """
    if str(source).startswith(_SAMPLE):
        sample = load_sample(str(source).removeprefix(_SAMPLE))
        return tables_corpus(sample.tables, sample.name, rows=rows)
    path = find_path(source)
    if path.is_dir():
        return _folder(path, rows)
    suffix = path.suffix.lower()
    if suffix in TABULAR:
        return SourceTables((TableId(path.stem, path.stem),), lambda table_id: _file_table(path, table_id, rows))
    if suffix in SQLITE or is_sqlite(path):
        return _sqlite(path, rows)
    if suffix in DUCKDB:
        return _duckdb(path, rows)
    known = ", ".join(TABULAR + SQLITE + DUCKDB)
    raise SourceError(f"{path.name}: files of this kind cannot be read; known: a folder, or a file ending in {known}")


def table_from_arrow(table_id: TableId, arrow: Any, *, rows: int | None = None) -> Table:
    """Give an Arrow table as text."""
    part = arrow if rows is None else arrow.slice(0, rows)
    cells = zip(*(map(cell_text, column.to_pylist()) for column in part.columns), strict=True)
    return Table(table_id, tuple(arrow.column_names), tuple(cells), title=table_id.table)


def cell_text(value: object) -> str:
    """Give a value as the text of a cell: "" for NULL, the elements of an array joined by "; "."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return "; ".join(cell_text(element) for element in value)
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    return str(value)


def is_sqlite(path: Path) -> bool:
    """Tell whether a file begins as SQLite files do."""
    with path.open("rb") as file:
        return file.read(16) == b"SQLite format 3\x00"


# --- folders and files of rows ---------------------------------------------------------------------------------------


def folder_files(folder: Path) -> dict[TableId, Path]:
    """Give the files of rows of a folder and its sub-folders by table id; raises SourceError when there are none."""
    files: dict[TableId, Path] = {}
    below = sorted(p for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))
    for place in [folder, *below]:
        for path in list_tabular(place):
            table_id = TableId(place.resolve().name, path.stem)
            if table_id in files:
                raise SourceError(
                    f"{files[table_id].name} and {path.name} in {str(place)!r} are both the table {path.stem!r}; "
                    "rename one"
                )
            files[table_id] = path
    if not files:
        raise SourceError(f"the folder {str(folder)!r} holds no table: put files ending in {', '.join(TABULAR)} there")
    return files


def holds_rows(folder: Path) -> bool:
    """Tell whether a folder or a sub-folder of it holds a file of rows."""
    below = (p for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))
    return any(list_tabular(place) for place in [folder, *below])


def _folder(folder: Path, rows: int | None) -> SourceTables:
    files = folder_files(folder)
    return SourceTables(tuple(files), lambda table_id: _file_table(files[table_id], table_id, rows))


def _file_table(path: Path, table_id: TableId, rows: int | None) -> Table:
    header = read_header(path)
    cells = (tuple(map(cell_text, row)) for row in islice(read_rows(path, header), rows))
    context = {"warnings": header.warnings} if header.warnings else {}
    return Table(table_id, header.names, tuple(cells), title=table_id.table, context=context)


# --- SQLite ----------------------------------------------------------------------------------------------------------


def connect_sqlite(path: Path) -> sqlite3.Connection:
    """Open a SQLite file read-only; bytes that are not UTF-8 come as U+FFFD. Raises SourceError when it is none."""
    uri = f"{path.resolve().as_uri()}?mode=ro"
    connection = sqlite3.connect(uri, uri=True, check_same_thread=False)
    connection.text_factory = lambda raw: raw.decode("utf-8", errors="replace")
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.DatabaseError as error:
        connection.close()
        raise SourceError(f"{path.name} is not a SQLite database ({error})") from error
    return connection


def sqlite_files(folder: Path) -> list[Path]:
    """Give the SQLite files of a folder and of its sub-folders, by their paths; hidden ones are left out."""
    below = (p for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))
    found = [p for place in [folder, *below] for p in place.iterdir() if p.is_file() and not p.name.startswith(".")]
    return sorted(p for p in found if p.suffix.lower() in SQLITE)


def sqlite_tables(connection: sqlite3.Connection) -> list[str]:
    """Give the names of the tables and views of a SQLite database, by name; not those that a virtual table keeps."""
    query = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
    names = {name for (name,) in connection.execute(query)}
    # SQLite before 3.37 has no table_list, and gives no row.
    shadows = {row[1] for row in connection.execute("PRAGMA table_list") if row[2] == "shadow"}
    return sorted(names - shadows)


class ViewTime:
    """The time that the views of a source may take together while it is loaded: a view may have rows without end.

    Args:
        seconds: None takes VIEW_SECONDS.
    """

    def __init__(self, seconds: float | None = None) -> None:
        self.seconds = VIEW_SECONDS if seconds is None else seconds
        self._left = self.seconds

    @contextmanager
    def bound(self, connection: sqlite3.Connection) -> Iterator[None]:
        """Let SQLite work within the block for as long as there is time; then it raises OperationalError."""
        started = time.monotonic()
        connection.set_progress_handler(lambda: time.monotonic() - started > self._left, _OPERATIONS)
        try:
            yield
        finally:
            connection.set_progress_handler(None, 0)
            self._left -= time.monotonic() - started

    @property
    def over(self) -> bool:
        """Whether there is none left."""
        return self._left <= 0


def sqlite_views(connection: sqlite3.Connection) -> frozenset[str]:
    """Give the names of the views of a SQLite database."""
    return frozenset(name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'view'"))


def unreadable_views(connection: sqlite3.Connection) -> dict[str, str]:
    """Give the views that cannot be read, as one whose table was dropped, with SQLite's word on each."""
    found = {}
    for name in sorted(sqlite_views(connection)):
        try:
            connection.execute(f"SELECT * FROM {quote(name)} LIMIT 0")
        except sqlite3.DatabaseError as error:
            found[name] = str(error)
    return found


def quote(name: str) -> str:
    """Give a name as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def sqlite_keys(connection: sqlite3.Connection, table: str) -> tuple[tuple[str, ...], list[tuple[str, str, str]]]:
    """Give the primary key of a table, and (column, other table, its column) of each part of its foreign keys."""
    columns = connection.execute(f"PRAGMA table_info({quote(table)})").fetchall()
    primary = tuple(row[1] for row in sorted((row for row in columns if row[5]), key=lambda row: row[5]))
    foreign = connection.execute(f"PRAGMA foreign_key_list({quote(table)})").fetchall()
    return primary, [(row[3], row[2], row[4] or "") for row in foreign]


def not_read(view: str, time_: ViewTime) -> str:
    """Say that a view took too long to be read, and what to do."""
    return f"the view {view!r} was not read within {time_.seconds:g} s: keep its rows in a table, or drop it"


def _sqlite(path: Path, rows: int | None) -> SourceTables:
    with closing(connect_sqlite(path)) as connection:
        names = sqlite_tables(connection)
    if not names:
        raise SourceError(f"{path.name} holds no table")
    ids = tuple(TableId(path.stem, name) for name in names)
    return SourceTables(ids, lambda table_id: _sqlite_table(path, table_id, rows))


def _sqlite_table(path: Path, table_id: TableId, rows: int | None) -> Table:
    with closing(connect_sqlite(path)) as connection:
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
        raise SourceError(f"{path.name}: cannot be read as a DuckDB database ({str(error).splitlines()[0]})") from error


def _connect_duckdb(path: Path) -> Any:
    """Open a DuckDB file, read-only; a view in it reads no other file and nothing from the network."""
    import duckdb

    return duckdb.connect(str(path), read_only=True, config={"enable_external_access": "false"})


def _duckdb_view(path: Path, query: str) -> list[tuple[Any, ...]]:
    """Give the rows of a view; none of one that cannot be read, or not in time."""
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
    """Give Arrow tables by name as a corpus of one database."""
    ids = tuple(TableId(database, name) for name in tables)
    return SourceTables(ids, lambda table_id: table_from_arrow(table_id, tables[table_id.table], rows=rows))
