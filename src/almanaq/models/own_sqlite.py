"""SQLite files of the program's own, shared by processes: opened, given their tables, closed again where they fail."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

from almanaq.models.own_files import make_own

UNUSABLE = (sqlite3.Error, UnicodeError)
"""What a damaged file raises: SQLite's message may repeat what is no text, and then Python cannot read that."""
_BUSY_SECONDS = 30


def open_sqlite(
    file: Path | None, schema: str, version: int, upgrade: Callable[[sqlite3.Connection], None] | None = None
) -> sqlite3.Connection:
    """Return a connection to a file of the user's alone, made where it is not there, that any thread may use.

    Args:
        file: None keeps what is written in memory, for as long as the connection lives.
        schema: statements that make what is missing.
        version: of the schema; a file of another one is refused.
        upgrade: adds what files of this version that were made earlier lack.

    Raises:
        OSError, sqlite3.Error, UnicodeError: the file cannot be used.
    """
    if file is not None:
        make_own(file)
    connection = sqlite3.connect(str(file or ":memory:"), timeout=_BUSY_SECONDS, check_same_thread=False)
    try:
        if file is not None:
            connection.execute("PRAGMA journal_mode = WAL")
            # Not synced at every write: a crash of the process loses nothing, one of the machine what came last.
            connection.execute("PRAGMA synchronous = NORMAL")
        found = connection.execute("PRAGMA user_version").fetchone()[0]
        if found not in (0, version):
            raise sqlite3.DatabaseError(f"it is of version {found}, this program keeps version {version}")
        connection.executescript(schema)
        if upgrade is not None:
            upgrade(connection)
        connection.execute(f"PRAGMA user_version = {version}")
    except BaseException:
        connection.close()
        raise
    return connection
