"""Pieces of SUQL text: names and literals, safely quoted."""

from __future__ import annotations

import re

from almanaq.agent.local.schema_index import Place
from almanaq.agent.local.words import word_set

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*$")
_RESERVED = word_set(
    """
    all analyse analyze and any array as asc asymmetric both case cast check collate column constraint create
    current_date current_time current_timestamp current_user default deferrable desc distinct do else end except
    false fetch for foreign from full grant group having in initially inner intersect into is join lateral leading
    left like limit localtime localtimestamp natural not null offset on only or order outer overlaps placing primary
    references returning right select session_user similar some symmetric table then to trailing true union unique
    user using values verbose when where window with
    """
)


def plain(identifier: str) -> bool:
    """Say whether an identifier needs no quotes."""
    return bool(_PLAIN.match(identifier)) and identifier not in _RESERVED


def name(identifier: str) -> str:
    """Give an identifier as SUQL writes it, quoted where it must be."""
    if plain(identifier):
        return identifier
    return '"' + identifier.replace('"', '""') + '"'


def text(value: str) -> str:
    """Give a text literal."""
    return "'" + value.replace("'", "''") + "'"


def number(value: float) -> str:
    """Give a number literal without a needless fraction."""
    return str(int(value)) if value == int(value) else repr(value)


def column(place: Place, qualified: bool) -> str:
    """Give a column, with its relation's name when the query has several relations."""
    own = name(place.column.name)
    return f"{name(place.relation.name)}.{own}" if qualified else own


def compared(place: Place, qualified: bool) -> str:
    """Give a column as numbers are compared with it: cast where it holds them as text."""
    plain_column = column(place, qualified)
    if place.missing is not None:
        plain_column = f"NULLIF({plain_column}, {text(place.missing)})"
    return f"CAST({plain_column} AS double precision)" if place.cast else plain_column


def pattern(value: str) -> str:
    """Give a text literal for ILIKE that matches values holding `value`."""
    escaped = value.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return text(f"%{escaped}%")
