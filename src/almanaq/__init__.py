"""Asks questions of tables and of the text inside them.

`connect` opens a source; a `Connection` answers questions (`ask`), runs SUQL (`sql`, `stream`, DB-API cursors) and
explains it. Importing this package loads nothing else: every public name is fetched when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from almanaq.connection import Connection, Cursor, connect
    from almanaq.errors import AlmanaqError, BudgetExceeded, DatabaseError, Error
    from almanaq.suql.options import Options
    from almanaq.suql.result import Evidence, Result, Trace

__version__ = "0.1.0"

# DB-API 2.0 (PEP 249): threads may share the module, not connections; parameters are written `?`.
apilevel = "2.0"
threadsafety = 1
paramstyle = "qmark"

_HOMES = {
    "AlmanaqError": "almanaq.errors",
    "BudgetExceeded": "almanaq.errors",
    "Connection": "almanaq.connection",
    "Cursor": "almanaq.connection",
    "DatabaseError": "almanaq.errors",
    "Error": "almanaq.errors",
    "Evidence": "almanaq.suql.result",
    "Options": "almanaq.suql.options",
    "Result": "almanaq.suql.result",
    "Trace": "almanaq.suql.result",
    "connect": "almanaq.connection",
}

__all__ = [
    "AlmanaqError",
    "BudgetExceeded",
    "Connection",
    "Cursor",
    "DatabaseError",
    "Error",
    "Evidence",
    "Options",
    "Result",
    "Trace",
    "__version__",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
]


def __getattr__(name: str) -> Any:
    """Fetch a public name from the module that defines it (PEP 562)."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'almanaq' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return __all__
