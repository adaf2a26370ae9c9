"""Let rules see through derived tables."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.optimizer.merge_subqueries import merge_subqueries

from almanaq.errors import UnsupportedError
from almanaq.suql.catalog.sources import find_cte, find_source, from_items
from almanaq.suql.plan.blocks import drop_constant_keys, is_plain, sets_in
from almanaq.suql.plan.joins import has_outer_join, side_of
from almanaq.suql.plan.sites import own_columns
from almanaq.suql.syntax.nodes import derived, is_comma, nodes, nodes_of
from almanaq.suql.text_functions import has_text, is_by_chance, nested_queries


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


_CONSTANTS = (exp.Literal, exp.Null, exp.Boolean)


def preserved_derived_tables(tree: exp.Query) -> exp.Query:
    """Merge the derived table that a block begins with, where outer joins keep every row of it.

    Before: `SELECT d.id FROM (SELECT * FROM t WHERE answer(…) = 'Yes') AS d LEFT JOIN u ON u.t = d.id LIMIT 3` asks for
    every row of t.
    After: `SELECT t.id FROM t LEFT JOIN u ON u.t = t.id WHERE answer(…) = 'Yes' LIMIT 3` stops at the third.

    A LEFT JOIN keeps each row before it and changes none of its values, so what the derived table filters and computes
    comes to the same after the join. Behind a RIGHT or FULL JOIN its outputs may be NULL, and it stays.
    """
    if not has_text(tree) or not has_outer_join(tree):
        return tree
    _read_once(tree)
    for block in reversed(nodes_of(tree, exp.Select)):
        while _merge_first(block, tree):
            pass
    return tree


def _read_once(tree: exp.Query) -> None:
    """Put members of WITH with text that one block begins with, and nothing else reads, into that block."""
    for with_ in nodes_of(tree, exp.With):
        for cte in list(with_.expressions) if not with_.args.get("recursive") else ():
            readers = [table for table in nodes_of(tree, exp.Table) if find_cte(table) is cte]
            renames = cte.args["alias"].args.get("columns") or cte.args.get("materialized") is not None
            if len(readers) != 1 or renames or not has_text(cte) or not isinstance(readers[0].parent, exp.From):
                continue
            if readers[0].args["alias"].args.get("columns"):
                continue
            readers[0].replace(derived(cte.this, readers[0].alias_or_name))
            cte.pop()
        if not with_.expressions:
            with_.pop()


def _merge_first(block: exp.Select, tree: exp.Query) -> bool:
    item = next(iter(from_items(block)), None)
    joins = block.args.get("joins") or []
    if not isinstance(item, exp.Subquery) or item.args["alias"].args.get("columns"):
        return False
    inner = item.this
    if any(side_of(join) in ("RIGHT", "FULL") for join in joins) or not _fits(inner, block, item, tree):
        return False
    if joins and not (block.args.get("limit") or block.args.get("where")):
        return False  # nothing to stop or to filter by: a table by itself is read without being copied
    outputs = {output.alias_or_name: output.unalias() for output in inner.expressions}
    read = [c for c in own_columns(block) if find_source(c.table, c) is item]
    clauses = [block.args[name] for name in ("group", "distinct") if block.args.get(name) is not None]
    orders = nodes_of(block, exp.Order)  # also those of aggregates
    sorted_by = {id(c) for clause in (*clauses, *orders) for c in nodes_of(clause, exp.Column)}
    if any(id(c) in sorted_by and isinstance(outputs[c.name], _CONSTANTS) for c in read):
        return False
    for reference in read:
        shown: exp.Expr = exp.paren(outputs[reference.name].copy(), copy=False)
        shown = shown.this if isinstance(shown.this, exp.Column | exp.Anonymous | exp.Literal) else shown
        named = reference.parent is block and reference.arg_key == "expressions"
        reference.replace(exp.alias_(shown, reference.name, quoted=True) if named else shown)
    block.set("from_", inner.args["from_"].pop())
    block.set("joins", [*map(_explicit, inner.args.get("joins") or []), *joins])
    if inner.args.get("where") is not None:
        block.where(inner.args["where"].this.pop(), copy=False)
    return True


def _fits(inner: exp.Expr, block: exp.Select, item: exp.Expr, tree: exp.Query) -> bool:
    if not isinstance(inner, exp.Select) or not is_plain(inner) or inner.args.get("from_") is None:
        return False
    if any(inner.args.get(clause) for clause in ("limit", "offset", "order", "with_", "laterals")):
        return False
    if block.args.get("laterals") or any(nested_queries(output) for output in inner.expressions):
        return False
    names = {source.alias_or_name for source in from_items(inner)}
    within = {id(node) for node in nodes(inner)}
    outside = (select for select in nodes_of(tree, exp.Select) if id(select) not in within)
    others = {item.alias_or_name for select in outside for item in from_items(select)}
    return not names & (others - {item.alias_or_name})


def _explicit(join: exp.Join) -> exp.Join:
    """Return a join of a comma as CROSS JOIN: what follows it must see the items before it."""
    if is_comma(join):
        join.set("kind", "CROSS")
    return join
