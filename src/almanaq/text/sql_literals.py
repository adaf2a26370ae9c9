"""Names and strings written as SQL: what stands between the quotes is nothing but a name, or a string."""

from __future__ import annotations

import re

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*$")
_RESERVED = frozenset(
    """
    all analyse analyze and any array as asc asymmetric both case cast check collate column constraint create
    current_date current_time current_timestamp current_user default deferrable desc distinct do else end except
    false fetch for foreign from full grant group having in initially inner intersect into is join lateral leading
    left like limit localtime localtimestamp natural not null offset on only or order outer overlaps placing primary
    references returning right select session_user similar some symmetric table then to trailing true union unique
    user using values verbose when where window with
    """.split()
)


def quote(*names: str) -> str:
    """Return a qualified name of quoted identifiers."""
    return ".".join('"' + name.replace('"', '""') + '"' for name in names)


def string_literal(value: object) -> str:
    """Return a value's text as a string of standard SQL."""
    return "'" + str(value).replace("'", "''") + "'"


def is_plain(identifier: str) -> bool:
    """Return whether an identifier needs no quotes."""
    return bool(_PLAIN.match(identifier)) and identifier not in _RESERVED


def identifier(name: str) -> str:
    """Return an identifier as SUQL writes it, quoted where it must be."""
    return name if is_plain(name) else quote(name)
