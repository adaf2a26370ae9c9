"""Rewrites that take text functions out of join conditions."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from almanaq.suql.catalog.sources import from_items
from almanaq.suql.plan.predicates import conjuncts
from almanaq.suql.plan.references import is_of_block, own_columns, where_of
from almanaq.suql.plan.sites import text_unit
from almanaq.suql.syntax.nodes import aliased, column, derived, nodes_of
from almanaq.suql.text_functions import has_text, nested_queries, outermost_text_calls, own_text_calls


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


def push_outer_join_text(block: exp.Select) -> None:
    """Compute the text of an outer join's ON condition in a derived table of the one relation that it reads.

    `a LEFT JOIN b ON c AND f(b.x) = 'y'` becomes
    `a LEFT JOIN (SELECT …, f(b.x) = 'y' AS u0 FROM b) AS b ON c AND b.u0`.
    Text over both sides stays. Rows for which the rest of ON finds no match are not asked: u0 is NULL there.
    """
    items = {item.alias_or_name: item for item in from_items(block)}
    for join in block.args.get("joins") or ():
        on = join.args.get("on")
        for call in outermost_text_calls(on) if on is not None else ():
            unit = text_unit(call)
            aliases = {reference.table for reference in own_columns(block, unit)}
            alias = next(iter(aliases), join.this.alias_or_name)
            if len(aliases) > 1 or not isinstance(items[alias], exp.Table | exp.Subquery):
                continue
            matching = conjuncts(on) if alias == join.this.alias_or_name and side_of(join) == "LEFT" else []
            kept = conjuncts(where_of(block)) if keeps_rows(block, alias) else []
            matters = [] if unit.find_ancestor(exp.Case) else _has_matches(block, join, alias)
            lazily = exp.Case(ifs=[exp.If(this=exp.and_(*matters), true=unit.copy())]) if matters else unit.copy()
            unit.replace(lazily)
            push_to_item(block, alias, [lazily], [*matching, *kept])
            items = {item.alias_or_name: item for item in from_items(block)}


def _has_matches(block: exp.Select, join: exp.Join, alias: str) -> list[exp.Expr]:
    """Return conditions without which a row of one side of a join has no match that counts, for any answers."""
    own, items = join.this.alias_or_name, list(from_items(block))
    before = items[: [item.alias_or_name for item in items].index(own)]
    found: list[exp.Expr] = []
    for other in before if alias == own else [join.this]:
        name = other.alias_or_name
        kept = [part for part in conjuncts(where_of(block)) if _tables(part) == {name}]
        parts = [*conjuncts(join.args["on"]), *(kept if keeps_rows(block, name) else [])]
        found += _has_partner(alias, other, parts)
    return found


def _has_partner(alias: str, other: exp.Expr, parts: list[exp.Expr]) -> list[exp.Expr]:
    """Return the condition that a table has a row that meets those conditions which are about it, or about it and a row
    of the item `alias`, without text; none if none are, or it is no table.
    """
    both = {alias, other.alias_or_name}
    about = [
        part.copy()
        for part in parts
        if {alias} != _tables(part) <= both and part != exp.true() and not has_text(part) and not part.find(exp.Query)
    ]
    if not about or not isinstance(other, exp.Table):
        return []
    rows = exp.Select(expressions=[exp.Literal.number(1)], from_=exp.From(this=other.copy()))
    return [exp.Exists(this=rows.where(*about, copy=False))]


def _tables(part: exp.Expr) -> set[str]:
    return {reference.table for reference in nodes_of(part, exp.Column)}


def push_joining_answers(block: exp.Select) -> None:
    """Compute answers that are all that joins two relations before the join, so that the database joins on them.

    `FROM a, b WHERE f(a.x) = b.y` becomes `FROM (SELECT …, f(a.x) AS u0 FROM a) AS a, b WHERE a.u0 = b.y`:
    each text is asked once, instead of once for each pair of rows; only of rows that meet what WHERE says of them
    alone, and only if the other tables have a row to join.
    """
    where = block.args.get("where")
    tables = list(from_items(block))
    items = [item.alias_or_name for item in tables]
    if where is None or len(items) < 2 or any(side_of(join) for join in block.args.get("joins") or ()):
        return
    structured = [join.args["on"] for join in block.args.get("joins") or () if join.args.get("on") is not None]
    parts = conjuncts(where.this)
    movable = {i.alias_or_name for i in tables if isinstance(i, exp.Table | exp.Subquery)}
    known = [*structured, *(part for part in parts if not has_text(part))]
    groups = _find_connected(block, items, known)
    for part in [part for part in parts if own_text_calls(part)]:
        aliases = {reference.table for reference in own_columns(block, part)}
        if len({groups[alias] for alias in aliases}) < 2:
            continue
        units = [text_unit(call) for call in outermost_text_calls(part)]
        readers = [{reference.table for reference in own_columns(block, unit)} for unit in units]
        if all(len(reader) == 1 and next(iter(reader)) in movable for reader in readers):
            for unit, reader in zip(units, readers, strict=True):
                alias = next(iter(reader))
                others = [item for item in tables if item.alias_or_name != alias]
                partners = [found for other in others for found in _has_partner(alias, other, known)]
                push_to_item(block, alias, [unit], known, [*partners, *_take_conditions(block, alias)])


def _take_conditions(block: exp.Select, alias: str) -> list[exp.Expr]:
    found = [part for part in conjuncts(where_of(block)) if own_text_calls(part)]
    found = [
        part for part in found if {c.table for c in own_columns(block, part)} == {alias} and is_of_block(part, block)
    ]
    taken = [part for part in found if not any(map(has_text, nested_queries(part)))]
    for part in taken:
        part.replace(exp.true())
    return taken


def push_to_item(
    block: exp.Select, alias: str, units: list[exp.Expr], conditions: list[exp.Expr], partners: Sequence[exp.Expr] = ()
) -> None:
    """Put a FROM item into a derived table that also computes expressions over it.

    Args:
        conditions: conjuncts that every row of the item must meet to count; those that read only the item and hold
            no text are repeated inside, so that fewer rows are asked.
        partners: conditions over the item that every row of it must meet to count.
    """
    item = next(i for i in from_items(block) if i.alias_or_name == alias)
    keep = [
        part.copy()
        for part in conditions
        if not has_text(part) and _tables(part) == {alias} and not part.find(exp.Query)
    ]
    keep += partners
    inner_alias = f"{alias}_{len(nodes_of(block, exp.Subquery))}"
    outputs: dict[str, exp.Expr] = {}
    for unit in units:
        label = f"u{len(outputs)}_{inner_alias}"
        outputs[label] = unit.copy()
        unit.replace(column(alias, label))
    for reference in own_columns(block):
        if reference.table == alias and reference.name not in outputs:
            outputs[reference.name] = reference.copy()
    inner = exp.Select(expressions=[aliased(node, label) for label, node in outputs.items()])
    item.replace(derived(inner, alias))
    inner.set("from_", exp.From(this=item))
    if keep:
        inner.set("where", exp.Where(this=exp.and_(*keep, copy=False)))


def keeps_rows(block: exp.Select, alias: str) -> bool:
    """Return whether each row of a FROM item reaches WHERE as it is or not at all, and makes no other row reach it.

    Then what WHERE says about the item alone may be said before the joins.
    """
    place = [item.alias_or_name for item in from_items(block)].index(alias)
    sides = ["", *(side_of(join) for join in block.args.get("joins") or ())]
    return sides[place] in ("", "RIGHT") and not {"RIGHT", "FULL"} & set(sides[place + 1 :])


def has_outer_join(tree: exp.Expr) -> bool:
    """Return whether a query, or one in it, keeps rows without a match."""
    return any(side_of(join) for join in nodes_of(tree, exp.Join))


def side_of(join: exp.Join) -> str:
    """Return the side whose rows a join keeps without a match: LEFT, RIGHT, FULL, or ""."""
    return str(join.args.get("side") or ("FULL" if join.args.get("kind") == "FULL" else "")).upper()


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
