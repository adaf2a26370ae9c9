"""open_database: the Database of a file, a folder, a bundled sample, a URL, or tables in memory."""

from __future__ import annotations

import os
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from almanaq.corpus.files.listing import KNOWN, as_list, find_named_files, find_path, kind_of
from almanaq.corpus.read_cancellation import ReadCancellation, cancellable_by
from almanaq.corpus.sqlite import SQLITE, is_sqlite
from almanaq.engines import interruption
from almanaq.engines.sources import (
    SOURCES,
    ADBCConnection,
    adbc_tables,
    is_sqlalchemy,
    open_sqlalchemy,
    open_sqlite_connection,
    path_of_url,
    plain_url,
)
from almanaq.errors import DeadlineExceeded, SourceError, UsageError
from almanaq.suql.catalog.schema_file import Schema, read_schema, schema_beside

if TYPE_CHECKING:
    from almanaq.engines.protocols import Database


_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://")
_SAMPLE = "sample:"


def is_url(source: str) -> bool:
    """Tell whether a source is named by a URL."""
    return _URL.match(source) is not None


def open_database(
    source: Any,
    *,
    schema: str | Path | None = None,
    keep: bool = True,
    allow_http: bool = False,
    seconds: float | None = None,
    separate: bool = False,
) -> Database:
    """Open a source, read-only.

    Args:
        source: a `.duckdb` or `.sqlite` file, a folder of CSV, JSON, Parquet files or workbooks, or of SQLite files,
            one such file, a list of them, a glob, `-` (standard input), `sample:restaurants`, a URL, a mapping of names
            to tables (Arrow, pandas, polars), one such table, a connection of duckdb, sqlite3, SQLAlchemy, ADBC or
            ibis, or an opened Database.
        schema: a schema file; None: `SOURCE.almanaq.toml` where it exists, and those of the files of a source.
        keep: keep the tables of files in the user's cache folder, so that they open at once the next time.
        allow_http: fetch a file that an `https://` address names.
        seconds: how long the views of SQLite files may take to be loaded; None takes half a minute.
        separate: files that look like parts of one table are tables of their own.

    Raises:
        SourceError: there is no such source, or it cannot be read, or the schema file does not fit it.
        MissingExtraError: the source needs an optional dependency.
        UsageError: the source is nothing of these.
    """
    declared = None if schema is None else read_schema(schema)
    if isinstance(source, Mapping):
        from almanaq.engines.duckdb.engine import open_tables

        return open_tables(source, schema=declared)
    if isinstance(source, str | os.PathLike):
        named = find_named_files(str(source), allow_http=allow_http)
        if named is not None:
            keep = keep and named.held is None
            declared = declared or schema_beside(named.paths)
            return _open_files(
                named.paths, declared, seconds, keep=keep, name=named.name, held=named.held, separate=separate
            )
        return _open_text(str(source), declared, seconds, keep=keep, separate=separate)
    listed = as_list(source)
    if listed is not None:
        return _open_files(listed, declared or schema_beside(listed), seconds, keep=keep, separate=separate)
    return _open_object(source, declared)


def _open_text(
    source: str, schema: Schema | None, seconds: float | None, *, keep: bool, separate: bool = False
) -> Database:
    if source.startswith(_SAMPLE):
        return _open_sample(source.removeprefix(_SAMPLE), schema)
    if _URL.match(source):
        return _open_url(source, schema)
    path = find_path(source)
    return _open_path(path, schema or schema_beside([path]), seconds, keep=keep, separate=separate)


def _open_files(
    paths: Sequence[Path],
    schema: Schema | None,
    seconds: float | None,
    *,
    keep: bool,
    name: str = "",
    held: object = None,
    separate: bool = False,
) -> Database:
    from almanaq.engines.files.load import open_files
    from almanaq.engines.files.table_cache import default_table_cache

    cache = default_table_cache() if keep else None
    return open_within(
        lambda: open_files(paths, schema=schema, cache=cache, name=name, held=held, seconds=seconds, separate=separate),
        seconds,
    )


def _open_path(
    path: Path, schema: Schema | None, seconds: float | None, *, keep: bool, separate: bool = False
) -> Database:
    suffix = path.suffix.lower()
    if path.is_dir() or kind_of(path) is not None or suffix in SQLITE or is_sqlite(path):
        return _open_files([path], schema, seconds, keep=keep, separate=separate)
    from almanaq.engines.duckdb.engine import DUCKDB, open_duckdb_file

    if suffix in DUCKDB:
        return open_duckdb_file(path, schema=schema)
    known = ", ".join((*DUCKDB, *SQLITE, KNOWN))
    raise SourceError(f"{path.name}: files of this kind cannot be opened; known: a folder, or a file ending in {known}")


def _open_sample(name: str, schema: Schema | None) -> Database:
    from almanaq import sample
    from almanaq.engines.duckdb.engine import open_tables

    declared = schema or read_schema(sample.schema_path(name))
    return open_tables(sample.load(name).tables, name=_SAMPLE + name, schema=declared)


