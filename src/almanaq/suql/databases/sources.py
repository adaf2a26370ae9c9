"""What connect() takes as a source, as a type and in words.

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
import sqlite3
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    import duckdb

    from almanaq.suql.databases.protocols import Database


@runtime_checkable
class ArrowStream(Protocol):
    """A table of whatever library: of Arrow, pandas, polars, DuckDB, or a Result of ours."""

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
