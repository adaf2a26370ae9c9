"""Divisions of integers, which PostgreSQL cuts to integers: found while types are known."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from almanaq.suql.catalog.sources import find_cte, find_source
from almanaq.suql.syntax.nodes import nodes_of

_OF_ITS_ARGUMENT = (
    *(exp.Paren, exp.Neg, exp.Max, exp.Min, exp.Sum, exp.Filter, exp.Window, exp.Distinct, exp.Mode),
    *(exp.BitwiseAndAgg, exp.BitwiseOrAgg, exp.BitwiseXorAgg, exp.BitwiseNot),
)
"""Integers if what they are made of is."""


def mark_integer_divisions(tree: exp.Query) -> None:
    """Write PostgreSQL's divisions of integers as such while types are known; every engine writes them its own way."""
    for node in reversed(nodes_of(tree, exp.Div)):  # what is divided comes before what it is divided in
        if all(_is_integer(part) for part in (node.this, node.expression)):
            marked = exp.IntDiv(this=node.this, expression=node.expression)
            marked.type = node.this.type
            node.replace(marked)


def _is_integer(node: exp.Expr) -> bool:
    """Return whether an expression is an integer, looking into derived tables whose columns carry no type."""
    if node.type is not None and not node.is_type("unknown"):
        return bool(node.is_type(*exp.DataType.INTEGER_TYPES))
    if isinstance(node, exp.IntDiv | exp.Grouping | exp.RegrCount):
        return True
    if isinstance(node, exp.GenerateSeries | exp.ExplodingGenerateSeries):
        return _is_integer(node.args["start"])
    if isinstance(node, exp.Anonymous) and node.name.lower() in ("gcd", "lcm"):
        return all(map(_is_integer, node.expressions))
    if isinstance(node, exp.WithinGroup) and isinstance(node.this, exp.Mode | exp.PercentileDisc):
        return all(_is_integer(key.this) for key in node.expression.expressions)
    if isinstance(node, _OF_ITS_ARGUMENT):
        return _is_integer(node.this)
    if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Mod):
        return _is_integer(node.this) and _is_integer(node.expression)
    item = find_source(node.table, node) if isinstance(node, exp.Column) and node.table else None
    if isinstance(item, exp.Table) and isinstance(item.this, exp.GenerateSeries):
        return _is_integer(item.this)
    return isinstance(item, exp.Table | exp.Subquery | exp.Lateral) and _gives_integers(item, node.name)


def _gives_integers(item: exp.Expr, name: str) -> bool:
    """Return whether a column of a derived table or of a WITH is an integer in each arm."""
    cte = find_cte(item) if isinstance(item, exp.Table) else None
    query = item if cte is None else cte
    while isinstance(query, exp.Subquery | exp.Lateral | exp.CTE):
        query = query.this
    if not isinstance(query, exp.Query):
        return False
    given = item.alias_column_names or (cte.alias_column_names if cte is not None else [])
    names = [*given, *query.named_selects[len(given) :]]
    # What WITH RECURSIVE adds has the types of what it begins with.
    arms = [query.this] if cte is not None and isinstance(query, exp.SetOperation) and _reads(query, cte) else [query]
    outputs = [output for arm in arms for output in _outputs(arm, names.index(name))] if name in names else []
    return bool(outputs) and all(_is_integer(output.unalias()) for output in outputs)


def _outputs(query: exp.Expr, position: int) -> Iterator[exp.Expr]:
    """Yield what the arms of a query have at a position."""
    while isinstance(query, exp.Subquery):
        query = query.this
    if isinstance(query, exp.SetOperation):
        yield from _outputs(query.this, position)
        yield from _outputs(query.expression, position)
    elif isinstance(query, exp.Query) and position < len(query.selects):
        yield query.selects[position]


def _reads(query: exp.Query, cte: exp.CTE) -> bool:
    return any(table.name == cte.alias and find_cte(table) is cte for table in nodes_of(query, exp.Table))