def _open_url(url: str, schema: Schema | None) -> Database:
    url = plain_url(url)
    scheme = url.partition("://")[0].lower()
    if scheme in ("postgres", "postgresql"):
        from almanaq.engines.postgres.engine import PostgresDatabase

        return PostgresDatabase(scheme + url[len(scheme) :], schema=schema)  # libpq knows it in lower case only
    if scheme in ("spark+sc", "sc"):
        from almanaq.engines.spark.engine import SparkDatabase

        return SparkDatabase(url, schema=schema)
    if scheme in ("duckdb", "sqlite"):
        return _open_text(str(path_of_url(url)), schema, None, keep=True)
    if (added := _open_by_plugin(scheme, url, schema)) is not None:
        return added
    from almanaq.engines.ibis.engine import open_ibis_url

    return open_ibis_url(url, schema=schema)


def _open_by_plugin(scheme: str, url: str, schema: Schema | None) -> Database | None:
    """Return the database that another package opens for a scheme (`almanaq.databases`), None where none does."""
    from almanaq.engines.protocols import Database
    from almanaq.plugins import call_plugin

    made = call_plugin("almanaq.databases", scheme, url, schema=schema)
    if made is not None and not isinstance(made, Database):
        raise UsageError(f"the plug-in {scheme!r} gives a {type(made).__name__}, no Database")
    return made


def _open_object(source: Any, schema: Schema | None) -> Database:
    import duckdb

    from almanaq.engines.duckdb.engine import open_connection, open_tables
    from almanaq.engines.duckdb.frames import is_frame
    from almanaq.engines.protocols import Database

    if isinstance(source, Database):
        if schema is not None:
            raise UsageError(f"an opened database ({source.name}) has its schema already: leave schema out")
        return source
    raw = source if isinstance(source, duckdb.DuckDBPyConnection) else getattr(source, "con", None)
    if isinstance(raw, duckdb.DuckDBPyConnection):
        return open_connection(raw, schema=schema)
    if type(source).__module__.startswith("ibis.backends."):
        return _open_backend(source, schema)
    if isinstance(source, sqlite3.Connection):
        return open_sqlite_connection(source, _open_copy, schema)
    if is_sqlalchemy(source):
        return open_sqlalchemy(source, _open_copy, _open_url, schema)
    if isinstance(source, ADBCConnection):
        return open_tables(adbc_tables(source), name="adbc", schema=schema)
    if is_frame(source):
        return open_tables({"data": source}, name="data", schema=schema)
    raise UsageError(f"a {type(source).__name__} is no source: pass {SOURCES}")


def _open_copy(path: Path, schema: Schema | None) -> Database:
    """Open a copy that is there for the moment."""
    return _open_path(path, schema, None, keep=False)


def _open_backend(backend: Any, schema: Schema | None) -> Database:
    """Open what an ibis backend is connected to: PostgreSQL directly, others through ibis."""
    if backend.name == "postgres":
        from almanaq.engines.postgres.driver import driver
        from almanaq.engines.postgres.engine import PostgresDatabase

        info = backend.con.info
        written = driver().conninfo.make_conninfo(info.dsn, password=info.password or None)
        return PostgresDatabase(written, schema=schema)
    from almanaq.engines.ibis.engine import open_ibis_backend

    return open_ibis_backend(backend, schema=schema)


# --- within a deadline: the source is read in a thread of its own -----------------------------------------------------

_LOOK_SECONDS = 0.05
Opened = TypeVar("Opened", bound=interruption.Closed)


class _Opening(threading.Thread):
    """A source on its way: what was opened, or why it was not."""

    def __init__(self, work: Callable[[], object], cancellation: ReadCancellation) -> None:
        super().__init__(name="almanaq-opening")
        self.opened: list[object] = []
        self.failed: list[BaseException] = []
        self._work, self._cancellation = work, cancellation

    def run(self) -> None:
        cancellable_by(self._cancellation)
        try:
            self.opened.append(self._work())
        except BaseException as error:
            self.failed.append(error)


def open_within(work: Callable[[], Opened], seconds: float | None) -> Opened:
    """Return what `work` opens.

    Raises:
        DeadlineExceeded: it takes more than so many seconds; None: it may take any time.
    """
    cancellation = ReadCancellation()
    thread = interruption.track_helper(_Opening(work, cancellation))
    started = time.monotonic()
    thread.start()
    try:
        while thread.is_alive():
            thread.join(_wait(started, seconds, cancellation))
            if (
                thread.is_alive()
                and seconds is not None
                and time.monotonic() - started > seconds + cancellation.granted
            ):
                raise DeadlineExceeded(
                    f"the source was not opened within the deadline of {seconds:g} s: give it more, or open less of it"
                )
    except BaseException:
        _cancel(thread, cancellation)
        raise
    if thread.failed:
        raise thread.failed[0]
    return thread.opened[0]  # type: ignore[return-value]  # what the work gave


def _wait(started: float, seconds: float | None, cancellation: ReadCancellation) -> float | None:
    """Return how long to wait until the deadline may be over."""
    if seconds is None:
        return None
    return max(_LOOK_SECONDS, started + seconds + cancellation.granted - time.monotonic())


def _cancel(thread: _Opening, cancellation: ReadCancellation) -> None:
    """Ask a thread to end, wait a moment, and leave it else; what it opens all the same is closed."""

    def end() -> None:
        while thread.is_alive():
            cancellation.cancel()
            thread.join(_LOOK_SECONDS)
        for opened in thread.opened:
            opened.close()  # type: ignore[attr-defined]  # as above

    interruption.finish_detached(end)
