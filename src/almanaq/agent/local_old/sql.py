"""Pieces of SUQL text: names and literals, safely quoted."""

from __future__ import annotations

from collections.abc import Sequence

from almanaq.agent.local_old.schema_index import Place
from almanaq.text.sql_literals import identifier, is_plain, string_literal

plain, name = is_plain, identifier


def is_one_of(values: Sequence[str]) -> str:
    """Return the template of the condition that a column holds one of some texts."""
    written = [text(value) for value in values]
    return f"{{}} = {written[0]}" if len(written) == 1 else f"{{}} IN ({', '.join(written)})"


def text(value: str) -> str:
    """Return a text literal."""
    return string_literal(value)


def number(value: float) -> str:
    """Return a number literal without a needless fraction."""
    return str(int(value)) if value == int(value) else repr(value)


def column(place: Place, qualified: bool) -> str:
    """Return a column, with its relation's name when the query has several relations."""
    own = name(place.column.name)
    return f"{name(place.relation.name)}.{own}" if qualified else own


def compared(place: Place, qualified: bool) -> str:
    """Return a column as numbers are compared with it: cast where it holds them as text."""
    plain_column = column(place, qualified)
    if place.minutes:
        return f"EXTRACT(epoch FROM {plain_column}) / 60"
    if place.missing is not None:
        plain_column = f"NULLIF({plain_column}, {text(place.missing)})"
    return f"CAST({plain_column} AS double precision)" if place.cast else plain_column


def pattern(value: str) -> str:
    """Return a text literal for ILIKE that matches values holding `value`."""
    return text(f"%{escaped(value)}%")


def escaped(value: str) -> str:
    """Return a value as it stands in a pattern of LIKE."""
    return value.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def list_test(item: str, mark: str) -> str:
    """Write that a text which is a list, items set apart by a mark, holds an item."""
    return f"({text(mark)} || {{}} || {text(mark)}) LIKE {text(f'%{mark}{escaped(item)}{mark}%')}"
