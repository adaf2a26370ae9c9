"""The stages that can lose an answer, and what a query's conditions on cells, its text calls aside, say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, get_args

from sqlglot import exp

from almanaq.suql.text_functions import is_model_call

Stage = Literal["right", "retrieval", "parse", "link", "row choice", "text call", "cast", "format"]
STAGES: tuple[Stage, ...] = get_args(Stage)
"""In the order in which they are found."""

_NOT_READ = ("could not be read", "cannot be read", "not be parsed")


def count_stages(stages: Iterable[str]) -> Mapping[str, float]:
    """Return how many were lost to each stage, as `lost_STAGE`; {} where nothing was told of any."""
    counted = [stage for stage in stages if stage]
    return {f"lost_{stage.replace(' ', '_')}": counted.count(stage) for stage in STAGES[1:]} if counted else {}


def failed_casts(warnings: Iterable[str]) -> bool:
    """Return whether some value or answer could not be read as its type."""
    return any(sign in warning for warning in warnings for sign in _NOT_READ)


def cell_condition(tree: exp.Expr) -> exp.Expr | None:
    """Return a query's WHERE with TRUE in the place of each condition with a text call; None where it is not one
    SELECT.

    It is TRUE where there is no WHERE.
    """
    if not isinstance(tree, exp.Select) or tree.find(exp.Join, exp.CTE, exp.Subquery) is not None:
        return None
    where = tree.args.get("where")
    condition: exp.Expr = exp.true() if where is None else where.this.copy()
    for call in list(condition.find_all(exp.Anonymous)):
        if is_model_call(call):
            condition = _without(condition, call)
    return condition


def reads_texts(tree: exp.Expr) -> bool:
    """Return whether a query has a text call."""
    return any(is_model_call(call) for call in tree.find_all(exp.Anonymous))


def _without(condition: exp.Expr, call: exp.Expr) -> exp.Expr:
    """Return a condition with TRUE in the place of the smallest part of it that is a condition and holds the call."""
    part = call
    while part.parent is not None and not isinstance(part.parent, exp.And | exp.Or | exp.Not | exp.Paren):
        part = part.parent
    if part.parent is None:
        return exp.true()
    part.replace(exp.true())
    return condition
