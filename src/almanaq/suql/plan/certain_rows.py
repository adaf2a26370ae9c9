"""Whether each row that a query shows would be shown for any answers to the calls that failed."""

from __future__ import annotations

from sqlglot import exp

from almanaq.suql.catalog.sources import from_items
from almanaq.suql.plan.blocks import is_plain
from almanaq.suql.plan.joins import has_outer_join
from almanaq.suql.plan.references import is_of_block
from almanaq.suql.syntax.nodes import nodes
from almanaq.suql.text_functions import (
    has_text,
    is_by_chance,
    is_model_call,
    is_similarity,
    is_text_call,
    nested_queries,
    own_nodes,
    own_text_calls,
)

Marked = tuple[str, int]
"""A block as it is written, and the number of its calls."""
KEEPS_UNKNOWN = "keeps_unknown"
"""What a block is marked by that keeps rows which an unknown answer decides."""
_POSITIVE = (exp.Where, exp.And, exp.Or, exp.Paren, exp.Exists, exp.In, exp.Subquery, exp.From, exp.Join, exp.Lateral)
"""What may stand between a query and the block around it: with fewer rows inside there are no more outside."""
_NEGATED = (exp.Paren, exp.Subquery, exp.Exists, exp.In)
"""What may stand between a query and the NOT that it is negated by."""


def keep_unknown(tree: exp.Query) -> frozenset[Marked]:
    """Mark the blocks of NOT EXISTS, NOT IN and EXCEPT that are to keep rows which an unknown answer decides.

    Such a row takes others out of the result, which then shows only rows that are in it whatever the answer is. Marked
    are blocks that read one table and decide by answers about its rows alone.

    Returns:
        The marked blocks: rows are certain if each becomes a filter by all of its calls (`kept_by`).
    """
    marked = []
    for block in nodes(tree):
        if isinstance(block, exp.Select) and _is_text_filter(block):
            negation = _negation_of(block)
            if negation is not None and all(_is_certain(call, tree, negation) for call in own_text_calls(block)):
                marked.append(block)
    for block in marked:
        block.meta[KEEPS_UNKNOWN] = block.sql(), len(own_text_calls(block))
    return frozenset(block.meta[KEEPS_UNKNOWN] for block in marked)


def kept_by(block: exp.Select) -> Marked | None:
    """Return the mark of a block that becomes a stage; None without one, or where some of its calls are made before."""
    marked: Marked | None = block.meta.get(KEEPS_UNKNOWN)
    return marked if marked is not None and marked[1] == len(own_text_calls(block)) else None


def _negation_of(block: exp.Select) -> exp.Expr | None:
    """Return the NOT around a block's EXISTS or IN, or the EXCEPT that takes its rows away."""
    node: exp.Expr = block
    while isinstance(parent := node.parent, _NEGATED) and (not isinstance(parent, exp.In) or node.arg_key == "query"):
        node = parent
    if isinstance(parent, exp.Except):
        return parent if node.arg_key == "expression" else None
    return parent if isinstance(parent, exp.Not) and isinstance(node.unnest(), exp.Exists | exp.In) else None


def _is_text_filter(block: exp.Select) -> bool:
    items, calls = list(from_items(block)), own_text_calls(block)
    if len(items) != 1 or not isinstance(items[0], exp.Table) or not is_plain(block) or is_by_chance(block):
        return False
    if block.args.get("offset") or (block.args.get("limit") and not isinstance(block.parent, exp.Exists)):
        return False
    if any(map(has_text, [*block.expressions, *nested_queries(block)])) or block.args.get("order"):
        return False
    about_rows = all(is_of_block(call, block) and not is_similarity(call) for call in calls)
    return bool(calls) and about_rows and not any(has_text(part) for call in calls for part in call.expressions)


def shows_only_certain_rows(tree: exp.Query) -> bool:
    """Return whether rows that an unknown answer drops can only be missing from the result of a query.

    So it is where answers stand in conditions, and as bare outputs of the query itself, of blocks that feed no
    NOT IN, NOT EXISTS, EXCEPT, outer join, aggregate, window or "first rows", unless these are marked (`keep_unknown`).
    """
    return all(_is_certain(node, tree, _kept_below(node)) for node in nodes(tree) if is_model_call(node))


def _kept_below(call: exp.Expr) -> exp.Expr | None:
    block = call.find_ancestor(exp.Select)
    return _negation_of(block) if block is not None and KEEPS_UNKNOWN in block.meta else None


def _is_certain(call: exp.Expr, tree: exp.Query, kept_below: exp.Expr | None) -> bool:
    """Return whether rows that an unknown answer decides can only be missing; they are kept below a negation."""
    node, nested = call, False
    while node is not tree:
        parent = node.parent
        if isinstance(parent, exp.Select):
            if not _keeps(parent) or (not _is_condition(node) and not (parent is tree and _is_shown(node, call))):
                return False
            nested = True
        elif isinstance(parent, exp.Union) or (isinstance(parent, exp.Except) and _is_left_or(node, kept_below)):
            if _is_cut(parent):
                return False
        elif parent is None or (nested and parent is not kept_below and not isinstance(parent, _POSITIVE)):
            return False
        node = parent
    return True


def _is_left_or(node: exp.Expr, kept_below: exp.Expr | None) -> bool:
    return node.arg_key == "this" or node.parent is kept_below


def _is_condition(part: exp.Expr) -> bool:
    return part.arg_key in ("where", "from_", "joins")


def _is_shown(part: exp.Expr, call: exp.Expr) -> bool:
    value = part.unalias()
    while isinstance(value, exp.Cast | exp.Paren):
        value = value.this
    return part.arg_key == "expressions" and value is call


def _keeps(block: exp.Select) -> bool:
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
