"""What connect() takes as a source, as types and in words; and sources that other libraries have opened.

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
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable
from urllib.parse import unquote

from almanaq.engines.protocols import Database
from almanaq.errors import SourceError, UsageError, first_line
from almanaq.text.sql_literals import quote

if TYPE_CHECKING:
    import duckdb


@runtime_checkable
class ArrowStream(Protocol):
    """A table of any library: of Arrow, pandas, polars, DuckDB, or a Result of ours."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...


@runtime_checkable
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


@runtime_checkable
class IbisBackend(Protocol):
    """A connection of ibis."""

    def raw_sql(self, query: Any) -> Any: ...

    def list_tables(self) -> Any: ...


Source: TypeAlias = (
    "str | os.PathLike[str] | Mapping[str, ArrowStream | Mapping[str, Any]] | ArrowStream | duckdb.DuckDBPyConnection"
    " | sqlite3.Connection | SQLAlchemyEngine | ADBCConnection | IbisBackend | Database"
)
"""Whatever connect() opens; SOURCES says it in words."""

SOURCES = (
    "a path or a list of paths; a URL; a mapping of names to tables; one table (Arrow, pandas, polars); "
    "a connection of duckdb, sqlite3, SQLAlchemy (or its engine or URL), ADBC or ibis; or a Database"
)


OpenPath = Callable[[Path], Database]

_SYSTEM_SCHEMAS = ("pg_catalog", "information_schema", "pg_toast", "sys", "mysql", "performance_schema")


# --- sqlite3 ---------------------------------------------------------------------------------------------------------


def open_sqlite_connection(connection: sqlite3.Connection, open_path: OpenPath) -> Database:
    """Load what a sqlite3 connection sees now, its own uncommitted changes included; the connection stays the user's.

    Raises:
        SourceError: it is closed, or cannot be read.
    """
    with tempfile.TemporaryDirectory(prefix="almanaq-") as folder:
        try:
            files = [row[2] for row in connection.execute("PRAGMA database_list") if row[1] == "main"]
            path = Path(folder) / (Path(files[0]).name if files and files[0] else "memory.sqlite")
            path.write_bytes(connection.serialize())  # a backup would wait for the end of the user's transaction
        except sqlite3.Error as error:
            raise SourceError(f"the sqlite3 connection cannot be read ({error})") from error
        return open_path(path)


# --- SQLAlchemy ------------------------------------------------------------------------------------------------------


def is_sqlalchemy(source: object) -> bool:
    """Return whether an object is an engine, a connection or a URL of SQLAlchemy, of which nothing is imported."""
    return any(kind.__module__.startswith("sqlalchemy.") for kind in type(source).__mro__)


def open_sqlalchemy(source: Any, open_path: OpenPath, open_url: Callable[[str], Database]) -> Database:
    """Open what an engine, a connection or a URL of SQLAlchemy leads to, by a connection of our own where there can be.

    Raises:
        UsageError: it is another of SQLAlchemy's objects, as a session.
    """
    engine = getattr(source, "engine", None)
    url = source if hasattr(source, "render_as_string") else getattr(engine, "url", None)
    if url is None:
        raise UsageError(f"a SQLAlchemy {type(source).__name__} is no source: pass its engine, or the URL")
    if engine is None or url.get_backend_name() != "sqlite":
        return open_url(url.render_as_string(hide_password=False))
    if hasattr(source, "connection"):  # what it is connected to: a database in memory has no other name
        return open_sqlite_connection(source.connection.driver_connection, open_path)
    held = engine.raw_connection()
    try:
        return open_sqlite_connection(held.driver_connection, open_path)
    finally:
        held.close()


def plain_url(url: str) -> str:
    """Return a URL as databases know it: SQLAlchemy's names a driver, too (`postgresql+psycopg://…`).

    >>> plain_url("postgresql+psycopg2://me@host/shop"), plain_url("spark+sc://host:1")
    ('postgresql://me@host/shop', 'spark+sc://host:1')
    """
    scheme, separator, rest = url.partition("://")
    backend, plus, _ = scheme.partition("+")
    return f"{backend}{separator}{rest}" if plus and backend.lower() not in ("spark", "databricks") else url


def path_of_url(url: str) -> Path:
    """Return the file that a URL such as `sqlite:///shop.db` names: three slashes before a relative path, four before
    an
    absolute one.

    >>> path_of_url("sqlite:///shop.db"), path_of_url("duckdb:////data/shop.duckdb")
    (PosixPath('shop.db'), PosixPath('/data/shop.duckdb'))

    Raises:
        UsageError: it names a database in memory.
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


def adbc_tables(connection: Any) -> Mapping[str, Any]:
    """Return the tables and views of an ADBC connection by name, whole; those of several schemas as `schema.table`.

    Raises:
        SourceError: there is none, or one cannot be read.
    """
    try:
        objects = connection.adbc_get_objects(depth="tables").read_all().to_pylist()
        places = list(_adbc_places(objects))
        names = [table.casefold() for _, table in places]
        found = {}
        for place, table in places:
            name = table if names.count(table.casefold()) == 1 or not place else f"{place}.{table}"
            quoted = quote(*filter(None, (place, table)))
            with connection.cursor() as cursor:
                cursor.execute(f"SELECT * FROM {quoted}")
                found[name] = cursor.fetch_arrow_table()
    except Exception as error:  # each driver has errors of its own
        raise SourceError(f"the ADBC connection cannot be read: {first_line(error)}") from error
    if not found:
        raise SourceError("the ADBC connection sees no table")
    return found


def _adbc_places(objects: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield schema, "" where there is none, and name of each table and view."""
    for catalog in objects:
        for schema in catalog["catalog_db_schemas"] or ():
            place = schema["db_schema_name"] or ""
            for table in schema["db_schema_tables"] or ():
                kind = str(table["table_type"]).lower()
                if ("table" in kind or "view" in kind) and place.lower() not in _SYSTEM_SCHEMAS:
                    if not table["table_name"].startswith("sqlite_"):
                        yield place, table["table_name"]


# --- passwords in URLs ------------------------------------------------------------------------------------------------

_PASSWORD = re.compile(r"://[^:/@]*:(?P<url>.+)@|[?&\s]password=(?P<parameter>[^\s&]+)")
_RESERVED = re.compile(r"[/@:?#\[\]\s]")


def find_secret(url: str) -> str:
    """Return the password in a URL, "" when there is none.

    Raises:
        SourceError: it would be read as host or path, and printed by whoever cannot reach them.
    """
    match = _PASSWORD.search(url)
    secret = (match["url"] or match["parameter"]) if match else ""
    if match and match["url"] and _RESERVED.search(secret):
        raise SourceError("the password in the URL must be percent-encoded: / is %2F, @ is %40")
    return secret or ""


def hide(message: str, *secrets: str) -> str:
    """Return a message without any of the secrets, however they are written."""
    for written in {form for secret in secrets for form in (secret, unquote(secret))} - {""}:
        message = message.replace(written, "***")
    return message
