"""Errors of the database that name a part of the query, with their place in it."""

from __future__ import annotations

import re

from almanaq.errors import DatabaseError, is_engine_error, pointer

_NAMED = re.compile(r"""'([^']+)'|"([^"]+)"|source column (\w+)""")
_IN_THE_QUERY = ("binder", "conversion", "invalid input syntax", "must appear in the group by", "function")


def placed(error: DatabaseError, query: str) -> DatabaseError:
    """Return an error of the database with a pointer to what it names, if that stands in the query."""
    message = str(error)
    if not is_engine_error(error) or not any(sign in message.lower() for sign in _IN_THE_QUERY):
        return error
    for found in _NAMED.finditer(message):
        name = found[1] or (found[2] or found[3]).split(".")[-1]
        as_literal = re.search(re.escape("'" + name.replace("'", "''") + "'"), query)
        as_name = re.search(rf"(?<![\w'\"]){re.escape(name.split('(')[0])}\b", query, re.IGNORECASE)
        place = as_literal or as_name
        if place is not None:
            return type(error)(message + pointer(query, place.start(), place.end() - 1))
    return error
