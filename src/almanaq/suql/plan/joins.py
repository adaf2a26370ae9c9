"""Rewrites that take text functions out of join conditions."""

from __future__ import annotations

from sqlglot import exp

from almanaq.suql.catalog.sources import from_items
from almanaq.suql.plan.predicates import conjuncts
from almanaq.suql.plan.references import aliased, column, own_columns, quoted, where_of
from almanaq.suql.plan.sites import text_unit
from almanaq.suql.syntax.text_functions import has_text, outermost_text_calls, own_text_calls


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
    """Give conditions without which a row of one side of a join has no match, whatever text says: for each table of
    the other side, that a row of it meets what ON says about the two without text.
    """
    own, items = join.this.alias_or_name, list(from_items(block))
    before = items[: [item.alias_or_name for item in items].index(own)]
    others = before if alias == own else [join.this]
    parts = [part for part in conjuncts(join.args["on"]) if not has_text(part) and not part.find(exp.Query)]
    found: list[exp.Expr] = []
    for other in others:
        both = {alias, other.alias_or_name}
        about = [part.copy() for part in parts if {c.table for c in part.find_all(exp.Column)} == both]
        if about and isinstance(other, exp.Table):
            matches = exp.Select(expressions=[exp.Literal.number(1)], from_=exp.From(this=other.copy()))
            found.append(exp.Exists(this=matches.where(*about, copy=False)))
    return found


def push_joining_answers(block: exp.Select) -> None:
    """Compute answers that are all that joins two relations before the join, so that the database joins on them.

    `FROM a, b WHERE f(a.x) = b.y` becomes `FROM (SELECT …, f(a.x) AS u0 FROM a) AS a, b WHERE a.u0 = b.y`:
    each text is asked once, instead of once for each pair of rows.
    """
    where = block.args.get("where")
    items = [item.alias_or_name for item in from_items(block)]
    if where is None or len(items) < 2 or any(side_of(join) for join in block.args.get("joins") or ()):
        return
    structured = [join.args["on"] for join in block.args.get("joins") or () if join.args.get("on") is not None]
    parts = conjuncts(where.this)
    movable = {i.alias_or_name for i in from_items(block) if isinstance(i, exp.Table | exp.Subquery)}
    groups = _connected(block, items, [*structured, *(part for part in parts if not has_text(part))])
    for part in [part for part in parts if own_text_calls(part)]:
        aliases = {reference.table for reference in own_columns(block, part)}
        if len({groups[alias] for alias in aliases}) < 2:
            continue
        units = [text_unit(call) for call in outermost_text_calls(part)]
        readers = [{reference.table for reference in own_columns(block, unit)} for unit in units]
        if all(len(reader) == 1 and next(iter(reader)) in movable for reader in readers):
            single = [p for p in conjuncts(where.this) if not has_text(p)]
            for unit, reader in zip(units, readers, strict=True):
                push_to_item(block, next(iter(reader)), [unit], single)


def push_to_item(block: exp.Select, alias: str, units: list[exp.Expr], conditions: list[exp.Expr]) -> None:
    """Put a FROM item into a derived table that also computes expressions over it.

    Args:
        conditions: conjuncts that every row of the item must meet to count; those that read only the item and hold
            no text are repeated inside, so that fewer rows are asked.
    """
    item = next(i for i in from_items(block) if i.alias_or_name == alias)
    keep = [
        part.copy()
        for part in conditions
        if not has_text(part) and {c.table for c in part.find_all(exp.Column)} == {alias} and not part.find(exp.Query)
    ]
    inner_alias = f"{alias}_{len(list(block.find_all(exp.Subquery)))}"
    outputs: dict[str, exp.Expr] = {}
    for unit in units:
        label = f"u{len(outputs)}_{inner_alias}"
        outputs[label] = unit.copy()
        unit.replace(column(alias, label))
    for reference in own_columns(block):
        if reference.table == alias and reference.name not in outputs:
            outputs[reference.name] = reference.copy()
    inner = exp.Select(expressions=[aliased(node, label) for label, node in outputs.items()])
    item.replace(exp.Subquery(this=inner, alias=exp.TableAlias(this=quoted(alias))))
    inner.set("from_", exp.From(this=item))
    if keep:
        inner.set("where", exp.Where(this=exp.and_(*keep, copy=False)))


def keeps_rows(block: exp.Select, alias: str) -> bool:
    """Say whether each row of a FROM item reaches WHERE as it is or not at all, and makes no other row reach it.

    Then what WHERE says about the item alone may be said before the joins.
    """
    place = [item.alias_or_name for item in from_items(block)].index(alias)
    sides = ["", *(side_of(join) for join in block.args.get("joins") or ())]
    return sides[place] in ("", "RIGHT") and not {"RIGHT", "FULL"} & set(sides[place + 1 :])


def has_outer_join(tree: exp.Expr) -> bool:
    """Say whether a query, or one in it, keeps rows without a match."""
    return any(side_of(join) for join in tree.find_all(exp.Join))


def side_of(join: exp.Join) -> str:
    """Give the side whose rows a join keeps without a match: LEFT, RIGHT, FULL, or ""."""
    return str(join.args.get("side") or ("FULL" if join.args.get("kind") == "FULL" else "")).upper()


def _connected(block: exp.Select, items: list[str], conditions: list[exp.Expr]) -> dict[str, str]:
    """Give, for each FROM item, a representative of the items that conditions without text tie it to."""
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
