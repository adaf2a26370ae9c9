"""What DuckDB says of a statement, as an error of ours: its first line, and the names that it offers instead."""

from __future__ import annotations

import re

import duckdb

from almanaq.errors import DatabaseError, QueryTypeError, UnknownNameError, engine_error, first_line

_OFFERED = re.compile(r"^(?:Candidate bindings?: |Did you mean )(.*)$", re.MULTILINE)
_NAME = re.compile(r'"((?:[^"]|"")+)"')
_NO_NUMBER = re.compile(r"Could not convert string '.*' to (\w+) when casting from source column (\S+)")
_UNKNOWN = re.compile(r'Referenced (?:column|table) "|does not have a column named|(?:Table|Function) with name')


def message_of(error: BaseException) -> str:
    """Return the first line of an error of DuckDB, with the nearest names that it knows.

    >>> said = 'Binder Error: Referenced column "nmae" not found!\\nCandidate bindings: "name"'
    >>> message_of(duckdb.BinderException(said))
    'Binder Error: Referenced column "nmae" not found; did you mean \\'name\\'?'
    """
    first = first_line(error)
    offered = _OFFERED.search(str(error))
    names = [name.split(".")[-1] for name in _NAME.findall(offered[1])] if offered is not None else []
    nearest = " or ".join(map(repr, dict.fromkeys(names[:3])))
    return f"{first.removesuffix('!')}; did you mean {nearest}?" if names else first


def binding_error(error: duckdb.Error) -> DatabaseError:
    """Return the error of a query that DuckDB does not bind: an UnknownNameError where a name means nothing."""
    message = message_of(error)
    if _UNKNOWN.search(message):
        return UnknownNameError(message)
    if isinstance(error, duckdb.BinderException | duckdb.CatalogException):
        return QueryTypeError(message)
    return engine_error(message, type(error))


def advise(message: str) -> str:
    """Return what DuckDB says of a value, with what to do about a column of text that is compared with numbers.

    >>> advise("Conversion Error: Could not convert string 'x2' to INT32 when casting from source column id")[-68:]
    'compare id::VARCHAR with text, or try_cast(id AS INT32) with numbers'
    """
    found = _NO_NUMBER.search(message)
    if found is None:
        return message
    kind, name = found.groups()
    return f"{message}: compare {name}::VARCHAR with text, or try_cast({name} AS {kind}) with numbers"
