"""DISTINCT, DISTINCT ON and groups in Spark, with the order that the query asks for."""

from __future__ import annotations

from sqlglot import exp

from almanaq.errors import UnsupportedError
from almanaq.suql.dialects.spark_groups import has_sets, write_sets
from almanaq.suql.syntax.nodes import nodes_of

_NUMBER = "_first"


def merge_members(tree: exp.Expr) -> exp.Expr:
    """Return a tree, which is changed, in which no member of WITH is defined twice: sqlglot moves all to the top.

    Raises:
        UnsupportedError: two members that differ have one name.
    """
    known: dict[str, exp.Expr] = {}
    for with_ in nodes_of(tree, exp.With):
        kept = []
        for member in with_.expressions:
            name = member.alias.lower()
            if name not in known:
                known[name] = member.copy()
                kept.append(member)
            elif known[name] != member:
                raise UnsupportedError(f"spark cannot have two members of WITH named {name!r}: rename one")
        if kept:
            with_.set("expressions", kept)
        else:
            with_.pop()
    return tree


def write_select(node: exp.Expr) -> exp.Expr:
    """Return a SELECT whose rows Spark would order, narrow or group otherwise."""
    distinct = node.args.get("distinct")
    if not isinstance(node, exp.Select) or (distinct is None and not has_sets(node)):
        return node
    if distinct is not None and distinct.args.get("on") is not None:
        return _first_of_each(node)
    if distinct is None:
        return write_sets(node)
    order = node.args.get("order")
    for ordered in order.expressions if order is not None else ():
        _name_output(ordered, node)
    return node


def _name_output(ordered: exp.Expr, select: exp.Select) -> None:
    """Order by the place of an output where an expression repeats it: the rows before DISTINCT are gone there."""
    for place, item in enumerate(select.selects, 1):
        if item.unalias() == ordered.this or (isinstance(ordered.this, exp.Column) and not ordered.this.table
                                              and ordered.this.name == item.alias_or_name):  # fmt: skip
            ordered.set("this", exp.Literal.number(place))
            return


def _first_of_each(select: exp.Select) -> exp.Expr:
    """Number the rows of each group in the query's order, keep the first of each, and order those again."""
    inner = select.copy()
    on = inner.args["distinct"].args["on"].expressions
    order, names = inner.args.get("order"), [item.alias_or_name for item in inner.selects]
    keys = [] if order is None else [_resolved(key, inner) for key in order.expressions]
    window = exp.Window(
        this=exp.RowNumber(),
        partition_by=[_output(expression, inner) for expression in on],
        order=exp.Order(expressions=[key.copy() for key in keys] or [exp.Ordered(this=exp.Literal.number(1))]),
    )
    shown = [exp.alias_(item.unalias().copy(), _label(f"o{i}")) for i, item in enumerate(inner.selects)]
    carried = [exp.alias_(key.this.copy(), _label(f"k{i}")) for i, key in enumerate(keys)]
    moved = {part: inner.args.get(part) for part in ("limit", "offset", "with_")}
    for part in ("distinct", "order", "limit", "offset", "with_"):
        inner.set(part, None)
    inner.set("expressions", [*shown, *carried, exp.alias_(window, _label(_NUMBER))])
    outer = exp.select(
        *(exp.alias_(exp.Column(this=_label(f"o{i}")), exp.to_identifier(name, quoted=True))
          for i, name in enumerate(names))
    ).from_(exp.Subquery(this=inner, alias=exp.TableAlias(this=_label("firsts"))))  # fmt: skip
    outer = outer.where(exp.EQ(this=exp.Column(this=_label(_NUMBER)), expression=exp.Literal.number(1)))
    for i, key in enumerate(keys):
        key.set("this", exp.Column(this=_label(f"k{i}")))
    if keys:
        outer.set("order", exp.Order(expressions=keys))
    for part, value in moved.items():
        outer.set(part, value)
    return outer


def _label(name: str) -> exp.Identifier:
    return exp.to_identifier(f"_{name.lstrip('_')}", quoted=True)


def _resolved(key: exp.Expr, select: exp.Select) -> exp.Expr:
    found = key.copy()
    found.set("this", _output(found.this, select))
    return found


def _output(node: exp.Expr, select: exp.Select) -> exp.Expr:
    """Return what an ordinal or the name of an output stands for."""
    if isinstance(node, exp.Literal) and node.is_int:
        chosen: exp.Expr = select.selects[int(node.name) - 1].unalias().copy()
        return chosen
    if isinstance(node, exp.Column) and not node.table:
        for item in select.selects:
            if isinstance(item, exp.Alias) and item.alias == node.name:
                named: exp.Expr = item.this.copy()
                return named
    return node.copy()
