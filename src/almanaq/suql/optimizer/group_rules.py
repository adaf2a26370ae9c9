"""Rewrites of blocks that group: no text of groups that are not shown."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from almanaq.suql.catalog.sources import AGGREGATES, find_cte, is_grouped
from almanaq.suql.plan.blocks import expand_output_names, is_aggregated, keys_of_groups, windows_in
from almanaq.suql.plan.joins import rows_to_cut
from almanaq.suql.plan.predicates import conjuncts
from almanaq.suql.plan.sites import CLAUSES_OF_ROWS, take_rows
from almanaq.suql.syntax.nodes import aliased, column, copy_tree, derived, nodes_above, nodes_of
from almanaq.suql.text_functions import has_text, is_by_chance, own_text_calls

_KEPT = "_kept"
"""The derived table of the keys of groups that may be shown."""


def keyed_conditions(tree: exp.Query) -> exp.Query:
    """Repeat conditions of HAVING about the keys of GROUP BY, and of QUALIFY about those of PARTITION BY, in WHERE.

    Before: `SELECT city, count(DISTINCT answer(…)) FROM t GROUP BY city HAVING city = 'Rome'` asks for every row.
    After: it asks for the rows in Rome.

    All rows of a group, or of a partition, meet such a condition or none does.
    """
    for block in nodes_of(tree, exp.Select):
        if not has_text(block):
            continue
        keys = keys_of_groups(block)
        found = [part for part in _parts_of(block, "having") if keys and _is_about(part, keys)]
        if not is_aggregated(block):
            windows = windows_in(block)
            parts = _parts_of(block, "qualify") if windows else []
            found += [
                p for p in parts if all(_is_about(p, window.args.get("partition_by") or ()) for window in windows)
            ]
        block.where(*(exp.paren(part.copy(), copy=False) for part in found), copy=False)
    return tree


def shown_groups(tree: exp.Query) -> exp.Query:
    """Drop the rows of groups that HAVING or LIMIT leaves out, where no answer decides it.

    Before: `SELECT city, count(*) FILTER (WHERE answer(…) = 'Yes') FROM t GROUP BY city HAVING count(*) > 9` asks for
    every row; so does `… GROUP BY city ORDER BY count(*) DESC LIMIT 3`.
    After: WHERE has `city IN (SELECT city FROM t GROUP BY city HAVING count(*) > 9) OR city IS NULL`.

    Whole groups stay, and HAVING, ORDER BY and LIMIT decide again: one group more, as that of NULL, changes nothing.
    """
    for block in nodes_of(tree, exp.Select):
        if has_text(block):
            _keep_shown_groups(block)
    return tree


def _keep_shown_groups(block: exp.Select) -> None:
    keys, having = keys_of_groups(block), _parts_of(block, "having")
    rows = [part for part in block.iter_expressions() if part.arg_key in CLAUSES_OF_ROWS]
    asked = any(is_grouped(call, block) for call in own_text_calls(block))
    if not keys or not asked or not all(map(_may_stand_twice, [*keys, *rows])):
        return
    decided = [part for part in having if not (has_text(part) or is_by_chance(part))]
    kept = take_rows(copy_tree(block))
    kept.set("expressions", [aliased(key.copy(), f"k{i}") for i, key in enumerate(keys)])
    kept.set("group", block.args["group"].copy())
    kept.having(*(part.copy() for part in decided), copy=False)
    if len(decided) == len(having):
        _limit(kept, block)
    if not all(_is_about(part, keys) for part in decided) or kept.args.get("limit") is not None:
        key = keys[0].copy() if len(keys) == 1 else exp.Tuple(expressions=[key.copy() for key in keys])
        listed = exp.Select(expressions=[column(_KEPT, f"k{i}") for i in range(len(keys))])
        listed.set("from_", exp.From(this=derived(kept, _KEPT)))  # MySQL has no LIMIT in IN itself
        shown = exp.In(this=key, query=exp.Subquery(this=listed))
        unknown = [exp.Is(this=exp.paren(key.copy(), copy=False), expression=exp.null()) for key in keys]
        block.where(exp.or_(shown, *unknown, copy=False), copy=False)


def _limit(kept: exp.Select, block: exp.Select) -> None:
    """Cut the keys as ORDER BY and LIMIT of their block do, where neither an answer nor a window stands between."""
    rows = rows_to_cut(block)
    if rows is None or windows_in(block) or block.args.get("distinct") is not None:
        return
    expand_output_names(block)
    order = block.args.get("order")
    if order is not None and not (has_text(order) or is_by_chance(order)):
        kept.set("order", order.copy())
        kept.limit(rows, copy=False)


def _parts_of(block: exp.Select, clause: str) -> list[exp.Expr]:
    given = block.args.get(clause)
    return conjuncts(given.this) if given is not None else []


def _is_about(part: exp.Expr, keys: Sequence[exp.Expr]) -> bool:
    """Return whether a condition has the same value in all rows that have the same keys."""
    if has_text(part) or is_by_chance(part):
        return False
    found = nodes_above(part, lambda node: node in keys)
    others = [node for node in found if node not in keys]
    return len(others) < len(found) and not any(
        isinstance(node, (exp.Column, exp.Query, exp.Window, *AGGREGATES)) for node in others
    )


def _may_stand_twice(part: exp.Expr) -> bool:
    """Return whether a part of a query gives the same at two places, and asks nothing."""
    members = [cte for table in nodes_of(part, exp.Table) if (cte := find_cte(table)) is not None]
    return not any(has_text(node) or is_by_chance(node) or node.find(exp.Limit, exp.Fetch) for node in (part, *members))
