"""Columns that a foreign key joins and that are of two types: compared as text, as no operator takes both.

A file may declare a key from text to a number, which PostgreSQL would refuse; what is declared is meant to be joined.
"""

from __future__ import annotations

from sqlglot import exp

from almanaq.suql.catalog.relations import Catalog, Column, Relation
from almanaq.suql.catalog.sources import origin


def cast_declared_pairs(found: list[exp.Expr], catalog: Catalog) -> None:
    """Cast the number to text in `=`, `<>` and `IN (SELECT …)` of columns of a declared pair, and leave others.

    Args:
        found: the nodes of a typed query, which are changed.
    """
    if not any(relation.foreign_keys for relation in catalog.relations):
        return
    for node in found:
        pair = _compared(node)
        if pair is not None and _differ(*pair) and _is_declared(*pair, catalog):
            number = pair[0] if pair[0].is_type(*exp.DataType.NUMERIC_TYPES) else pair[1]
            number.replace(exp.cast(number.copy(), "text"))


def _compared(node: exp.Expr) -> tuple[exp.Column, exp.Column] | None:
    """Return the two columns that a node compares."""
    if isinstance(node, exp.EQ | exp.NEQ):
        left, right = node.this.unnest(), node.expression.unnest()
    elif isinstance(node, exp.In) and node.args.get("query") is not None:
        inner = node.args["query"].unnest()
        if not isinstance(inner, exp.Select) or len(inner.selects) != 1:
            return None
        left, right = node.this.unnest(), inner.selects[0].unalias()
    else:
        return None
    return (left, right) if isinstance(left, exp.Column) and isinstance(right, exp.Column) else None


def _differ(one: exp.Column, other: exp.Column) -> bool:
    """Return whether one column is text and the other a number."""
    kinds = (exp.DataType.TEXT_TYPES, exp.DataType.NUMERIC_TYPES)
    return any(a.is_type(*kinds[0]) and b.is_type(*kinds[1]) for a, b in ((one, other), (other, one)))


def _is_declared(one: exp.Column, other: exp.Column, catalog: Catalog) -> bool:
    """Return whether a foreign key joins two columns, in either direction."""
    if not one.table or not other.table:
        return False
    first, second = origin(one, catalog), origin(other, catalog)
    return (
        first is not None
        and second is not None
        and (_refers(first, second, catalog) or _refers(second, first, catalog))
    )


def _refers(one: tuple[Relation, Column], other: tuple[Relation, Column], catalog: Catalog) -> bool:
    """Return whether a column is part of a key that refers to the other."""
    return any(
        catalog.find(name) is other[0] and (one[1].name, other[1].name) in zip(own, theirs, strict=True)
        for own, name, theirs in one[0].foreign_keys
    )
