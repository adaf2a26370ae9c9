"""Errors of the database that name a part of the query, with their place in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from almanaq.errors import DatabaseError, PrivateColumnError, QueryError, UnknownNameError, is_engine_error, pointer
from almanaq.suql.catalog.relations import Catalog

_OFFER = "; did you mean "
_NAMED = re.compile(r"""'([^']+)'|"([^"]+)"|(?:source column|Type with name|column(?= \S+ does)) ([\w.]+)""")
_IN_THE_QUERY = ("binder", "conversion", "invalid input syntax", "must appear in the group by", "function")


@contextmanager
def errors_placed(query: str, catalog: Catalog) -> Iterator[None]:
    """Give errors of a query that are raised within the block a pointer to what they name.

    A name that means nothing only because its column is withheld raises PrivateColumnError.
    """
    try:
        yield
    except DatabaseError as error:
        raise placed(_withheld(error, query, catalog), query) from error.__cause__


def _withheld(error: DatabaseError, query: str, catalog: Catalog) -> DatabaseError:
    named_last = sorted(catalog.relations, key=lambda r: r.location[-1].lower() in query.lower())
    private = {name.lower(): f"{r.name}.{name}" for r in named_last for name in r.withheld}
    unknown = isinstance(error, UnknownNameError) or isinstance(error.__cause__, UnknownNameError)
    if not private or not unknown or not isinstance(error, QueryError):
        return error
    named = [_name(found) for found in _NAMED.finditer(str(error).partition(_OFFER)[0])]
    for table in named[:1]:  # DuckDB says of a column of a subquery that there is no such table
        named += re.findall(rf'\b{re.escape(table)}"?\s*\.\s*"?(\w+)', query, re.IGNORECASE)
    column = next((private[name.lower()] for name in named if name.lower() in private), None)
    if column is None:
        return error
    message = f"{column} is private: no query here may read it; leave it out"
    return PrivateColumnError(message, query=error.query, start=error.start, end=error.end)


def _name(found: re.Match[str]) -> str:
    return found[1] or (found[2] or found[3]).split(".")[-1]


def placed(error: DatabaseError, query: str) -> DatabaseError:
    """Return an error of the database with a pointer to what it names, if that stands in the query."""
    message = str(error)
    of_query = isinstance(error, QueryError) and error.query is None
    if not of_query and not (is_engine_error(error) and any(sign in message.lower() for sign in _IN_THE_QUERY)):
        return error
    for found in _NAMED.finditer(message.partition(_OFFER)[0]):
        name = _name(found)
        as_literal = re.search(re.escape("'" + name.replace("'", "''") + "'"), query)
        bare = re.escape(name.split("(")[0])
        as_name = re.search(rf"(?<![\w'\"]){bare}\b|([\"`]){bare}\1", query, re.IGNORECASE)
        place = as_literal or as_name
        if place is not None:
            start, end = place.start(), place.end() - 1
            if isinstance(error, QueryError):
                return type(error)(message, query=query, start=start, end=end)
            return type(error)(message + pointer(query, start, end))
    return error
