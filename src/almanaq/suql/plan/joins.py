"""Joins with text: rewrites that take text functions out of their conditions, and how many rows EXISTS and IN need."""

from __future__ import annotations

from collections.abc import Container

from sqlglot import exp

from almanaq.suql.catalog.sources import find_cte, from_items
from almanaq.suql.plan.blocks import is_cut_or_grouped, is_plain
from almanaq.suql.plan.predicates import conjuncts
from almanaq.suql.plan.sites import is_correlated, is_of_block, own_columns, tables_in, text_unit, where_of
from almanaq.suql.syntax.nodes import aliased, column, derived, nodes_of, quoted, side_of, table_alias
from almanaq.suql.text_functions import has_text, is_by_chance, nested_queries, outermost_text_calls, own_text_calls


def move_conditions_to_where(block: exp.Select) -> None:
    """Move the ON conditions with text of inner joins to WHERE, unless a later join keeps rows without a match.

    `a JOIN b ON c AND t` becomes `a JOIN b ON c … WHERE t`.
    """
    joins = block.args.get("joins") or []
    for i, join in enumerate(joins):
        on = join.args.get("on")
        if (
            on is None
            or not has_text(on)
            or side_of(join)
            or any(side_of(later) in ("RIGHT", "FULL") for later in joins[i:])
        ):
            continue
        parts = conjuncts(on)
        rest = [part for part in parts if not has_text(part)]
        block.where(*[part for part in parts if has_text(part)], copy=False)
        join.set("on", exp.and_(*rest, copy=False) if rest else exp.true())


def move_condition_into(item: exp.Expr, join: exp.Join, block: exp.Select) -> None:
    """Move the ON condition of a join to a LATERAL item into the item.

    `a LEFT JOIN LATERAL q AS l ON t` becomes `a LEFT JOIN LATERAL (SELECT l.* FROM q AS l WHERE t) AS l ON TRUE`.
    """
    alias = item.alias_or_name
    names = dict.fromkeys(reference.name for reference in own_columns(block) if reference.table == alias)
    outputs = [aliased(column(alias, name), name) for name in names] or [aliased(exp.Literal.number(1), "one")]
    inner = exp.Select(expressions=outputs, where=exp.Where(this=join.args["on"]))
    join.set("on", exp.true())
    item.replace(exp.Lateral(this=exp.Subquery(this=inner), alias=table_alias(alias)))
    inner.set("from_", exp.From(this=item))


def _has_partner(alias: str, other: exp.Expr, parts: list[exp.Expr]) -> list[exp.Expr]:
    """Return the condition that a table has a row which meets the conditions about it and the item `alias`, if any."""
    both = {alias, other.alias_or_name}
    about = [
        part.copy()
        for part in parts
        if {alias} != tables_in(part) <= both and part != exp.true() and not part.find(exp.Query)
        if not (has_text(part) or is_by_chance(part))
    ]
    if not about or not isinstance(other, exp.Table) or find_cte(other) is not None:
        return []
    source, apart = other.copy(), f"_of_{other.alias_or_name}"  # where this goes, another item may have its alias
    source.args["alias"].set("this", quoted(apart))
    rows = exp.Select(expressions=[exp.Literal.number(1)], from_=exp.From(this=source)).where(*about, copy=False)
    for reference in nodes_of(rows, exp.Column):
        if reference.table == other.alias_or_name:
            reference.set("table", quoted(apart))
    return [exp.Exists(this=rows)]


def needed_matches(block: exp.Select, item: exp.Expr) -> list[exp.Expr]:
    """Return conditions without which a row of a FROM item is in no joined row, for want of a match."""
    items, name, found = list(from_items(block)), item.alias_or_name, []
    place = next(i for i, other in enumerate(items) if other is item)
    for at, join in enumerate(block.args.get("joins") or (), 1):
        later = ("", "RIGHT") if at > place and keeps_rows(block, name, at) else ()
        if join.args.get("on") is None or side_of(join) not in (("", "LEFT") if at == place else later):
            continue
        for other in items[:at] if at == place else [join.this]:
            partner = other.alias_or_name
            # A row without a match stands for one of its own, which ON may be true of.
            if at > place or keeps_rows(block, partner, at):
                found += _has_partner(name, other, [*conjuncts(join.args["on"]), *conditions_about(block, partner)])
    return found


