"""Which numbers are numeric in PostgreSQL and which of double precision: engines do not agree."""

from __future__ import annotations

from sqlglot import exp

from almanaq.suql.catalog.sources import find_source

_DOUBLE = ("double", "float")
_SAME_AS_PARTS = (
    *(exp.Paren, exp.Neg, exp.Abs, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Filter, exp.Window),
    *(exp.Ceil, exp.Floor, exp.Coalesce, exp.Greatest, exp.Least, exp.Nullif),
)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)


def is_numeric_here(node: exp.Expr) -> bool:
    """Return whether an expression is a decimal number in every engine: it is declared or written as one."""
    node = node.unnest()
    declared = node.type is not None and bool(node.type.expressions)
    return isinstance(node, exp.Column | exp.Cast) and declared and bool(node.is_type("decimal"))


def is_numeric_there(node: exp.Expr) -> bool:
    """Return whether an expression is numeric in PostgreSQL, though its type may be known as double precision.

    2.5 is, and so are an average of integers and what is computed of them; a column of double precision is not.
    """
    if isinstance(node, exp.Literal):
        return not node.is_string
    if isinstance(node, exp.Null):
        return True
    if isinstance(node, exp.Cast):
        return not node.to.is_type(*_DOUBLE)
    if isinstance(node, exp.Column):
        return _column(node)
    if isinstance(node, exp.Case):
        branches = [branch.args["true"] for branch in node.args["ifs"]]
        return all(is_numeric_there(part) for part in (*branches, node.args.get("default")) if part is not None)
    if isinstance(node, exp.Subquery):
        query = node.unnest()
        return isinstance(query, exp.Query) and is_numeric_there(query.selects[0].unalias())
    if isinstance(node, _ARITHMETIC):
        return is_numeric_there(node.this) and is_numeric_there(node.expression)
    if isinstance(node, exp.Round):
        return node.args.get("decimals") is not None or is_numeric_there(node.this)
    if isinstance(node, _SAME_AS_PARTS):
        return all(is_numeric_there(part) for part in (node.this, *node.expressions) if part is not None)
    return not node.is_type(*_DOUBLE)


def _column(node: exp.Column) -> bool:
    """Look into derived tables: what is known there as double precision may be an average."""
    item = find_source(node.table, node) if node.table else None
    inner = item.this if isinstance(item, exp.Subquery | exp.Lateral) else None
    while isinstance(inner, exp.Subquery):
        inner = inner.this
    for output in inner.selects if isinstance(inner, exp.Query) else ():
        if output.alias_or_name == node.name:
            return is_numeric_there(output.unalias())
    return not node.is_type(*_DOUBLE)
