"""Whether each row that a query shows would be one whatever the calls that failed had answered."""

from __future__ import annotations

from sqlglot import exp

from almanaq.suql.plan.joins import has_outer_join
from almanaq.suql.syntax.nodes import nodes
from almanaq.suql.syntax.text_functions import is_model_call, is_text_call, own_nodes

_POSITIVE = (exp.Where, exp.And, exp.Or, exp.Paren, exp.Exists, exp.In, exp.Subquery, exp.From, exp.Join, exp.Lateral)
"""What may stand between a query and the block around it: with fewer rows inside there are no more outside."""


def shows_only_certain_rows(tree: exp.Query) -> bool:
    """Return whether rows that an unknown answer drops can only be missing from the result of a query.

    So it is where answers stand in conditions, and as bare outputs of the query itself, of blocks that feed no
    NOT IN, NOT EXISTS, EXCEPT, outer join, aggregate, window or "first rows".
    """
    return all(_is_certain(node, tree) for node in nodes(tree) if is_model_call(node))


def _is_certain(call: exp.Expr, tree: exp.Query) -> bool:
    node, nested = call, False
    while node is not tree:
        parent = node.parent
        if isinstance(parent, exp.Select):
            if not _keeps(parent) or (not _is_condition(node) and not (parent is tree and _is_shown(node, call))):
                return False
            nested = True
        elif isinstance(parent, exp.Union):
            if _is_cut(parent):
                return False
        elif parent is None or (nested and not isinstance(parent, _POSITIVE)):
            return False
        node = parent
    return True


def _is_condition(part: exp.Expr) -> bool:
    """Return whether a part of a block is one whose rows can only be dropped."""
    return part.arg_key in ("where", "from_", "joins")


def _is_shown(part: exp.Expr, call: exp.Expr) -> bool:
    """Return whether a part of a block is the output of a call as it is, or cast."""
    value = part.unalias()
    while isinstance(value, exp.Cast | exp.Paren):
        value = value.this
    return part.arg_key == "expressions" and value is call


def _keeps(block: exp.Select) -> bool:
    """Return whether a block looks at its rows one by one."""
    if any(block.args.get(key) for key in ("group", "having", "qualify", "windows")) or _is_cut(block):
        return False
    distinct = block.args.get("distinct")
    if has_outer_join(block) or (distinct is not None and distinct.args.get("on") is not None):
        return False
    return not any(
        isinstance(node, exp.AggFunc | exp.Window) or (isinstance(node, exp.Anonymous) and not is_text_call(node))
        for output in block.expressions
        for node in own_nodes(output)
    )


def _is_cut(query: exp.Query) -> bool:
    """Return whether a query shows the first of its rows: without one of them, another moves up."""
    return any(query.args.get(key) for key in ("limit", "offset")) and query.args.get("order") is not None
