"""Answers that stand above a GROUP BY: each is one of its keys, or is about what the groups have one value of."""

from __future__ import annotations

from sqlglot import exp

from almanaq.errors import QueryTypeError
from almanaq.suql.catalog.answer_types import answer_type, implied_type, is_whole_text
from almanaq.suql.catalog.grouping import is_aggregated, keys_in
from almanaq.suql.catalog.sources import from_items
from almanaq.suql.syntax.nodes import nodes_of
from almanaq.suql.text_functions import own_nodes, own_text_calls, place_of

_UNGROUPED = "must appear in the GROUP BY clause or be used in an aggregate function"
_ABOVE = ("having", "order", "distinct", "qualify")


def check_grouped_answers(tree: exp.Query, text: str) -> None:
    """Refuse an answer whose document differs within a group.

    Raises:
        QueryTypeError: points at it.
    """
    for block in nodes_of(tree, exp.Select):
        parts = [*block.expressions, *(block.args[name] for name in _ABOVE if block.args.get(name))]
        group = block.args.get("group")
        if group is None and not any(_is_aggregate(node, block) for part in parts for node in own_nodes(part)):
            continue
        keys = [key.unnest() for key in keys_in(group)] if group is not None else []
        for call in (call for part in parts for call in own_text_calls(part)):
            if not is_aggregated(call, block) and not _is_decided(call, block, keys):
                raise QueryTypeError(f"{call.name.lower()}(…) {_UNGROUPED}", **place_of(call, text))


def _is_aggregate(node: exp.Expr, block: exp.Select) -> bool:
    return isinstance(node, exp.AggFunc) and is_aggregated(node, block)


def _is_decided(call: exp.Expr, block: exp.Select, keys: list[exp.Expr]) -> bool:
    """Return whether a group has one document and one question, or the answer, or what holds it, is a key."""
    if _is_within(call, block, keys) or any(_is_read_as(call, key) for key in keys):
        return True
    own = {item.alias_or_name for item in from_items(block)}
    columns = [column for column in nodes_of(call, exp.Column) if column.table in own]
    return all(is_aggregated(column, block) or _is_within(column, block, keys) for column in columns)


def _is_within(node: exp.Expr, block: exp.Select, keys: list[exp.Expr]) -> bool:
    at: exp.Expr | None = node
    while at is not None and at is not block:
        if at in keys:
            return True
        at = at.parent
    return False


def _is_read_as(call: exp.Expr, key: exp.Expr) -> bool:
    """Return whether a key is the same answer, read as the same type."""
    if not isinstance(key, exp.Cast) or key.this.unnest() != call:
        return False
    used = call.parent.to if isinstance(call.parent, exp.Cast) else implied_type(call)
    return is_whole_text(key.to) or answer_type(used) == answer_type(key.to)
