"""Aggregates that other engines read as something else than PostgreSQL does."""

from __future__ import annotations

from sqlglot import exp

from almanaq.errors import UnsupportedError
from almanaq.suql.catalog.sources import from_items
from almanaq.suql.syntax.nodes import nodes_of


def in_order(node: exp.Expr) -> exp.Expr:
    """Return `array_agg(DISTINCT x)` and `string_agg(DISTINCT x, s)` their values in order, as PostgreSQL finds them.

    Raises:
        UnsupportedError: string_agg of bytes, of which DuckDB makes a text.
    """
    values = node.this
    if isinstance(node, exp.GroupConcat) and values.find(exp.Cast, exp.Column) is not None:
        shown = values.expressions[0] if isinstance(values, exp.Distinct) else values
        if shown.is_type("varbinary", "binary", "blob"):
            raise UnsupportedError("string_agg of bytes is not supported on duckdb: encode them as text")
    if isinstance(values, exp.Distinct) and len(values.expressions) == 1:
        key = exp.Ordered(this=values.expressions[0].copy(), nulls_first=False)
        node.set("this", exp.Order(this=values.copy(), expressions=[key]))
    return node


def refuse_outer_aggregate(node: exp.Expr) -> None:
    """Raise UnsupportedError for an aggregate in a subquery of nothing but columns of a query around it.

    In PostgreSQL it is an aggregate of that query; elsewhere it is one of the subquery's.
    """
    if isinstance(node, exp.Grouping):
        return  # of keys it is the same everywhere
    around_it = node.parent
    while isinstance(around_it, exp.Filter | exp.WithinGroup):
        around_it = around_it.parent
    block = node.find_ancestor(exp.Select)
    if isinstance(around_it, exp.Window) or block is None or not isinstance(block.parent, exp.Expr):
        return
    columns = nodes_of(node, exp.Column)
    around = {item.alias_or_name for item in from_items(block)}
    nested = {item.alias_or_name for inner in nodes_of(node, exp.Select) for item in from_items(inner)}
    free = [column for column in columns if column.table and column.table not in nested]
    if free and not any(column.table in around for column in free):
        raise UnsupportedError(
            f"{node.sql('postgres')} aggregates over a query around its own: write it there, and name its result"
        )
