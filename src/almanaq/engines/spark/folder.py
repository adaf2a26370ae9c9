"""What a session has on a cluster: tables of Parquet in a schema of its own, and the files behind those it reads.

A schema is what a client without Java can remove: `DROP SCHEMA … CASCADE` deletes its folder, which lies in the one
that the address names. One that was left behind by a process that was killed is swept when the next session opens: its
name says whose it was.

Files are watched by their times and lengths: the server is asked to list them, and opens none. Tables that are not
read from files, as Iceberg's, are not watched: each of their statements reads a snapshot of its own.
"""

from __future__ import annotations

import hashlib
import os
import re
import socket
import threading
import time
import uuid
from collections.abc import Iterable

from almanaq.engines.spark.driver import Remote, is_fault
from almanaq.errors import OperationalError
from almanaq.models.private_files import process_mark

# --- the session's schema ---------------------------------------------------------------------------------------------

PREFIX = "almanaq_session_"
_NAME = re.compile(rf"{PREFIX}(?P<host>[0-9a-f]{{8}})_(?P<pid>\d+)_(?P<mark>[0-9a-f]{{8}})_(?P<at>\d+)_[0-9a-f]{{8}}")
_LONGEST_DAYS = 7
"""After so many days a session is taken to be over: a million calls take one and a half."""


def session_name() -> str:
    """Return a name that says on which machine which process began a session, and when."""
    host, mark = map(_hash, (socket.gethostname(), process_mark()))
    return f"{PREFIX}{host}_{os.getpid()}_{mark}_{int(time.time())}_{uuid.uuid4().hex[:8]}"


def is_left_behind(name: str) -> bool:
    """Tell whether a schema is a session's whose process has ended, or that is too old to be under way."""
    found = _NAME.fullmatch(name)
    if found is None:
        return False
    if found["host"] == _hash(socket.gethostname()) and found["mark"] != _hash(process_mark(int(found["pid"]))):
        return True
    return time.time() - int(found["at"]) > _LONGEST_DAYS * 86_400


def create_schema(remote: Remote, name: str, folder: str, tag: str) -> None:
    place = string_literal(f"{folder.rstrip('/')}/{name}")
    remote.command(f"CREATE SCHEMA {quote_name(name)} LOCATION {place}", tag)


def drop_schema(remote: Remote, name: str, tag: str) -> None:
    remote.command(f"DROP SCHEMA IF EXISTS {quote_name(name)} CASCADE", tag)


def sweep(remote: Remote, folder: str, tag: str) -> int:
    """Remove what sessions left behind: schemas that the server knows, and folders that it has forgotten."""
    known = remote.table(f"SHOW SCHEMAS LIKE '{PREFIX}*'", tag).column(0).to_pylist()
    found = [name for name in known if is_left_behind(name)]
    for name in found:
        drop_schema(remote, name, tag)
    for name in _folders(remote, folder, tag) - set(known):
        if is_left_behind(name):
            create_schema(remote, name, folder, tag)
            drop_schema(remote, name, tag)
            found.append(name)
    return len(found)


def quote_name(*parts: str) -> str:
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def string_literal(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _folders(remote: Remote, folder: str, tag: str) -> set[str]:
    try:
        paths = [path for path, _, _ in remote.list_files([f"{folder.rstrip('/')}/{PREFIX}*/*"], tag)]
    except Exception as error:
        if not is_fault(error):
            raise
        return set()  # there is none
    return {part for path in paths for part in path.split("/") if _NAME.fullmatch(part)}


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


# --- the files behind tables ------------------------------------------------------------------------------------------

_MOST_FILES = 10_000
Place = tuple[str, ...]


class Watch:
    """The files behind the tables of one session, as they were when it first read them."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote
        self._lock = threading.Lock()
        self._seen: dict[Place, object] = {}
        self._read: set[Place] = set()

    def before(self, places: Iterable[Place], tag: str) -> None:
        """Remember the files of tables that are read for the first time."""
        for place in sorted(places):
            with self._lock:
                if place not in self._seen:
                    self._remote.refresh(quote_name(*place))
                    self._seen[place] = self._files(place, tag)

    def after(self, places: Iterable[Place], tag: str) -> None:
        """Raise OperationalError when a table that was read before has changed since."""
        for place in sorted(places):
            with self._lock:
                # What changes while the first statement reads is found after the next one.
                seen, again = self._seen[place], place in self._read
                self._read.add(place)
            if again and seen and self._files(place, tag) != seen:
                raise OperationalError(f"the table {place[-1]} changed while the query ran; run it again")

    def _files(self, place: Place, tag: str) -> object:
        paths = sorted(self._remote.files(quote_name(*place)))
        if not paths or len(paths) > _MOST_FILES:
            return paths
        folders = sorted({path.rpartition("/")[0] for path in paths})
        return self._remote.list_files(folders, tag)
