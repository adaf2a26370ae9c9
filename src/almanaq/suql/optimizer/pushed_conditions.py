"""Conditions where they cost least: below what they pass through, and of outer joins that they make inner ones."""

from __future__ import annotations

from sqlglot import exp

from almanaq.suql.catalog.sources import find_cte, from_items
from almanaq.suql.plan.blocks import is_aggregated, sets_in
from almanaq.suql.plan.joins import has_outer_join, keeps_rows, side_of
from almanaq.suql.plan.predicates import conjuncts
from almanaq.suql.plan.sites import where_of
from almanaq.suql.syntax.nodes import is_comma, nodes_of
from almanaq.suql.text_functions import has_text, is_by_chance, is_text_call, own_nodes

_CUTS = ("limit", "offset", "rollup", "cube", "grouping_sets")


def pushed_conditions(tree: exp.Query) -> exp.Query:
    """Repeat conditions about a derived table, or about a member of WITH that is read once, inside of it.

    Before: `SELECT * FROM (SELECT DISTINCT city, answer(…) AS a FROM t) AS d WHERE d.city = 'Rome'` asks for every row.
    After: the derived table has `WHERE city = 'Rome'`, and so do both sides of a UNION; the condition outside stays.

    A row that fails the condition outside is dropped there anyway, and no other row depends on it. Below a LIMIT, a
    window or an aggregate one would, so conditions are pushed past grouping only where they are about its keys.
    """
    for block in nodes_of(tree, exp.Select) if has_text(tree) else ():
        parts = [part for part in _conditions(block) if not (has_text(part) or part.find(exp.Query))]
        for item in from_items(block):
            inner = _read_only_by(item, tree)
            if inner is not None and has_text(inner) and keeps_rows(block, item.alias_or_name):
                for part in (part for part in parts if not is_by_chance(part)):
                    if {column.table for column in nodes_of(part, exp.Column)} == {item.alias_or_name}:
                        _push(inner, part, [output.alias_or_name for output in inner.selects])
    return tree


def _conditions(block: exp.Select) -> list[exp.Expr]:
    joined = block.args.get("joins") or []
    joined = [] if any(map(side_of, joined)) else joined
    return [part for node in (where_of(block), *(join.args.get("on") for join in joined)) for part in conjuncts(node)]


def _read_only_by(item: exp.Expr, tree: exp.Query) -> exp.Query | None:
    holder: exp.Expr | None = item if isinstance(item, exp.Subquery) else None
    if isinstance(item, exp.Table):
        holder = find_cte(item)
        readers = [table for table in nodes_of(tree, exp.Table) if holder is not None and find_cte(table) is holder]
        recursive = holder is not None and holder.parent is not None and holder.parent.args.get("recursive")
        holder = None if len(readers) != 1 or recursive else holder
    for node in (item, holder):
        alias = node.args.get("alias") if node is not None else None
        if alias is not None and alias.args.get("columns"):
            return None
    return holder.this if holder is not None and isinstance(holder.this, exp.Query) else None


def _push(query: exp.Expr, part: exp.Expr, names: list[str]) -> None:
    if any(query.args.get(clause) for clause in _CUTS):
        return
    if isinstance(query, exp.Subquery):
        _push(query.this, part, names)
    elif isinstance(query, exp.SetOperation):
        if all(_has_one_type(query, names.index(column.name)) for column in nodes_of(part, exp.Column)):
            _push(query.this, part, names)
            _push(query.expression, part, names)
    elif isinstance(query, exp.Select):
        outputs = dict(zip(names, (item.unalias() for item in query.expressions), strict=False))
        read = [outputs.get(column.name) for column in nodes_of(part, exp.Column)]
        if all(node is not None and _may_filter(node, query) for node in read) and _is_open(query):
            query.where(_over(part, outputs), copy=False)


def _has_one_type(query: exp.Query, number: int) -> bool:
    """Return whether an output of a set operation has one type on both sides: otherwise it is cast on its way out."""
    sides = (query.this, query.expression) if isinstance(query, exp.SetOperation) else ()
    outputs = [side.selects[number].unalias() for side in sides if len(side.selects) > number]
    known = {output.type.sql() for output in outputs if output.type is not None}
    return len(outputs) == 2 and len(known) == 1 and all(output.type is not None for output in outputs)


def _is_open(block: exp.Select) -> bool:
    distinct = block.args.get("distinct")
    if (distinct is not None and distinct.args.get("on") is not None) or sets_in(block.expressions):
        return False
    if any(isinstance(node, exp.Window) for node in own_nodes(block)) or any(
        isinstance(i, exp.Star) for i in block.expressions
    ):
        return False
    group = block.args.get("group")
    if group is not None and any(group.args.get(clause) for clause in _CUTS):
        return False
    return not is_aggregated(block) or (group is not None and bool(group.expressions))


