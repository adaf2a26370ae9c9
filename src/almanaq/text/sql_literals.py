"""Names and strings written as SQL: what stands between the quotes is nothing but a name, or a string."""

from __future__ import annotations


def quote(*names: str) -> str:
    """Give a qualified name of quoted identifiers."""
    return ".".join('"' + name.replace('"', '""') + '"' for name in names)


def string_literal(value: object) -> str:
    """Give a value's text as a string of standard SQL."""
    return "'" + str(value).replace("'", "''") + "'"
