"""The text of one cell, read by the key that evidence names its row by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from almanaq.errors import UnknownNameError, UsageError, suggest
from almanaq.mcp import caps
from almanaq.mcp.declared import NOTICE

if TYPE_CHECKING:
    from almanaq.connection import Connection
    from almanaq.suql.catalog.relations import Relation

_MOST = caps.RESULT - 1_000
_BETWEEN = ", "
"""Stands between the values of a key of several columns in evidence."""


def text_of(connection: Connection, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a part of a passage of a cell, and how long the whole is.

    Raises:
        UsageError: no row, or several, have that key; there is no such passage.
        UnknownNameError: no such table or column.
    """
    relation = connection.catalog.relation(given["table"])
    column = relation.column(given["column"])
    if column is None:
        known = [each.name for each in relation.columns]
        raise UnknownNameError(f"no column named {given['column']!r}{suggest(given['column'], known)}")
    if isinstance(given["key"], str) and not relation.key:
        return _part(_cell_of_row(connection, relation, column.name, given["key"]), given)
    condition, values = _condition(relation, given["key"])
    shown = _quoted(column.name) if column.array else f"{_quoted(column.name)}::text"
    suql = f"SELECT {shown} AS cell FROM {_place(relation)} WHERE {condition} LIMIT 2"
    options = connection.engine.options.for_agent()
    rows = connection.sql(suql, values, options=options, dialect=connection.engine.dialect).rows
    if len(rows) != 1:
        raise UsageError(f"{'no row' if not rows else 'more than one row'} of {relation.name} has that key")
    return _part(rows[0][0], given)


def _cell_of_row(connection: Connection, relation: Relation, column: str, row: str) -> Any:
    """Return the cell of a row that evidence names by its number or address."""
    if relation.row_id is None:
        raise UsageError(
            f'{relation.name} has no key: name the row by columns whose values are its own, as {{"id": 7}}'
        )
    engine = connection.engine
    cells = engine.cells_at(relation.name, column, row, deadline=engine.options.for_agent().deadline)
    if not cells:
        raise UsageError(f"no row of {relation.name} has that number")
    return cells[0]


def _part(cell: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    passages = cell if isinstance(cell, list) else [cell]
    number, start = given.get("passage", 1), given.get("start", 0)
    if number > len(passages):
        raise UsageError(f"there is no passage {number}: the cell has {len(passages)}")
    value = passages[number - 1]
    text = "" if value is None else str(value)
    part = text[start : start + given.get("length", 4000)]
    while caps.size(part) > _MOST:  # of characters that JSON escapes
        part = part[: len(part) // 2]
    end = start + len(part)
    return {
        "text": part,
        "passage": number,
        "passages": len(passages),
        "start": start,
        "total": len(text),
        "next": end if end < len(text) else None,
        "notice": NOTICE,
    }


def _condition(relation: Relation, key: Any) -> tuple[str, list[str]]:
    """Return the condition that finds a row, and its values: by named columns, or by the key as evidence writes it."""
    if isinstance(key, Mapping):
        names = [column.name for column in relation.columns]
        for name in key:
            if relation.column(name) is None:
                raise UnknownNameError(f"no column named {name!r}{suggest(name, names)}")
        if not key:
            raise UsageError('the key is empty: name the row by columns, as {"id": 7}')
        return " AND ".join(f"{_quoted(name)}::text = ?" for name in key), [str(value) for value in key.values()]
    parts = f" || '{_BETWEEN}' || ".join(f"{_quoted(name)}::text" for name in relation.key)
    return f"{parts} = ?", [key]


def _place(relation: Relation) -> str:
    return ".".join(_quoted(part) for part in relation.name.split("."))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
