"""The tree of a query that was written: one turn looks at the same query many times, and parsing is most of a look."""

from __future__ import annotations

from functools import lru_cache

import sqlglot
from sqlglot import exp


@lru_cache(maxsize=128)
def query_tree(suql: str) -> exp.Expr:
    """Return the tree of a query, to be read only: it is shared, and whoever changes it makes a copy.

    Raises:
        SqlglotError: it cannot be parsed.
    """
    return sqlglot.parse_one(suql, read="postgres")