def conditions_about(block: exp.Select, alias: str) -> list[exp.Expr]:
    """Return what a block says, without asking, of a FROM item alone, and may say before the joins."""
    all_joins = block.args.get("joins") or ()
    on = [] if any(map(side_of, all_joins)) else [join.args.get("on") for join in all_joins]
    parts = [part for condition in (where_of(block), *on) for part in conjuncts(condition)]
    about = [part for part in parts if tables_in(part) == {alias} and not part.find(exp.Query)]
    kept = [part.copy() for part in about if not (has_text(part) or is_by_chance(part))]
    return kept if keeps_rows(block, alias) else []


def push_joining_answers(block: exp.Select) -> None:
    """Compute answers that are all that joins two relations before the join, so that the database joins on them.

    `FROM a, b WHERE f(a.x) = b.y` becomes `FROM (SELECT …, f(a.x) AS u0 FROM a) AS a, b WHERE a.u0 = b.y`:
    each text is asked once, instead of once for each pair of rows; only of rows that meet what WHERE says of them
    alone, and only if the other tables have a row to join.
    """
    where = block.args.get("where")
    items = {item.alias_or_name: item for item in from_items(block)}
    if where is None or len(items) < 2 or any(side_of(join) for join in block.args.get("joins") or ()):
        return
    structured = [join.args["on"] for join in block.args.get("joins") or () if join.args.get("on") is not None]
    parts = conjuncts(where.this)
    movable = {alias for alias, item in items.items() if isinstance(item, exp.Table | exp.Subquery)}
    known = [*structured, *(part for part in parts if not has_text(part))]
    groups = _find_connected(block, list(items), known)
    for part in [part for part in parts if own_text_calls(part)]:
        aliases = {reference.table for reference in own_columns(block, part)}
        if len({groups[alias] for alias in aliases}) < 2:
            continue
        units = [text_unit(call) for call in outermost_text_calls(part)]
        readers = [{reference.table for reference in own_columns(block, unit)} for unit in units]
        if all(len(reader) == 1 and next(iter(reader)) in movable for reader in readers):
            for unit, reader in zip(units, readers, strict=True):
                alias = next(iter(reader))
                others = [item for name, item in items.items() if name != alias]
                partners = [found for other in others for found in _has_partner(alias, other, known)]
                keep = [*conditions_about(block, alias), *partners, *_take_conditions(block, alias)]
                _push_to_item(block, alias, unit, keep)


def _take_conditions(block: exp.Select, alias: str) -> list[exp.Expr]:
    taken = [
        part
        for part in conjuncts(where_of(block))
        if own_text_calls(part)
        and {c.table for c in own_columns(block, part)} == {alias}
        and is_of_block(part, block)
        and not any(map(has_text, nested_queries(part)))
    ]
    for part in taken:
        part.replace(exp.true())
    return taken


def _push_to_item(block: exp.Select, alias: str, unit: exp.Expr, keep: list[exp.Expr]) -> None:
    """Put a FROM item into a derived table of the rows to keep that also computes an expression over it."""
    item = next(i for i in from_items(block) if i.alias_or_name == alias)
    label = f"u0_{alias}_{len(nodes_of(block, exp.Subquery))}"
    outputs: dict[str, exp.Expr] = {label: unit.copy()}
    unit.replace(column(alias, label))
    for reference in own_columns(block):
        if reference.table == alias and reference.name not in outputs:
            outputs[reference.name] = reference.copy()
    inner = exp.Select(expressions=[aliased(node, label) for label, node in outputs.items()])
    item.replace(derived(inner, alias))
    inner.set("from_", exp.From(this=item))
    if keep:
        inner.set("where", exp.Where(this=exp.and_(*keep, copy=False)))


def keeps_rows(block: exp.Select, alias: str, before: int | None = None) -> bool:
    """Return whether each row of a FROM item reaches WHERE as it is or not at all, and makes no other row reach it.

    Then what WHERE says about the item alone may be said before the joins.

    Args:
        before: the number of a later item, whose join rows have to reach instead of WHERE.
    """
    place = [item.alias_or_name for item in from_items(block)].index(alias)
    sides = ["", *(side_of(join) for join in block.args.get("joins") or ())]
    return sides[place] in ("", "RIGHT") and not {"RIGHT", "FULL"} & set(sides[place + 1 : before])


