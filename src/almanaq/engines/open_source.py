"""What connect() takes as a source, as types and in words; open_database gives the Database of one.

>>> import almanaq, sqlite3
>>> import pyarrow as pa
>>> lite = sqlite3.connect(":memory:")
>>> _ = lite.executescript("CREATE TABLE dogs (name TEXT); INSERT INTO dogs VALUES ('Rex')")
>>> for source in (lite, {"dogs": {"name": ["Rex"]}}, {"dogs": pa.table({"name": ["Rex"]})}):
...     almanaq.connect(source).sql("SELECT name FROM dogs").rows
[('Rex',)]
[('Rex',)]
[('Rex',)]
>>> almanaq.connect(pa.table({"name": ["Rex"]})).sql("SELECT name FROM data").rows
[('Rex',)]
"""

from __future__ import annotations

import os
import re
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, runtime_checkable

from almanaq.corpus.files.listing import (
    DUCKDB,
    KNOWN,
    STDIN,
    as_list,
    find_named_files,
    find_path,
    kind_of,
    list_paths,
)
from almanaq.corpus.read_cancellation import ReadCancellation, cancellable_by
from almanaq.corpus.sqlite import SQLITE, is_sqlite
from almanaq.engines import interruption
from almanaq.engines.protocols import Database
from almanaq.errors import DeadlineExceeded, SourceError, UsageError, first_line
from almanaq.suql.catalog.schema_file import Schema, read_schema, schema_beside
from almanaq.text.sql_literals import quote

if TYPE_CHECKING:
    import duckdb


class ArrowStream(Protocol):
    """A table of any library: of Arrow, pandas, polars, DuckDB, or a Result of ours."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...


class SQLAlchemyEngine(Protocol):
    """An engine, or a connection, of SQLAlchemy."""

    @property
    def dialect(self) -> Any: ...

    @property
    def engine(self) -> Any: ...


@runtime_checkable
class ADBCConnection(Protocol):
    """A connection of an ADBC driver's `dbapi`."""

    def adbc_get_objects(self, *, depth: Any = "all") -> Any: ...

    def cursor(self) -> Any: ...


class IbisBackend(Protocol):
    """A connection of ibis."""

    def raw_sql(self, query: Any) -> Any: ...

    def list_tables(self) -> Any: ...


Source: TypeAlias = (
    "str | os.PathLike[str] | Mapping[str, ArrowStream | Mapping[str, Any]] | ArrowStream | duckdb.DuckDBPyConnection"
    " | sqlite3.Connection | SQLAlchemyEngine | ADBCConnection | IbisBackend | Database"
)
"""What connect() opens; SOURCES says it in words."""

SOURCES = (
    "a path or a list of paths; a URL; a mapping of names to tables; one table (Arrow, pandas, polars); "
    "a connection of duckdb, sqlite3, SQLAlchemy (or its engine or URL), ADBC or ibis; or a Database"
)

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
            one such file, a list of them, a glob, `-` (standard input), `sample:restaurants`, or as SOURCES says.
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


def list_source_files(source: str) -> list[Path]:
    """Return the files that a source in words is read from; none of a server, a stream or a sample."""
    if source == STDIN or source.startswith(_SAMPLE):
        return []
    if is_url(source):
        return [path_of_url(source)] if re.match("(duckdb|sqlite)[+:]", source, re.IGNORECASE) else []
    named = find_named_files(source)
    paths = [find_path(source)] if named is None else named.paths
    listing = list_paths(path for path in paths if path.is_dir())
    inner = [path for found in listing.files for path in found.paths]
    return [*(path for path in paths if not path.is_dir()), *inner, *listing.databases]


