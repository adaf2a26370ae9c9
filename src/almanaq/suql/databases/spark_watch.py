"""Whether the tables of a query are still what they were: the files behind them, with their times and lengths.

The server is asked to list the files, and opens none. Tables that are not read from files, as Iceberg's, are not
watched: each of their statements reads a snapshot of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from almanaq.errors import OperationalError
from almanaq.suql.databases.spark_driver import Remote
from almanaq.suql.databases.spark_folder import named

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
                    self._remote.refresh(named(*place))
                    self._seen[place] = self._files(place, tag)

    def after(self, places: Iterable[Place], tag: str) -> None:
        """Raise OperationalError when a table that was read before is no longer what it was.

        What changes while the first statement reads is found here after the next one.
        """
        for place in sorted(places):
            with self._lock:
                seen, again = self._seen[place], place in self._read
                self._read.add(place)
            if again and seen and self._files(place, tag) != seen:
                raise OperationalError(f"the table {place[-1]} changed while the query ran; run it again")

    def _files(self, place: Place, tag: str) -> object:
        paths = sorted(self._remote.files(named(*place)))
        if not paths or len(paths) > _MOST_FILES:
            return paths
        folders = sorted({path.rpartition("/")[0] for path in paths})
        return self._remote.listing(folders, tag)
