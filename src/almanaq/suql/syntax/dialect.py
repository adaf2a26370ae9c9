"""SUQL's dialect: PostgreSQL, with NULLs last in both directions unless said otherwise (semantics 7)."""

from __future__ import annotations

from functools import cache

from sqlglot.dialects.dialect import Dialect

MISREAD = (LookupError, AttributeError, TypeError, ValueError, AssertionError)
"""What sqlglot raises besides its own errors, where a function has fewer arguments than it has, or others."""


@cache
def suql_dialect() -> Dialect:
    """Return the dialect that queries are read in.

    It is an instance with two settings changed, not a subclass: compiled sqlglot refuses subclasses. Subscripts stay as
    they are written: which of them are places in an array is told by no parser.
    """
    dialect = Dialect.get_or_raise("postgres")
    dialect.NULL_ORDERING = "nulls_are_last"
    dialect.INDEX_OFFSET = 0
    return dialect