@dataclass(frozen=True, slots=True)
class _Opener:
    """Opens a source of any kind, with the arguments of open_database."""

    schema: Schema | None
    keep: bool
    seconds: float | None
    separate: bool

    def open_text(self, source: str) -> Database:
        if not source.startswith(_SAMPLE):
            return self.open_url(source) if is_url(source) else self.open_path(find_path(source))
        from almanaq import sample
        from almanaq.engines.duckdb.engine import open_tables

        name = source.removeprefix(_SAMPLE)
        declared = self.schema or read_schema(sample.schema_path(name))
        return open_tables(sample.load(name).tables, name=source, schema=declared)

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
        from almanaq.plugins import call_plugin

        if (added := call_plugin("almanaq.databases", scheme, url, schema=self.schema)) is not None:
            if not isinstance(added, Database):
                raise UsageError(f"the plug-in {scheme!r} gives a {type(added).__name__}, no Database")
            return added
        from almanaq.engines.ibis.engine import open_ibis_url

        return open_ibis_url(url, schema=self.schema)

    def open_object(self, source: Any) -> Database:
        import duckdb

        from almanaq.engines.duckdb.engine import open_connection, open_tables
        from almanaq.engines.duckdb.frames import is_frame

        if isinstance(source, Database):
            if self.schema is not None:
                raise UsageError(f"an opened database ({source.name}) has its schema already: leave schema out")
            return source
        raw = source if isinstance(source, duckdb.DuckDBPyConnection) else getattr(source, "con", None)
        if isinstance(raw, duckdb.DuckDBPyConnection):
            return open_connection(raw, schema=self.schema)
        if type(source).__module__.startswith("ibis.backends."):
            return self._open_backend(source)
        if isinstance(source, sqlite3.Connection):
            return self._open_sqlite(source)
        if any(kind.__module__.startswith("sqlalchemy.") for kind in type(source).__mro__):
            return self._open_sqlalchemy(source)
        if isinstance(source, ADBCConnection):
            return open_tables(adbc_tables(source), name="adbc", schema=self.schema)
        if is_frame(source):
            return open_tables({"data": source}, name="data", schema=self.schema)
        raise UsageError(f"a {type(source).__name__} is no source: pass {SOURCES}")

    def _open_backend(self, backend: Any) -> Database:
        """Open what an ibis backend is connected to: PostgreSQL directly, others through ibis."""
        if backend.name == "postgres":
            from almanaq.engines.postgres.driver import driver
            from almanaq.engines.postgres.engine import PostgresDatabase

            info = backend.con.info
            written = driver().conninfo.make_conninfo(info.dsn, password=info.password or None)
            return PostgresDatabase(written, schema=self.schema)
        from almanaq.engines.ibis.engine import open_ibis_backend

        return open_ibis_backend(backend, schema=self.schema)

    def _open_sqlite(self, connection: sqlite3.Connection) -> Database:
        """Load what a connection sees now, its own uncommitted changes included; it stays the user's."""
        with tempfile.TemporaryDirectory(prefix="almanaq-") as folder:
            try:
                files = [row[2] for row in connection.execute("PRAGMA database_list") if row[1] == "main"]
                path = Path(folder) / (Path(files[0]).name if files and files[0] else "memory.sqlite")
                path.write_bytes(connection.serialize())  # a backup would wait for the end of the user's transaction
            except sqlite3.Error as error:
                raise SourceError(f"the sqlite3 connection cannot be read ({error})") from error
            return replace(self, keep=False, seconds=None).open_path(path)  # the copy is there for the moment

    def _open_sqlalchemy(self, source: Any) -> Database:
        """Open what an engine, a connection or a URL leads to, by a connection of our own where there can be."""
        engine = getattr(source, "engine", None)
        url = source if hasattr(source, "render_as_string") else getattr(engine, "url", None)
        if url is None:
            raise UsageError(f"a SQLAlchemy {type(source).__name__} is no source: pass its engine, or the URL")
        if engine is None or url.get_backend_name() != "sqlite":
            return self.open_url(url.render_as_string(hide_password=False))
        if hasattr(source, "connection"):  # what it is connected to: a database in memory has no other name
            return self._open_sqlite(source.connection.driver_connection)
        with closing(engine.raw_connection()) as held:
            return self._open_sqlite(held.driver_connection)


