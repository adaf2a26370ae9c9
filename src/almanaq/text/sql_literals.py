"""Names and strings written as SQL: what stands between the quotes is nothing but a name, or a string."""

from __future__ import annotations

import re

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*$")
_RESERVED = frozenset(
    """
    all alter analyse analyze and anti any array as asc asof asymmetric at authorization between binary both by case
    cast check collate collation column concurrently connect_by_root constraint create cross cube current_catalog
    current_date current_time current_timestamp current_user default deferrable desc describe distinct do drop else end
    except false fetch for force foreign freeze from full glob grant group having if ilike in initially inner insert
    install intersect into is isnull join lambda lateral leading left like limit localtime localtimestamp lock map
    natural not notnull null offset on only or order outer overlaps partitioned_by pivot pivot_longer pivot_wider
    placing positional primary qualify references regexp returning revoke right rlike rollback rollup select semi
    session_user show similar some summarize symmetric table tablesample then to trailing true uncache union unique
    unpack unpivot user using values variadic verbose when where window with xor
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
