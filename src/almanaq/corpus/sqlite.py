"""SQLite files: opening them read-only, and what they say of their tables, views and keys."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from almanaq.corpus.read_cancellation import current_read
from almanaq.errors import SourceError
from almanaq.text.sql_literals import quote

VIEW_SECONDS = 30.0
_OPERATIONS = 20_000  # steps that SQLite takes between two looks at the time
SQLITE = (".sqlite", ".sqlite3", ".db")


def is_sqlite(path: Path) -> bool:
    """Tell whether a file begins as SQLite files do; one that cannot be read does not."""
    with suppress(OSError), path.open("rb") as file:
        return file.read(16) == b"SQLite format 3\x00"
    return False


@contextmanager
def connect_sqlite(path: Path) -> Iterator[sqlite3.Connection]:
    """Give a connection that only reads a SQLite file; bytes that are not UTF-8 come as U+FFFD.

    Raises SourceError where the file is none, and for what SQLite says of a damaged one within the block: its messages
    repeat what they stumble over, which Python may not be able to read as text.
    """
    with _leave_no_traces(path) as (file, mode):
        connection = sqlite3.connect(f"{file.resolve().as_uri()}?{mode}", uri=True, check_same_thread=False)
        connection.text_factory = lambda raw: raw.decode("utf-8", errors="replace")
        try:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            yield connection
        except (sqlite3.Error, UnicodeError) as error:
            raise SourceError(f"{path.name} is not a SQLite database, or is damaged ({error})") from error
        finally:
            connection.close()


@contextmanager
def _leave_no_traces(path: Path) -> Iterator[tuple[Path, str]]:
    """Give the file to open and how, so that SQLite leaves no `-wal` and `-shm` beside the user's file.

    Where no log lies beside a file in WAL mode nobody writes to it, and it is read as immutable. A log without the
    index of a running process was left by a crash: both files are copied, and the log is applied to the copy.
    """
    with path.open("rb") as file:
        is_wal = file.read(20)[18:19] == b"\x02"
    log, index = (path.with_name(path.name + ending) for ending in ("-wal", "-shm"))
    if not is_wal or index.exists():
        yield path, "mode=ro"
    elif not log.exists() or not log.stat().st_size:
        yield path, "immutable=1"
    else:
        with tempfile.TemporaryDirectory(prefix="almanaq-") as folder:
            for each in (path, log):
                shutil.copyfile(each, Path(folder, each.name))
            yield Path(folder, path.name), "mode=rw"


def sqlite_files(folder: Path) -> list[Path]:
    """Return the SQLite files of a folder and of its sub-folders, by their paths; hidden ones are left out."""
    with os.scandir(folder) as entries:
        below = [Path(e.path) for e in entries if not e.name.startswith(".") and os.path.isdir(e)]
    named = (place / name for place in [folder, *below] for name in os.listdir(place) if name.lower().endswith(SQLITE))
    return sorted(path for path in named if path.is_file() and not path.name.startswith("."))


def sqlite_tables(connection: sqlite3.Connection) -> list[str]:
    """Return the names of the tables and views of a SQLite database, by name; not those that a virtual table keeps."""
    query = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
    names = {name for (name,) in connection.execute(query)}
    # SQLite before 3.37 has no table_list, and gives no row.
    shadows = {row[1] for row in connection.execute("PRAGMA table_list") if row[2] == "shadow"}
    return sorted(names - shadows)


class ViewTime:
    """The time that the views of a source may take together while it is loaded: a view may have rows without end."""

    def __init__(self, seconds: float | None = None) -> None:
        self.seconds = VIEW_SECONDS if seconds is None else seconds
        self._left = self.seconds

    @contextmanager
    def bound(self, connection: sqlite3.Connection) -> Iterator[None]:
        """Let SQLite work within the block for as long as there is time; then it raises OperationalError."""
        started, reading = time.monotonic(), current_read()
        over = started + self._left
        connection.set_progress_handler(lambda: reading.cancelled or time.monotonic() > over, _OPERATIONS)
        try:
            with reading.granting(self._left):
                yield
        finally:
            connection.set_progress_handler(None, 0)
            self._left -= time.monotonic() - started

    @property
    def over(self) -> bool:
        return self._left <= 0


def sqlite_views(connection: sqlite3.Connection) -> frozenset[str]:
    return frozenset(name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'view'"))


def unreadable_views(connection: sqlite3.Connection) -> dict[str, str]:
    """Return the views that cannot be read, as one whose table was dropped, with SQLite's word on each."""
    found = {}
    for name in sorted(sqlite_views(connection)):
        try:
            connection.execute(f"SELECT * FROM {quote(name)} LIMIT 0")
        except sqlite3.DatabaseError as error:
            found[name] = str(error)
    return found


def sqlite_keys(connection: sqlite3.Connection, table: str) -> tuple[tuple[str, ...], list[tuple[str, str, str]]]:
    """Return the primary key of a table, and (column, other table, its column) of each part of its foreign keys."""
    columns = connection.execute(f"PRAGMA table_info({quote(table)})").fetchall()
    primary = tuple(row[1] for row in sorted((row for row in columns if row[5]), key=lambda row: row[5]))
    foreign = connection.execute(f"PRAGMA foreign_key_list({quote(table)})").fetchall()
    return primary, [(row[3], row[2], row[4] or "") for row in foreign]


def not_read(view: str, seconds: float | None) -> str:
    return f"the view {view!r} was not read within {seconds:g} s: save its rows as a table, or drop it"
