"""What PostgreSQL says of a statement that it does not take, as an error of ours, with the names that it offers."""

from __future__ import annotations

import re

from almanaq.errors import DatabaseError, QueryTypeError, UnknownNameError, engine_error

_UNKNOWN = ("UndefinedColumn", "UndefinedTable", "InvalidSchemaName")
_MISTYPED = ("UndefinedFunction", "UndefinedObject", "DatatypeMismatch", "GroupingError", "AmbiguousColumn")
_OFFERED = re.compile(r'"([^"]+)"')


def server_error(error: Exception, message: str) -> DatabaseError:
    """Return an error of the server as ours: a QueryError where the query is at fault.

    Args:
        message: its first line, as it is shown.
    """
    kinds = {base.__name__ for base in type(error).__mro__}
    hint = str(getattr(getattr(error, "diag", None), "message_hint", None) or "")
    if hint.startswith("Perhaps you meant"):
        offered = [name.split(".")[-1] for name in _OFFERED.findall(hint)]
        message += f"; did you mean {' or '.join(map(repr, dict.fromkeys(offered)))}?" if offered else ""
    if kinds.intersection(_UNKNOWN):
        return UnknownNameError(message)
    return QueryTypeError(message) if kinds.intersection(_MISTYPED) else engine_error(message, type(error))
