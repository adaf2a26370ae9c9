"""Errors of the database that name a part of the query: with their place in it, and with what is private called so."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from almanaq.errors import DatabaseError, PrivateColumnError, QueryError, UnknownNameError, is_engine_error, pointer

_NAMED = re.compile(r"""'([^']+)'|"([^"]+)"|(?:source column|Type with name) (\w+)""")
_IN_THE_QUERY = ("binder", "conversion", "invalid input syntax", "must appear in the group by", "function")


@contextmanager
def errors_placed(query: str, withheld: Mapping[str, str] | None = None) -> Iterator[None]:
    """Give errors of a query that are raised within the block a pointer to what they name.

    Args:
        withheld: columns that no query may read, in lower case, and the relation of each: one that the engine finds
            missing is a PrivateColumnError.
    """
    try:
        yield
    except DatabaseError as error:
        raise placed(_as_private(error, query, withheld or {}), query) from error.__cause__


def _as_private(error: DatabaseError, query: str, withheld: Mapping[str, str]) -> DatabaseError:
    """Return the error of a column that a query may not read where its name means nothing to the engine."""
    if not isinstance(error, UnknownNameError) and "does not exist" not in str(error):
        return error
    for found in _NAMED.finditer(str(error)):
        name = (found[1] or found[2] or found[3]).split(".")[-1].lower()
        relation = withheld.get(name)
        if relation is not None and re.search(rf"\b{re.escape(relation)}\b", query, re.IGNORECASE):
            private = f'{relation}."{name}" is private: no query here may read it; leave it out'
            return PrivateColumnError(private)
    return error


def placed(error: DatabaseError, query: str) -> DatabaseError:
    """Return an error of the database with a pointer to what it names, if that stands in the query."""
    message = str(error)
    of_query = isinstance(error, QueryError) and error.query is None
    if not of_query and not (is_engine_error(error) and any(sign in message.lower() for sign in _IN_THE_QUERY)):
        return error
    for found in _NAMED.finditer(message):
        name = found[1] or (found[2] or found[3]).split(".")[-1]
        as_literal = re.search(re.escape("'" + name.replace("'", "''") + "'"), query)
        as_name = re.search(rf"(?<![\w'\"]){re.escape(name.split('(')[0])}\b", query, re.IGNORECASE)
        place = as_literal or as_name
        if place is not None:
            start, end = place.start(), place.end() - 1
            if isinstance(error, QueryError):
                return type(error)(message, query=query, start=start, end=end)
            return type(error)(message + pointer(query, start, end))
    return error
