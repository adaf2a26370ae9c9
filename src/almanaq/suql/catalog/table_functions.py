"""Functions in FROM: what their columns are called, as PostgreSQL calls them."""

from __future__ import annotations

from sqlglot import exp

from almanaq.errors import UnsupportedError
from almanaq.suql.catalog.output_names import name_of
from almanaq.suql.catalog.relations import Catalog

_COLUMNS = {
    **dict.fromkeys(("json_each", "json_each_text", "jsonb_each", "jsonb_each_text"), ("key", "value")),
    **dict.fromkeys(("json_array_elements", "json_array_elements_text"), ("value",)),
    **dict.fromkeys(("jsonb_array_elements", "jsonb_array_elements_text"), ("value",)),
}
"""Functions whose columns have names of their own; the one column of others is called like the item."""
_RECORDS = frozenset(
    f"{kind}_{name}{end}"
    for kind in ("json", "jsonb")
    for name in ("populate_record", "to_record")
    for end in ("", "set")
)
"""Functions that give rows of a type that their arguments, or the query, name."""


def functions_in(item: exp.Expr) -> list[exp.Expr]:
    """Return the functions, or the VALUES, that an item of FROM is made of: ROWS FROM has several."""
    parts = item.args.get("rows_from") or [item]
    return [part.this if isinstance(part, exp.Table) else part for part in parts]


def columns_of_function(function: exp.Expr, called: str, catalog: Catalog, listed: int) -> list[str]:
    """Return what the columns of a function in FROM, or of VALUES, are called.

    Args:
        called: what the item is called, as is the one column of most functions.
        listed: how many columns the query names.

    Raises:
        UnsupportedError: they cannot be told.
    """
    if isinstance(function, exp.Values):
        return [f"column{i + 1}" for i in range(len(function.expressions[0].expressions))]
    if isinstance(function, exp.Unnest) and len(function.expressions) > 1:
        return ["unnest"] * len(function.expressions)
    name = name_of(function)
    if name not in _RECORDS:
        return list(_COLUMNS.get(name, (called,)))
    row = function.expressions[0].unnest() if function.expressions else None
    kind = row.args["to"].args.get("kind") if isinstance(row, exp.Cast) else None
    fields = catalog.fields(kind.name) if isinstance(kind, exp.Identifier) else ()
    if fields:
        return list(fields)
    if listed:
        return [called] * listed
    raise UnsupportedError(f"the columns of {name}() cannot be told here: name them, {name}(…) AS r(a, b)")
