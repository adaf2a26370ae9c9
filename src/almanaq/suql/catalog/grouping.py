"""The keys of a GROUP BY, and what stands in an aggregate."""

from __future__ import annotations

from sqlglot import exp

_SETS = ("rollup", "cube", "grouping_sets")


def keys_in(group: exp.Group) -> list[exp.Expr]:
    """Return the keys of a GROUP BY, those of ROLLUP, CUBE and GROUPING SETS included."""
    return [*group.expressions, *keys_of_grouping_sets(group)]


def keys_of_grouping_sets(group: exp.Group) -> list[exp.Expr]:
    """Return the keys that only some of the groups have: those of ROLLUP, CUBE and GROUPING SETS."""
    return [key for kind in _SETS for sets in group.args.get(kind) or () for key in _parts(sets)]


def _parts(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, exp.Paren):
        return _parts(node.this)
    if isinstance(node, exp.Tuple | exp.Rollup | exp.Cube | exp.GroupingSets):
        return [key for part in node.expressions for key in _parts(part)]
    return [node]


def is_aggregated(node: exp.Expr, block: exp.Select) -> bool:
    """Return whether an expression of a block is, or stands in, an aggregate, which is not the function of a window."""
    at: exp.Expr | None = node
    while at is not None and at is not block:
        parent = at.parent
        while isinstance(parent, exp.Filter | exp.WithinGroup) and parent.this is at:
            at, parent = parent, parent.parent
        if isinstance(at, exp.AggFunc | exp.Filter | exp.WithinGroup):
            if not (isinstance(parent, exp.Window) and parent.this is at):
                return True
        at = parent
    return False
