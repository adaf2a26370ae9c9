"""Join as little as WHERE lets pass."""

from __future__ import annotations

from sqlglot import exp

from almanaq.suql.catalog.sources import from_items
from almanaq.suql.plan.joins import has_outer_join, side_of
from almanaq.suql.plan.predicates import conjuncts
from almanaq.suql.plan.references import where_of
from almanaq.suql.syntax.nodes import nodes_of
from almanaq.suql.text_functions import has_text, is_text_call

_OF_BOTH_SIDES = (
    *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Like, exp.ILike),
    *(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod),
)
"""Operators that give NULL where one side is NULL."""
_OF_THE_FIRST = (exp.Paren, exp.Cast, exp.Neg, exp.Not, exp.Between)
"""Operators that give NULL where what they are about is NULL."""


def inner_joins(tree: exp.Query) -> exp.Query:
    """Turn outer joins whose rows without a match a later condition drops into inner joins.

    Before: `SELECT … FROM a LEFT JOIN b ON answer(a.x, …) = answer(b.y, …) WHERE b.id < 5` asks for every row of b.
    After: `SELECT … FROM a JOIN b ON answer(a.x, …) = answer(b.y, …) WHERE b.id < 5` asks for those with `id < 5`.

    A row without a match has NULL for every column of the other side, and the condition is not true of NULL. A FULL
    JOIN may turn into a LEFT or RIGHT JOIN.
    """
    if has_text(tree) and has_outer_join(tree):
        for block in nodes_of(tree, exp.Select):
            while any(_narrow(block, place) for place in range(len(block.args.get("joins") or ()))):
                pass
    return tree


def _narrow(block: exp.Select, place: int) -> bool:
    """Keep fewer rows without a match at a join, where later conditions drop them; say whether that was done."""
    joins, items = block.args["joins"], [item.alias_or_name for item in from_items(block)]
    join, side = joins[place], side_of(joins[place])
    if not side or join.args.get("using") or join.args.get("method"):
        return False
    comma = max((i for i, earlier in enumerate(joins[:place]) if _is_comma(earlier)), default=-1)
    before, item = set(items[comma + 1 : place + 1]), {items[place + 1]}
    joining = [later.args.get("on") for later in joins[place + 1 :] if side_of(later) in ("", "RIGHT")]
    conditions = [part for condition in (where_of(block), *joining) for part in conjuncts(condition)]
    keeps_before = side in ("LEFT", "FULL") and not any(_drops(part, item) for part in conditions)
    keeps_item = side in ("RIGHT", "FULL") and not any(_drops(part, before) for part in conditions)
    narrowed = {(True, True): "FULL", (True, False): "LEFT", (False, True): "RIGHT"}.get((keeps_before, keeps_item))
    join.set("side", narrowed)
    join.set("kind", None)
    return narrowed != side


def _is_comma(join: exp.Join) -> bool:
    return not any(join.args.get(key) for key in ("kind", "side", "on", "using", "method"))


def _drops(node: exp.Expr, names: set[str]) -> bool:
    """Return whether a condition is not true where every column of some FROM items is NULL."""
    if isinstance(node, exp.Paren):
        return _drops(node.this, names)
    if isinstance(node, exp.And | exp.Or):
        sides = (_drops(node.this, names), _drops(node.expression, names))
        return any(sides) if isinstance(node, exp.And) else all(sides)
    asked = node.this.unnest() if isinstance(node, exp.Not) else node
    if isinstance(asked, exp.Is) and isinstance(asked.expression, exp.Null):
        negated = (asked is not node) != bool(asked.args.get("negate"))
        return negated and _is_null(asked.this, names)
    return _is_null(node, names)


def _is_null(node: exp.Expr | None, names: set[str]) -> bool:
    """Return whether an expression is NULL where every column of some FROM items is; answers about NULL are."""
    if isinstance(node, exp.Column):
        return node.table in names
    if isinstance(node, _OF_THE_FIRST) or (isinstance(node, exp.In) and node.expressions):
        return _is_null(node.this, names)
    if isinstance(node, _OF_BOTH_SIDES) and not isinstance(node.expression, exp.Any | exp.All):
        return _is_null(node.this, names) or _is_null(node.expression, names)
    if isinstance(node, exp.And | exp.Or):
        return _is_null(node.this, names) and _is_null(node.expression, names)
    arguments = node.expressions[:2] if node is not None and is_text_call(node) else []
    return any(_is_null(argument, names) for argument in arguments)