def _may_filter(node: exp.Expr, block: exp.Select) -> bool:
    group = block.args.get("group")
    key = not is_aggregated(block) or (group is not None and node in group.expressions)
    return key and not (has_text(node) or is_by_chance(node)) and node.find(exp.Query) is None


def _over(part: exp.Expr, outputs: dict[str, exp.Expr]) -> exp.Expr:
    holder = exp.paren(part.copy(), copy=False)
    for column in nodes_of(holder, exp.Column):
        output = outputs[column.name].copy()
        column.replace(output if isinstance(output, exp.Column) else exp.paren(output, copy=False))
    return holder


_OF_BOTH_SIDES = (
    *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Like, exp.ILike),
    *(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod),
)
"""Operators that give NULL where one side is NULL."""
_OF_THE_FIRST = (exp.Paren, exp.Cast, exp.Neg, exp.Not, exp.Between)
"""Operators that give NULL where what they are about is NULL."""


def inner_joins(tree: exp.Query) -> exp.Query:
    """Turn outer joins whose rows without a match a later condition drops into inner joins.

    Before: `SELECT … FROM a LEFT JOIN b ON answer(a.x, …) = answer(b.y, …) WHERE b.id < 5` asks for every row of b.
    After: `SELECT … FROM a JOIN b ON answer(a.x, …) = answer(b.y, …) WHERE b.id < 5` asks for those with `id < 5`.

    A row without a match has NULL for every column of the other side, and the condition is not true of NULL. A FULL
    JOIN may turn into a LEFT or RIGHT JOIN.
    """
    if has_text(tree) and has_outer_join(tree):
        for block in nodes_of(tree, exp.Select):
            while any(_narrow(block, place) for place in range(len(block.args.get("joins") or ()))):
                pass
    return tree


def _narrow(block: exp.Select, place: int) -> bool:
    joins, items = block.args["joins"], [item.alias_or_name for item in from_items(block)]
    join, side = joins[place], side_of(joins[place])
    if not side or join.args.get("using") or join.args.get("method"):
        return False
    comma = max((i for i, earlier in enumerate(joins[:place]) if is_comma(earlier)), default=-1)
    before, item = set(items[comma + 1 : place + 1]), {items[place + 1]}
    joining = [later.args.get("on") for later in joins[place + 1 :] if side_of(later) in ("", "RIGHT")]
    conditions = [part for condition in (where_of(block), *joining) for part in conjuncts(condition)]
    keeps_before = side in ("LEFT", "FULL") and not any(_drops(part, item) for part in conditions)
    keeps_item = side in ("RIGHT", "FULL") and not any(_drops(part, before) for part in conditions)
    narrowed = {(True, True): "FULL", (True, False): "LEFT", (False, True): "RIGHT"}.get((keeps_before, keeps_item))
    join.set("side", narrowed)
    join.set("kind", None)
    return narrowed != side


def _drops(node: exp.Expr, names: set[str]) -> bool:
    """Return whether a condition is not true where every column of some FROM items is NULL."""
    if isinstance(node, exp.Paren):
        return _drops(node.this, names)
    if isinstance(node, exp.And | exp.Or):
        sides = (_drops(node.this, names), _drops(node.expression, names))
        return any(sides) if isinstance(node, exp.And) else all(sides)
    asked = node.this.unnest() if isinstance(node, exp.Not) else node
    if isinstance(asked, exp.Is) and isinstance(asked.expression, exp.Null):
        negated = (asked is not node) != bool(asked.args.get("negate"))
        return negated and _is_null(asked.this, names)
    return _is_null(node, names)


def _is_null(node: exp.Expr | None, names: set[str]) -> bool:
    """Return whether an expression is NULL where every column of some FROM items is; answers about NULL are."""
    if isinstance(node, exp.Column):
        return node.table in names
    if isinstance(node, _OF_THE_FIRST) or (isinstance(node, exp.In) and node.expressions):
        return _is_null(node.this, names)
    if isinstance(node, _OF_BOTH_SIDES) and not isinstance(node.expression, exp.Any | exp.All):
        return _is_null(node.this, names) or _is_null(node.expression, names)
    if isinstance(node, exp.And | exp.Or):
        return _is_null(node.this, names) and _is_null(node.expression, names)
    arguments = node.expressions[:2] if node is not None and is_text_call(node) else []
    return any(_is_null(argument, names) for argument in arguments)
