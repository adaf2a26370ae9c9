"""Conditions under which SQL looks at the value of a part of an expression: CASE, COALESCE, AND, OR, FILTER."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from almanaq.suql.plan.references import is_of_block
from almanaq.suql.plan.sites import is_nested_call, text_columns
from almanaq.suql.syntax.nodes import nodes
from almanaq.suql.text_functions import has_text, is_by_chance, nested_queries, own_nodes, own_text_calls

_MAY_FAIL = (exp.Div, exp.IntDiv, exp.Mod, exp.Cast, exp.Func)
_ACROSS_ROWS = (exp.AggFunc, exp.Filter, exp.WithinGroup, exp.Window)


def looked_at_under(
    node: exp.Expr, top: exp.Expr | None = None, usable: Callable[[exp.Expr], bool] = lambda _: True
) -> list[exp.Expr]:
    """Return conditions that a row meets wherever the value of a part of an expression, or of a block, matters.

    In `s OR x` nothing hangs on x where s is true, in `s AND x` nothing where s is false; a branch of CASE is looked at
    where its condition is true and none before it, an argument of COALESCE where those before it are NULL. Of two
    parts with text that are joined by AND or OR the first is looked at always. The conjuncts of the block's own WHERE
    are left out: its rows meet them already; so is what stands around an aggregate, which is about groups.
    They come in the order in which SQL looks at them: `10 / a > 2` after the `a = 0` that guards it.

    Args:
        top: the block that the part belongs to; None for an expression by itself.
        usable: says whether a condition may be given.
    """
    found: list[exp.Expr] = []
    conjuncts: list[exp.Expr] = []
    of_rows, at = True, node
    while at.parent is not None and at.parent is not top:
        parent = at.parent
        filtered = isinstance(parent, exp.Filter) and at is parent.this
        of_rows = of_rows and (filtered or not isinstance(at, _ACROSS_ROWS))
        conditions = _conditions(at, parent) if of_rows else []
        given = [made(part.copy()) for part, made in conditions if usable(part) and not is_by_chance(part)]
        if isinstance(parent, exp.And):
            conjuncts = [*given, *conjuncts]
        elif isinstance(parent, exp.Query):  # what was found is about the rows of a nested query
            found, conjuncts, of_rows = [], [], True
        elif isinstance(parent, exp.Paren | exp.Where):
            pass
        else:
            found, conjuncts = [*given, *conjuncts, *found], []
        at = parent
    return found if isinstance(at, exp.Where) else conjuncts + found


_Made = Callable[[exp.Expr], exp.Expr]


def _conditions(at: exp.Expr, parent: exp.Expr) -> list[tuple[exp.Expr, _Made]]:
    """Return the parts beside a child of an expression that decide whether it is looked at, and what they must be."""
    if isinstance(parent, exp.And | exp.Or):
        first = at is parent.this
        other = parent.expression if first else parent.this
        undecided = _is_not_true if isinstance(parent, exp.Or) else _is_not_false
        return [] if first and (has_text(other) or text_columns(other)) else [(other, undecided)]
    if isinstance(parent, exp.If):
        return [(parent.this, _is_true)] if at.arg_key == "true" else []
    if isinstance(parent, exp.Case) and parent.this is None:
        passed = [branch for branch in parent.args["ifs"] if at.arg_key == "default" or branch.index < at.index]
        return [(branch.this, _is_not_true) for branch in passed]
    if isinstance(parent, exp.Coalesce) and at is not parent.this:
        earlier = [parent.this, *(argument for argument in parent.expressions if argument.index < at.index)]
        return [(argument, _is_null) for argument in earlier]
    if isinstance(parent, exp.Filter) and at is parent.this:
        return [(parent.expression.this, _is_true)]
    return []


def matters_under(node: exp.Expr, block: exp.Select) -> list[exp.Expr]:
    """Return structured conditions of a block without which the value of a part of it comes to nothing."""
    return looked_at_under(node, block, lambda part: not has_text(part) and is_of_block(part, block))


def ask_lazily(units: list[exp.Expr], block: exp.Select) -> list[exp.Expr]:
    """Put text functions of a block, where every use of one is conditional, into a CASE with these conditions.

    `max(CASE WHEN s THEN f(a) END)` becomes `max(CASE WHEN s THEN CASE WHEN s THEN f(a) END END)`, so that the inner
    CASE can be computed apart from what is around it. Equal ones stay equal.

    Returns:
        what stands in the place of each unit.
    """

    def usable(part: exp.Expr) -> bool:
        if any(isinstance(node, _ACROSS_ROWS) for node in own_nodes(part)) or not is_of_block(part, block):
            return False
        return not any(map(is_nested_call, own_text_calls(part))) and not any(map(has_text, nested_queries(part)))

    uses: dict[str, list[list[exp.Expr]]] = {}
    for unit in units:
        uses.setdefault(unit.sql(), []).append(looked_at_under(unit, block, usable))
    written = {text: any_of(found) for text, found in uses.items()}
    return [_under(unit, written[unit.sql()]) for unit in units]


def any_of(uses: list[list[exp.Expr]]) -> exp.Expr | None:
    """Return the condition under which one of some uses looks at a value, given those of each; None: always."""
    if not all(uses):
        return None
    either = {condition.sql(): condition for condition in map(_all_in_turn, uses)}
    return exp.or_(*either.values())


def _all_in_turn(conditions: list[exp.Expr]) -> exp.Expr:
    """Join conditions so that one which may fail is computed only where those before it hold: AND looks at all."""
    first, *rest = conditions
    if not rest:
        return first
    following = _all_in_turn(rest)
    if any(isinstance(node, _MAY_FAIL) and not isinstance(node, exp.Connector) for node in nodes(following)):
        return exp.Case(ifs=[exp.If(this=first, true=following)], default=exp.false())
    return exp.and_(first, following)


def _under(unit: exp.Expr, condition: exp.Expr | None) -> exp.Expr:
    if condition is None:
        return unit
    lazily = exp.Case(ifs=[exp.If(this=condition.copy(), true=unit.copy())])
    unit.replace(lazily)
    return lazily


def _is_true(node: exp.Expr) -> exp.Expr:
    return exp.Is(this=exp.paren(node, copy=False), expression=exp.true())


def _is_not_true(node: exp.Expr) -> exp.Expr:
    return exp.not_(_is_true(node), copy=False)


def _is_not_false(node: exp.Expr) -> exp.Expr:
    return exp.not_(exp.Is(this=exp.paren(node, copy=False), expression=exp.false()), copy=False)


def _is_null(node: exp.Expr) -> exp.Expr:
    return exp.Is(this=exp.paren(node, copy=False), expression=exp.null())
