"""The catalog, a page at a time."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from almanaq.encode import relation_record
from almanaq.suql.catalog.relations import Catalog, Relation
from almanaq.web.problems import Refused


def listed(catalog: Catalog, search: str, limit: int, cursor: str | None) -> dict[str, Any]:
    """Return relations in which every word of `search` occurs: in a name, a description, or a column's.

    Args:
        cursor: `next` of the page before.
    """
    words = search.casefold().split()
    found = [relation for relation in catalog.relations if all(word in _words(relation) for word in words)]
    start = 0 if cursor is None else _start(cursor)
    shown = found[start : start + limit]
    more = start + limit < len(found)
    tables = [
        {
            "name": relation.name,
            "description": relation.description,
            "rows": relation.rows,
            "columns": [column.name for column in relation.columns],
        }
        for relation in shown
    ]
    return {"tables": tables, "total": len(found), "next": _cursor(start + limit) if more else None}


def shown(catalog: Catalog, name: str) -> dict[str, Any]:
    """Return one relation with its columns; raises UnknownNameError."""
    return relation_record(catalog.relation(name))


def _words(relation: Relation) -> str:
    columns = (word for column in relation.columns for word in (column.name, column.description))
    return " ".join((relation.name, relation.description, *columns)).casefold()


def _cursor(start: int) -> str:
    return base64.urlsafe_b64encode(b"from:%d" % start).decode().rstrip("=")


def _start(cursor: str) -> int:
    try:
        text = base64.urlsafe_b64decode(cursor.encode() + b"=" * (-len(cursor) % 4)).decode("ascii")
        return int(text.removeprefix("from:")) if text.removeprefix("from:").isdigit() else _broken()
    except (binascii.Error, UnicodeError, ValueError):
        return _broken()


def _broken() -> int:
    raise Refused(422, "cursor: not one that `next` gave")
