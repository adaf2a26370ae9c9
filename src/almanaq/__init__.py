"""Asks questions of tables and of the text inside them.

`connect` opens a source; a `Connection` answers questions (`ask`), runs SUQL (`sql`, `stream`, DB-API cursors) and
explains it. `tables` finds the tables that answer a question. Importing this package loads nothing else: every public
name is fetched when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from almanaq.agent.conversation import Chat
    from almanaq.agent.response import Response
    from almanaq.connection import Connection, connect
    from almanaq.dbapi import (
        BINARY,
        DATETIME,
        NUMBER,
        ROWID,
        STRING,
        Binary,
        Cursor,
        Date,
        DateFromTicks,
        Time,
        TimeFromTicks,
        Timestamp,
        TimestampFromTicks,
    )
    from almanaq.engines.open_source import Source
    from almanaq.engines.protocols import Database
    from almanaq.errors import (
        AlmanaqError,
        BenchmarkError,
        BudgetExceeded,
        DatabaseError,
        DataError,
        DeadlineExceeded,
        Error,
        IntegrityError,
        InterfaceError,
        InternalError,
        MissingExtraError,
        ModelCallError,
        ModelError,
        NotSupportedError,
        OperationalError,
        ParameterError,
        ProgrammingError,
        QueryError,
        QuerySyntaxError,
        QueryTypeError,
        RefusedQueryError,
        SourceError,
        UnknownNameError,
        UnsupportedError,
        UsageError,
        Warning,
    )
    from almanaq.models.protocols import Embedder, LanguageModel, Reader
    from almanaq.options import Accuracy, Options
    from almanaq.suql.result import Evidence, Result, Trace
    from almanaq.table_search import IndexedTables, TableHit, Tables, index, tables

    __version__: str

# DB-API 2.0 (PEP 249): threads may share the module, not connections; parameters are written `?`.
apilevel = "2.0"
threadsafety = 1
paramstyle = "qmark"

_HOMES = {
    "almanaq.agent.conversation": ("Chat",),
    "almanaq.agent.response": ("Response",),
    "almanaq.connection": ("Connection", "connect"),
    "almanaq.dbapi": (
        "BINARY",
        "Binary",
        "Cursor",
        "DATETIME",
        "Date",
        "DateFromTicks",
        "NUMBER",
        "ROWID",
        "STRING",
        "Time",
        "TimeFromTicks",
        "Timestamp",
        "TimestampFromTicks",
    ),
    "almanaq.errors": (
        "AlmanaqError",
        "BenchmarkError",
        "BudgetExceeded",
        "DataError",
        "DatabaseError",
        "DeadlineExceeded",
        "Error",
        "IntegrityError",
        "InterfaceError",
        "InternalError",
        "MissingExtraError",
        "ModelCallError",
        "ModelError",
        "NotSupportedError",
        "OperationalError",
        "ParameterError",
        "ProgrammingError",
        "QueryError",
        "QuerySyntaxError",
        "QueryTypeError",
        "RefusedQueryError",
        "SourceError",
        "UnknownNameError",
        "UnsupportedError",
        "UsageError",
        "Warning",
    ),
    "almanaq.models.protocols": (
        "Embedder",
        "LanguageModel",
        "Reader",
    ),
    "almanaq.engines.protocols": ("Database",),
    "almanaq.engines.open_source": ("Source",),
    "almanaq.options": ("Accuracy", "Options"),
    "almanaq.suql.result": (
        "Evidence",
        "Result",
        "Trace",
    ),
    "almanaq.table_search": (
        "IndexedTables",
        "TableHit",
        "Tables",
        "index",
        "tables",
    ),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}
"""The module that defines each public name."""

__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Accuracy",
    "AlmanaqError",
    "BenchmarkError",
    "Binary",
    "BudgetExceeded",
    "Chat",
    "Connection",
    "Cursor",
    "DataError",
    "Database",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "DeadlineExceeded",
    "Embedder",
    "Error",
    "Evidence",
    "IndexedTables",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "LanguageModel",
    "MissingExtraError",
    "ModelCallError",
    "ModelError",
    "NotSupportedError",
    "OperationalError",
    "Options",
    "ParameterError",
    "ProgrammingError",
    "QueryError",
    "QuerySyntaxError",
    "QueryTypeError",
    "Reader",
    "RefusedQueryError",
    "Response",
    "Result",
    "Source",
    "SourceError",
    "TableHit",
    "Tables",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Trace",
    "UnknownNameError",
    "UnsupportedError",
    "UsageError",
    "Warning",
    "__version__",
    "apilevel",
    "connect",
    "index",
    "paramstyle",
    "tables",
    "threadsafety",
]


def __getattr__(name: str) -> Any:
    """Fetch a public name from the module that defines it (PEP 562)."""
    if name == "__version__":
        from importlib.metadata import version

        return version("almanaq")
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'almanaq' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return __all__
