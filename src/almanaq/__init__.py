"""Asks questions of tables and of the text inside them.

`connect` opens a source; a `Connection` answers questions (`ask`), runs SUQL (`sql`, `stream`, DB-API cursors) and
explains it. `tables` finds the tables that answer a question. Importing this package loads nothing else: every public
name is fetched when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from almanaq.agent.conversation import Chat as Chat
    from almanaq.agent.response import Response as Response
    from almanaq.connection import Connection as Connection
    from almanaq.connection import connect as connect
    from almanaq.dbapi import BINARY as BINARY
    from almanaq.dbapi import DATETIME as DATETIME
    from almanaq.dbapi import NUMBER as NUMBER
    from almanaq.dbapi import ROWID as ROWID
    from almanaq.dbapi import STRING as STRING
    from almanaq.dbapi import Binary as Binary
    from almanaq.dbapi import Cursor as Cursor
    from almanaq.dbapi import Date as Date
    from almanaq.dbapi import DateFromTicks as DateFromTicks
    from almanaq.dbapi import Time as Time
    from almanaq.dbapi import TimeFromTicks as TimeFromTicks
    from almanaq.dbapi import Timestamp as Timestamp
    from almanaq.dbapi import TimestampFromTicks as TimestampFromTicks
    from almanaq.engines.open_source import Source as Source
    from almanaq.engines.protocols import Database as Database
    from almanaq.errors import AlmanaqError as AlmanaqError
    from almanaq.errors import BenchmarkError as BenchmarkError
    from almanaq.errors import BudgetExceeded as BudgetExceeded
    from almanaq.errors import DatabaseError as DatabaseError
    from almanaq.errors import DataError as DataError
    from almanaq.errors import DeadlineExceeded as DeadlineExceeded
    from almanaq.errors import Error as Error
    from almanaq.errors import IntegrityError as IntegrityError
    from almanaq.errors import InterfaceError as InterfaceError
    from almanaq.errors import InternalError as InternalError
    from almanaq.errors import MissingExtraError as MissingExtraError
    from almanaq.errors import ModelCallError as ModelCallError
    from almanaq.errors import ModelError as ModelError
    from almanaq.errors import NotSupportedError as NotSupportedError
    from almanaq.errors import OperationalError as OperationalError
    from almanaq.errors import ParameterError as ParameterError
    from almanaq.errors import ProgrammingError as ProgrammingError
    from almanaq.errors import QueryError as QueryError
    from almanaq.errors import QuerySyntaxError as QuerySyntaxError
    from almanaq.errors import QueryTypeError as QueryTypeError
    from almanaq.errors import RefusedQueryError as RefusedQueryError
    from almanaq.errors import SourceError as SourceError
    from almanaq.errors import UnknownNameError as UnknownNameError
    from almanaq.errors import UnsupportedError as UnsupportedError
    from almanaq.errors import UsageError as UsageError
    from almanaq.errors import Warning as Warning
    from almanaq.models.protocols import Embedder as Embedder
    from almanaq.models.protocols import LanguageModel as LanguageModel
    from almanaq.models.protocols import Reader as Reader
    from almanaq.options import Accuracy as Accuracy
    from almanaq.options import Options as Options
    from almanaq.suql.result import Evidence as Evidence
    from almanaq.suql.result import Result as Result
    from almanaq.suql.result import Trace as Trace
    from almanaq.table_search import IndexedTables as IndexedTables
    from almanaq.table_search import TableHit as TableHit
    from almanaq.table_search import Tables as Tables
    from almanaq.table_search import index as index
    from almanaq.table_search import tables as tables

    __version__: str

# DB-API 2.0 (PEP 249): threads may share the module, not connections; parameters are written `?`.
apilevel = "2.0"
threadsafety = 1
paramstyle = "qmark"

_HOMES = {
    "almanaq.agent.conversation": "Chat",
    "almanaq.agent.response": "Response",
    "almanaq.connection": "Connection connect",
    "almanaq.dbapi": "BINARY DATETIME NUMBER ROWID STRING Binary Cursor Date DateFromTicks Time TimeFromTicks "
    "Timestamp TimestampFromTicks",
    "almanaq.engines.protocols": "Database",
    "almanaq.engines.open_source": "Source",
    "almanaq.errors": "AlmanaqError BenchmarkError BudgetExceeded DataError DatabaseError DeadlineExceeded Error "
    "IntegrityError InterfaceError InternalError MissingExtraError ModelCallError ModelError NotSupportedError "
    "OperationalError ParameterError ProgrammingError QueryError QuerySyntaxError QueryTypeError RefusedQueryError "
    "SourceError UnknownNameError UnsupportedError UsageError Warning",
    "almanaq.models.protocols": "Embedder LanguageModel Reader",
    "almanaq.options": "Accuracy Options",
    "almanaq.suql.result": "Evidence Result Trace",
    "almanaq.table_search": "IndexedTables TableHit Tables index tables",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}
"""The module that defines each public name."""

__all__ = sorted([*_HOME, "__version__", "apilevel", "paramstyle", "threadsafety"])


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("almanaq")
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'almanaq' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return __all__