def has_outer_join(tree: exp.Expr) -> bool:
    return any(side_of(join) for join in nodes_of(tree, exp.Join))


def _find_connected(block: exp.Select, items: list[str], conditions: list[exp.Expr]) -> dict[str, str]:
    """Return, for each FROM item, a representative of the items that conditions without text tie it to."""
    leader = {alias: alias for alias in items}

    def find(alias: str) -> str:
        while leader[alias] != alias:
            alias = leader[alias]
        return alias

    for condition in conditions:
        aliases = [reference.table for reference in own_columns(block, condition)]
        for alias in aliases[1:]:
            leader[find(alias)] = find(aliases[0])
    for item in from_items(block):  # unnest and lateral items read the items before them
        for reference in own_columns(block, item) if isinstance(item, exp.Unnest | exp.Lateral) else ():
            leader[find(item.alias_or_name)] = find(reference.table)
    return {alias: find(alias) for alias in items}


_OTHER_CLAUSES = ("group", "having", "distinct", "qualify", "windows")
_OUTPUTS = (
    *(exp.Column, exp.Identifier, exp.Alias, exp.Literal, exp.Cast, exp.DataType, exp.DPipe, exp.Paren, exp.Binary),
)
_KEYS = (
    *(exp.Ordered, exp.Column, exp.Identifier, exp.Literal, exp.Null, exp.Boolean, exp.Paren, exp.Case, exp.If),
    *(exp.Coalesce, exp.Connector, exp.Not, exp.Is, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE),
    *(exp.Lower, exp.Upper, exp.Length),
)
"""What a key of ORDER BY may be made of: nothing that some rows fail at, since rows without a match are sorted too."""


def matches_wanted(exists: exp.Expr | None) -> tuple[int, bool] | None:
    """Return how many rows with a match a block's LIMIT shows, and whether these are the first in the order of its
    ORDER BY; None where it may need all.

    `SELECT name FROM t WHERE city = 'Paris' AND EXISTS (…) LIMIT 3` needs three: each row that meets the other
    conditions and has a match is a row of the result. So nothing may be asked of rows but this and what the database
    decides, nothing may group them, and each must give one row of output. Under `ORDER BY stars` it needs the first
    three, if their order is known before anything is asked.
    """
    block = exists.find_ancestor(exp.Select) if exists is not None else None
    if block is None or any(block.args.get(clause) for clause in _OTHER_CLAUSES):
        return None
    rows, keys = rows_to_cut(block), order_known_before(block)
    if rows is None or keys is None:
        return None
    if not all(isinstance(node, _OUTPUTS) for item in block.expressions for node in nodes_of(item, exp.Expr)):
        return None
    others = [part for part in conjuncts(where_of(block)) if part is not exists]
    if len(others) + 1 != len(conjuncts(where_of(block))):
        return None
    decided = all(not has_text(part) and is_of_block(part, block) and not is_by_chance(part) for part in others)
    return (rows, bool(keys)) if decided else None


def order_known_before(block: exp.Select) -> tuple[exp.Expr, ...] | None:
    """Return the keys of a block's ORDER BY, by which its rows can be numbered before anything is asked.

    () without an ORDER BY; None where they hold an answer, a nested query, an aggregate, or what a row without a
    match could fail at.
    """
    keys = tuple(block.args["order"].expressions) if block.args.get("order") is not None else ()
    known = all(_is_known_before(node) for key in keys for node in nodes_of(key, exp.Expr))
    return keys if known and all(is_of_block(key, block) for key in keys) else None


def _is_known_before(node: exp.Expr) -> bool:
    if isinstance(node, exp.Cast):
        return bool(node.to.is_type(*exp.DataType.TEXT_TYPES))
    return isinstance(node, _KEYS) or (isinstance(node, exp.DataType) and isinstance(node.parent, exp.Cast))


