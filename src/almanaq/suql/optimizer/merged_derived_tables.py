"""Let rules see through derived tables."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.optimizer.merge_subqueries import merge_subqueries

from almanaq.errors import UnsupportedError
from almanaq.suql.plan.blocks import drop_constant_keys, sets_in
from almanaq.suql.plan.joins import has_outer_join
from almanaq.suql.syntax.nodes import nodes_of
from almanaq.suql.text_functions import has_text, is_by_chance


def merged_derived_tables(tree: exp.Query) -> exp.Query:
    """Merge derived tables and members of WITH that only filter and compute into the block that reads them.

    Before: `SELECT name FROM (SELECT * FROM r WHERE answer(…) = 'Yes') AS d LIMIT 3` asks for every row of r.
    After: `SELECT name FROM r WHERE answer(…) = 'Yes' LIMIT 3` stops at the third.

    A block without grouping, DISTINCT, windows, ORDER BY or LIMIT gives the same rows in place as apart. Queries with
    an outer join are left alone: there, an output like `coalesce(a, 'x')` is NULL for rows without a match, and would
    not be if it were computed after the join. So are recursive ones, and those whose outputs make rows (`unnest`) or
    are by chance, which would be drawn wherever they are read.
    """
    recursive = any(with_.args.get("recursive") for with_ in nodes_of(tree, exp.With))
    blocks = nodes_of(tree, exp.Select)
    sets = any(sets_in(block.expressions) for block in blocks)
    drawn = any(is_by_chance(item) for block in blocks if block is not tree for item in block.expressions)
    if recursive or sets or drawn or has_outer_join(tree) or not has_text(tree):
        return tree
    try:
        merged = merge_subqueries(tree)
    except LookupError as error:
        raise UnsupportedError("nested queries of this form are not planned beside text functions") from error
    _drop_parentheses(merged)
    for block in nodes_of(merged, exp.Select):
        drop_constant_keys(block)
    for key in nodes_of(merged, exp.Ordered):
        _cast_constant(key)
    return merged


def _drop_parentheses(tree: exp.Query) -> None:
    """Drop the parentheses that merging puts around an output where they change nothing: a key of GROUP BY is found in
    the other clauses by its form."""
    for paren in nodes_of(tree, exp.Paren):
        within = paren.parent
        alone = isinstance(within, exp.Alias | exp.Group | exp.Ordered | exp.Select | exp.Func | exp.Paren)
        if alone and not isinstance(within, exp.Binary):
            paren.replace(paren.this)


def _cast_constant(key: exp.Ordered) -> None:
    """Cast an output that is a constant, now in its place: an aggregate's ORDER BY may hold no bare one in DuckDB."""
    constant = key.this.unnest()
    of_rows = key.find_ancestor(exp.AggFunc, exp.WithinGroup, exp.Query) is key.find_ancestor(exp.Query)
    if of_rows or constant.is_number or not isinstance(constant, exp.Literal | exp.Null | exp.Boolean):
        return
    key.set("this", exp.cast(constant, "boolean" if isinstance(constant, exp.Boolean) else "text"))
