"""open_database: the Database of a file, a folder, a bundled sample, a URL, or tables in memory."""

from __future__ import annotations

import os
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from almanaq.corpus.files.listing import DUCKDB, KNOWN, as_list, find_named_files, find_path, kind_of
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
    opener = _Opener(None if schema is None else read_schema(schema), keep, seconds, separate)
    if isinstance(source, Mapping):
        from almanaq.engines.duckdb.engine import open_tables

        return open_tables(source, schema=opener.schema)
    if isinstance(source, str | os.PathLike):
        named = find_named_files(str(source), allow_http=allow_http)
        if named is not None:
            return opener.open_files(named.paths, named.name, named.held)
        return opener.open_text(str(source))
    listed = as_list(source)
    return opener.open_object(source) if listed is None else opener.open_files(listed)


@dataclass(frozen=True, slots=True)
class _Opener:
    """Opens a source of any kind, with the arguments of open_database."""

    schema: Schema | None
    keep: bool
    seconds: float | None
    separate: bool

    def open_text(self, source: str) -> Database:
        if source.startswith(_SAMPLE):
            return _open_sample(source.removeprefix(_SAMPLE), self.schema)
        return self.open_url(source) if is_url(source) else self.open_path(find_path(source))

    def open_files(self, paths: Sequence[Path], name: str = "", held: object = None) -> Database:
        from almanaq.engines.files.load import open_files
        from almanaq.engines.files.table_cache import default_table_cache

        load = partial(
            open_files,
            paths,
            schema=self.schema or schema_beside(paths),
            cache=default_table_cache() if self.keep and held is None else None,
            name=name,
            held=held,
            seconds=self.seconds,
            separate=self.separate,
        )
        return open_within(load, self.seconds)

    def open_path(self, path: Path) -> Database:
        suffix = path.suffix.lower()
        if path.is_dir() or kind_of(path) is not None or suffix in SQLITE or is_sqlite(path):
            return self.open_files([path])
        from almanaq.engines.duckdb.engine import open_duckdb_file

        if suffix in DUCKDB:
            return open_duckdb_file(path, schema=self.schema or schema_beside([path]))
        known = ", ".join((*DUCKDB, *SQLITE, KNOWN))
        raise SourceError(
            f"{path.name}: files of this kind cannot be opened; known: a folder, or a file ending in {known}"
        )

    def open_url(self, url: str) -> Database:
        url = plain_url(url)
        scheme = url.partition("://")[0].lower()
        if scheme in ("postgres", "postgresql"):
            from almanaq.engines.postgres.engine import PostgresDatabase

            return PostgresDatabase(scheme + url[len(scheme) :], schema=self.schema)  # libpq wants it in lower case
        if scheme in ("spark+sc", "sc"):
            from almanaq.engines.spark.engine import SparkDatabase

            return SparkDatabase(url, schema=self.schema)
        if scheme in ("duckdb", "sqlite"):
            return self.open_text(str(path_of_url(url)))
        if (added := _open_by_plugin(scheme, url, self.schema)) is not None:
            return added
        from almanaq.engines.ibis.engine import open_ibis_url

        return open_ibis_url(url, schema=self.schema)

    def open_object(self, source: Any) -> Database:
        import duckdb

        from almanaq.engines.duckdb.engine import open_connection, open_tables
        from almanaq.engines.duckdb.frames import is_frame
        from almanaq.engines.protocols import Database

        if isinstance(source, Database):
            if self.schema is not None:
                raise UsageError(f"an opened database ({source.name}) has its schema already: leave schema out")
            return source
        raw = source if isinstance(source, duckdb.DuckDBPyConnection) else getattr(source, "con", None)
        if isinstance(raw, duckdb.DuckDBPyConnection):
            return open_connection(raw, schema=self.schema)
        if type(source).__module__.startswith("ibis.backends."):
            return _open_backend(source, self.schema)
        copies = replace(self, keep=False, seconds=None)  # they are there for the moment
        if isinstance(source, sqlite3.Connection):
            return open_sqlite_connection(source, copies.open_path)
        if is_sqlalchemy(source):
            return open_sqlalchemy(source, copies.open_path, self.open_url)
        if isinstance(source, ADBCConnection):
            return open_tables(adbc_tables(source), name="adbc", schema=self.schema)
        if is_frame(source):
            return open_tables({"data": source}, name="data", schema=self.schema)
        raise UsageError(f"a {type(source).__name__} is no source: pass {SOURCES}")


def _open_sample(name: str, schema: Schema | None) -> Database:
    from almanaq import sample
    from almanaq.engines.duckdb.engine import open_tables

    declared = schema or read_schema(sample.schema_path(name))
    return open_tables(sample.load(name).tables, name=_SAMPLE + name, schema=declared)


def _open_by_plugin(scheme: str, url: str, schema: Schema | None) -> Database | None:
    """Return the database that another package opens for a scheme (`almanaq.databases`), None where none does."""
    from almanaq.engines.protocols import Database
    from almanaq.plugins import call_plugin

    made = call_plugin("almanaq.databases", scheme, url, schema=schema)
    if made is not None and not isinstance(made, Database):
        raise UsageError(f"the plug-in {scheme!r} gives a {type(made).__name__}, no Database")
    return made


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


def open_within(work: Callable[[], Opened], seconds: float | None) -> Opened:
    """Return what `work` opens.

    Raises:
        DeadlineExceeded: it takes more than so many seconds; None: it may take any time.
    """
    cancellation, opening, started = ReadCancellation(), Future[Opened](), time.monotonic()

    def run() -> None:
        cancellable_by(cancellation)
        try:
            opening.set_result(work())
        except BaseException as error:
            opening.set_exception(error)

    def left() -> float | None:
        return None if seconds is None else started + seconds + cancellation.granted - time.monotonic()

    thread = interruption.track_helper(threading.Thread(target=run, name="almanaq-opening"))
    thread.start()
    try:
        while not opening.done():
            if (remaining := left()) is not None and remaining < 0:
                raise DeadlineExceeded(
                    f"the source was not opened within the deadline of {seconds:g} s: give it more, or open less of it"
                )
            wait([opening], None if remaining is None else max(_LOOK_SECONDS, remaining))
    except BaseException:
        _cancel(opening, cancellation)
        raise
    return opening.result()


def _cancel(opening: Future[Opened], cancellation: ReadCancellation) -> None:
    """Ask a thread to end, wait a moment, and leave it else; what it opens all the same is closed."""

    def end() -> None:
        while not opening.done():
            cancellation.cancel()
            wait([opening], _LOOK_SECONDS)
        if opening.exception() is None:
            opening.result().close()

    interruption.finish_detached(end)