def plain_url(url: str) -> str:
    """Return a URL as databases know it: SQLAlchemy's names a driver, too (`postgresql+psycopg://…`).

    >>> plain_url("postgresql+psycopg2://me@host/shop"), plain_url("spark+sc://host:1")
    ('postgresql://me@host/shop', 'spark+sc://host:1')
    """
    scheme, separator, rest = url.partition("://")
    backend, plus, _ = scheme.partition("+")
    return f"{backend}{separator}{rest}" if plus and backend.lower() not in ("spark", "databricks") else url


def path_of_url(url: str) -> Path:
    """Return the file of a URL such as `sqlite:///shop.db`: three slashes before a relative path, four before another.

    >>> path_of_url("sqlite:///shop.db"), path_of_url("duckdb:////data/shop.duckdb")
    (PosixPath('shop.db'), PosixPath('/data/shop.duckdb'))
    """
    scheme, _, rest = url.partition("://")
    path = rest.partition("?")[0].removeprefix("/")
    if not path or path == ":memory:":
        raise UsageError(
            f"{url!r} names a database in memory, which only its own connection sees: pass that connection"
        )
    if not rest.startswith("/"):
        raise UsageError(f"{url!r} names a host; a {scheme} file is named by its path, or by {scheme}:///PATH")
    return Path(path)


# --- ADBC ------------------------------------------------------------------------------------------------------------

_SYSTEM_SCHEMAS = ("pg_catalog", "information_schema", "pg_toast", "sys", "mysql", "performance_schema")


def adbc_tables(connection: Any) -> Mapping[str, Any]:
    """Return the tables and views of an ADBC connection by name, whole; those of several schemas as `schema.table`."""
    try:
        places = [
            (schema["db_schema_name"] or "", table["table_name"])
            for catalog in connection.adbc_get_objects(depth="tables").read_all().to_pylist()
            for schema in catalog["catalog_db_schemas"] or ()
            for table in schema["db_schema_tables"] or ()
            if str(schema["db_schema_name"]).lower() not in _SYSTEM_SCHEMAS
            if re.search("table|view", str(table["table_type"]).lower())
            and not table["table_name"].startswith("sqlite_")
        ]
        names = [table.casefold() for _, table in places]
        found = {}
        for place, table in places:
            name = table if names.count(table.casefold()) == 1 or not place else f"{place}.{table}"
            with connection.cursor() as cursor:
                cursor.execute(f"SELECT * FROM {quote(*filter(None, (place, table)))}")
                found[name] = cursor.fetch_arrow_table()
    except Exception as error:  # each driver has errors of its own
        raise SourceError(f"the ADBC connection cannot be read: {first_line(error)}") from error
    if not found:
        raise SourceError("the ADBC connection sees no table")
    return found


# --- within a deadline: the source is read in a thread of its own -----------------------------------------------------

_LOOK_SECONDS = 0.05
T = TypeVar("T")


def open_within(work: Callable[[], T], seconds: float | None) -> T:
    """Return what `work` opens; raise DeadlineExceeded where it takes more than so many seconds (None: any)."""
    cancellation, opening, started = ReadCancellation(), Future[T](), time.monotonic()

    def run() -> None:
        cancellable_by(cancellation)
        try:
            opening.set_result(work())
        except BaseException as error:
            opening.set_exception(error)

    def end() -> None:
        while not opening.done():
            cancellation.cancel()
            wait([opening], _LOOK_SECONDS)
        if opening.exception() is None:
            opened: Any = opening.result()
            opened.close()

    interruption.track_helper(threading.Thread(target=run, name="almanaq-opening")).start()
    try:
        while not opening.done():
            left = None if seconds is None else started + seconds + cancellation.granted - time.monotonic()
            if left is not None and left < 0:
                raise DeadlineExceeded(
                    f"the source was not opened within the deadline of {seconds:g} s: give it more, or open less of it"
                )
            wait([opening], None if left is None else max(_LOOK_SECONDS, left))
    except BaseException:
        interruption.finish_detached(end)  # what is opened all the same is closed
        raise
    return opening.result()
