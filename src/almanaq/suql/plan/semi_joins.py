"""`IN (SELECT … answer …)` in WHERE: of each value one row will do, and only of values that the block may look for."""

from __future__ import annotations

from collections.abc import Container

from sqlglot import exp

from almanaq.suql.catalog.sources import from_items
from almanaq.suql.plan.blocks import is_cut_or_grouped, is_plain
from almanaq.suql.plan.joins import has_outer_join
from almanaq.suql.plan.matches_wanted import matches_wanted
from almanaq.suql.plan.predicates import conjuncts
from almanaq.suql.plan.references import column, is_correlated, is_of_block, quoted, where_of
from almanaq.suql.syntax.nodes import nodes_of
from almanaq.suql.syntax.text_functions import has_text, is_by_chance


def restrict_semi_joins(block: exp.Select, named: Container[object]) -> list[tuple[exp.Select, int | None]]:
    """Look up in each `x IN (SELECT y …)` of a block's WHERE only values that `x` has in rows that may be kept.

    `FROM t WHERE c AND x IN (SELECT y FROM r WHERE f(r.z))` becomes
    `FROM t WHERE c AND x IN (SELECT y FROM r WHERE f(r.z) AND y IN (SELECT x FROM t WHERE c))`.

    Args:
        named: the members of WITH, which are not read once more.

    Returns:
        The nested blocks of which one row for each value will do, each with the number of values that a LIMIT
        around it makes do, or None.
    """
    found = []
    for part in conjuncts(where_of(block)):
        nested = _nested_block(part)
        if nested is not None and not is_correlated(nested):
            looked_for, whole = _looked_for(block, part, named)
            if looked_for is not None:
                value = nested.expressions[0].unalias().copy()
                nested.where(exp.In(this=value, query=exp.Subquery(this=looked_for)), copy=False)
            found.append((nested, matches_wanted(part) if whole else None))
    return found


def _nested_block(part: exp.Expr) -> exp.Select | None:
    """Return the block of `x IN (SELECT y …)` whose rows of one value may stand for each other."""
    query = part.args.get("query") if isinstance(part, exp.In) else None
    block = query.this if isinstance(query, exp.Subquery) else query
    if not isinstance(block, exp.Select) or not has_text(block) or len(block.expressions) != 1 or has_text(part.this):
        return None
    value = block.expressions[0].unalias()
    if value.find(exp.Column) is None or has_text(value) or is_by_chance(block) or is_cut_or_grouped(block):
        return None
    distinct = block.args.get("distinct")
    if distinct is not None and distinct.args.get("on") is None:
        block.set("distinct", None)  # IN takes a value once
    return block if is_plain(block) else None


def _looked_for(block: exp.Select, part: exp.Expr, named: Container[object]) -> tuple[exp.Select | None, bool]:
    """Return a query for the values that a block looks for, and whether each of them is that of a row which is kept.

    None where the block reads more than tables.
    """
    items, all_joins = list(from_items(block)), block.args.get("joins") or []
    value = part.this
    tables = all(_is_table(item) and item.name not in named for item in items)
    if not tables or has_outer_join(block) or any(set(_given(join)) - {"this", "on", "kind"} for join in all_joins):
        return None, False
    if value.find(exp.Query, exp.Tuple) or not is_of_block(value, block) or is_by_chance(value):
        return None, False
    joined = [condition for join in all_joins for condition in conjuncts(join.args.get("on"))]
    parts = [each for each in [*conjuncts(where_of(block)), *joined] if each is not part]
    usable = [each for each in parts if not (has_text(each) or each.find(exp.Query) or is_by_chance(each))]
    usable = [each for each in usable if is_of_block(each, block)]
    apart = {item.alias_or_name: f"_of_{item.alias_or_name}" for item in items}
    select = exp.Select(expressions=[value.copy()])
    if usable:
        select.where(*(each.copy() for each in usable), copy=False)
    for node in nodes_of(select, exp.Column):
        node.replace(column(apart[node.table], node.name))
    first, *others = [_named(item, apart[item.alias_or_name]) for item in items]
    select.set("from_", exp.From(this=first))
    select.set("joins", [exp.Join(this=other, kind="CROSS") for other in others] or None)
    return select, len(usable) == len(parts)


def _is_table(item: exp.Expr) -> bool:
    alias = item.args.get("alias")
    listed = alias is not None and bool(alias.args.get("columns"))
    plain = isinstance(item, exp.Table) and isinstance(item.this, exp.Identifier)
    return plain and not listed and not set(_given(item)) - {"this", "alias"}


def _given(node: exp.Expr) -> list[str]:
    return [key for key, value in node.args.items() if value]


def _named(item: exp.Expr, name: str) -> exp.Table:
    return exp.Table(this=item.this.copy(), alias=exp.TableAlias(this=quoted(name)))
