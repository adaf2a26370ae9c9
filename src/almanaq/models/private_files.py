"""Files that only the user can read: caches, records and SQLite stores, where they are, and which process holds one."""

from __future__ import annotations

import os
import sqlite3
import stat
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

_OTHER_USERS = stat.S_IRWXG | stat.S_IRWXO


def default_cache_folder() -> Path:
    """Return the folder of caches: ALMANAQ_CACHE_DIR, else almanaq in XDG_CACHE_HOME, else in ~/.cache."""
    named = os.environ.get("ALMANAQ_CACHE_DIR")
    return Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "almanaq"


def default_cache_file() -> Path:
    """Return the file of cached replies: ALMANAQ_CACHE, else the one in the folder of caches."""
    named = os.environ.get("ALMANAQ_CACHE")
    return Path(named) if named else default_cache_folder() / "replies.sqlite"


def make_private(file: Path) -> None:
    """Create an empty file, with its folder, that only its owner can read; restrict one of this user's."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        found = file.stat()
    except FileNotFoundError:
        _create(file)
        return
    if (
        found.st_mode & _OTHER_USERS
        and stat.S_ISREG(found.st_mode)
        and found.st_uid == getattr(os, "getuid", lambda: -1)()
    ):
        with suppress(OSError):
            file.chmod(stat.S_IMODE(found.st_mode) & ~_OTHER_USERS)


def private_temporary_folder() -> Path:
    """Return the user's own folder for temporary files, which other users can neither read nor have planted."""
    user = getattr(os, "getuid", lambda: "user")()
    folder = Path(tempfile.gettempdir()) / f"almanaq-{user}"
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        if stat.S_ISDIR(found.st_mode) and not found.st_mode & _OTHER_USERS and found.st_uid == user:
            return folder
    return Path(tempfile.mkdtemp(prefix="almanaq-"))


def open_private(path: str, flags: int) -> int:
    """Open a file, a new one readable by its owner alone: for the argument `opener` of `open`."""
    return os.open(path, flags, 0o600)


def _create(file: Path) -> None:
    # Created under another name and linked: closing a file that SQLite has open would drop SQLite's locks.
    handle, draft = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    os.close(handle)
    try:
        with suppress(FileExistsError):
            os.link(draft, file)
    except OSError:
        # A file system without links: the first user of the file creates it.
        if not file.parent.is_dir():
            raise
    finally:
        os.unlink(draft)


UNUSABLE = (sqlite3.Error, UnicodeError)
"""Errors of a damaged file: SQLite's message may quote bytes that are not text, which Python cannot decode."""
_BUSY_SECONDS = 30
_KEYS_PER_STATEMENT = 64


def open_sqlite(
    file: Path | None, schema: str, version: int, upgrade: Callable[[sqlite3.Connection], None] | None = None
) -> sqlite3.Connection:
    """Open a private SQLite file, or a database in memory; any thread may use the connection.

    A file of another version of the schema is refused; `upgrade` adds what older files of this version lack. Raises
    OSError, sqlite3.Error or UnicodeError.
    """
    if file is not None:
        make_private(file)
    connection = sqlite3.connect(str(file or ":memory:"), timeout=_BUSY_SECONDS, check_same_thread=False)
    try:
        if file is not None:
            connection.execute("PRAGMA journal_mode = WAL")
            # Not synced at every write: a crash of the process loses nothing, one of the machine the last writes.
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


def find_rows(connection: sqlite3.Connection, select: str, keys: Sequence[bytes]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of the keys that a table holds; SQLite caches a statement for each number of keys."""
    for start in range(0, len(keys), _KEYS_PER_STATEMENT):
        part = keys[start : start + _KEYS_PER_STATEMENT]
        yield from connection.execute(f"{select} WHERE key IN ({', '.join('?' * len(part))})", part)


def add_column(connection: sqlite3.Connection, table: str, column: str) -> None:
    """Add a column that older files lack."""
    if column.partition(" ")[0] not in {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}:
        try:
            connection.execute(f"ALTER TABLE {table} ADD COLUMN {column}")
        except sqlite3.OperationalError as problem:
            if "duplicate column" not in str(problem):  # another process was quicker
                raise


_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_START_FIELD = 19
"""Index of the start time, in ticks since boot, among the fields of `/proc/PID/stat` after the name."""


def process_mark(pid: int | None = None) -> str:
    """Return the boot and start time of a process: a later process with the same number has another mark.

    In a container that was killed and restarted, the new process often has the number of the old one. "" where there
    is no such process, or the system does not tell; None is this process, which the system may list otherwise.
    """
    with suppress(OSError, ValueError, IndexError):
        fields = Path(f"/proc/{'self' if pid in (None, os.getpid()) else pid}/stat").read_text("utf-8", "replace")
        return f"{_BOOT_ID.read_text().strip()} {int(fields.rpartition(')')[2].split()[_START_FIELD])}"
    return ""


def is_process_alive(pid: object, mark: object) -> bool:
    """Return whether the process with this number and mark still runs on this machine; True in doubt."""
    if not isinstance(pid, int) or not 0 < pid < 2**31:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # it belongs to another user
    now = process_mark(pid)
    return not mark or not now or now == mark