def rows_to_cut(block: exp.Select) -> int | None:
    """Return how many rows LIMIT and OFFSET need of a block; None without a LIMIT, and where one is computed."""
    return rows_needed(block.args.get("limit"), block.args.get("offset"))


def rows_needed(limit: exp.Expr | None, offset: exp.Expr | None) -> int | None:
    most, before = number_in(limit), 0 if offset is None else number_in(offset)
    return None if most is None or before is None else most + before


def number_in(clause: exp.Expr | None) -> int | None:
    """Return the number in LIMIT or OFFSET; None when there is none or it is computed."""
    value = clause.expression if clause is not None else None
    return int(value.name) if isinstance(value, exp.Literal) and value.name.isdigit() else None


OUTER = "_outer"
"""The column of a derived table that holds the row of the enclosing block it belongs to."""


def restrict_semi_joins(block: exp.Select, named: Container[object]) -> list[exp.Select]:
    """Look up in each `x IN (SELECT y …)` of a block's WHERE only values that `x` has in rows that may be kept.

    `FROM t WHERE c AND x IN (SELECT y FROM r WHERE f(r.z))` becomes
    `FROM t WHERE c AND x IN (SELECT y FROM r WHERE f(r.z) AND y IN (SELECT x FROM t WHERE c))`; members of WITH
    (`named`) are not read once more. Where LIMIT shows some rows alone, it becomes
    `FROM t WHERE c AND EXISTS (SELECT 1 FROM r WHERE f(r.z) AND y = x)`, which knows of them. Returns the nested blocks
    whose one output is looked up: one row for each value will do.
    """
    found = []
    for part in conjuncts(where_of(block)):
        nested = _nested_block(part)
        if nested is None or is_correlated(nested):
            continue
        value = nested.expressions[0].unalias().copy()
        value_of_row = part.this.find(exp.Column) is not None and part.this.find(exp.Query, exp.Tuple) is None
        if value_of_row and not is_by_chance(part.this) and matches_wanted(part) is not None:
            nested.where(exp.EQ(this=value, expression=part.this.copy()), copy=False)
            part.replace(exp.Exists(this=nested))
            continue
        values = _values_looked_for(block, part, named)
        if values is not None:
            nested.where(exp.In(this=value, query=exp.Subquery(this=values)), copy=False)
        found.append(nested)
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


def _values_looked_for(block: exp.Select, part: exp.Expr, named: Container[object]) -> exp.Select | None:
    """Return the query of the values that `x IN (SELECT …)` looks for in rows of its block that may be kept."""
    items, all_joins = list(from_items(block)), block.args.get("joins") or []
    value = part.this
    tables = all(_is_table(item) and item.name not in named for item in items)
    if (
        not tables
        or has_outer_join(block)
        or any(set(_list_given(join)) - {"this", "on", "kind"} for join in all_joins)
    ):
        return None
    if value.find(exp.Query, exp.Tuple) or not is_of_block(value, block) or is_by_chance(value):
        return None
    joined = [condition for join in all_joins for condition in conjuncts(join.args.get("on"))]
    parts = [each for each in [*conjuncts(where_of(block)), *joined] if each is not part]
    usable = [each for each in parts if not (has_text(each) or each.find(exp.Query) or is_by_chance(each))]
    usable = [each.copy() for each in usable if is_of_block(each, block)]
    select = exp.Select(expressions=[value.copy()]).where(*usable, copy=False)
    apart = {item.alias_or_name: f"_of_{item.alias_or_name}" for item in items}
    for node in nodes_of(select, exp.Column):
        node.replace(column(apart[node.table], node.name))
    first, *more = [exp.Table(this=item.this.copy(), alias=table_alias(apart[item.alias_or_name])) for item in items]
    select.set("from_", exp.From(this=first))
    select.set("joins", [exp.Join(this=other, kind="CROSS") for other in more] or None)
    return select


def _is_table(item: exp.Expr) -> bool:
    alias = item.args.get("alias")
    listed = alias is not None and bool(alias.args.get("columns"))
    plain = isinstance(item, exp.Table) and isinstance(item.this, exp.Identifier)
    return plain and not listed and not set(_list_given(item)) - {"this", "alias"}


def _list_given(node: exp.Expr) -> list[str]:
    return [key for key, value in node.args.items() if value]
