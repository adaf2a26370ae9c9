"""ROLLUP, CUBE and GROUPING SETS in Spark: their order, and the total of no rows, which Spark leaves out."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from almanaq.errors import UnsupportedError
from almanaq.suql.syntax.nodes import nodes_of

_AGGREGATES = (exp.AggFunc, exp.AnonymousAggFunc, exp.Filter, exp.WithinGroup)
_AROUND = ("limit", "offset", "with_")


def has_sets(select: exp.Select) -> bool:
    """Tell whether a SELECT groups by more than one set of keys."""
    return bool(list(_sets(select)))


def write_sets(select: exp.Select) -> exp.Expr:
    """Return a SELECT whose groups are made within and sorted without, with the total of all rows though there are
    none.

    Raises:
        UnsupportedError: a window over such groups.
    """
    inner = select.copy()
    names = [item.alias_or_name for item in inner.selects]
    order = inner.args.get("order")
    keys = [] if order is None else [key.copy() for key in order.expressions]
    around = {part: inner.args.get(part) for part in _AROUND}
    for part in ("order", *_AROUND):
        inner.set(part, None)
    shown = [exp.alias_(item.unalias().copy(), _label(f"o{i}")) for i, item in enumerate(inner.selects)]
    carried = [exp.alias_(_sorting(key.this, select), _label(f"k{i}")) for i, key in enumerate(keys)]
    inner.set("expressions", [*shown, *carried])
    rows: exp.Expr = inner
    if _has_total(inner):
        rows = exp.Union(this=inner, expression=_total_of_nothing(inner), distinct=False)
    outer = exp.select(
        *(exp.alias_(exp.Column(this=_label(f"o{i}")), exp.to_identifier(name or f"_o{i}", quoted=True))
          for i, name in enumerate(names))
    ).from_(exp.Subquery(this=rows, alias=exp.TableAlias(this=_label("groups"))))  # fmt: skip
    for i, key in enumerate(keys):
        key.set("this", exp.Column(this=_label(f"k{i}")))
    if keys:
        outer.set("order", exp.Order(expressions=keys))
    for part, value in around.items():
        outer.set(part, value)
    return outer


def _label(name: str) -> exp.Identifier:
    return exp.to_identifier(f"_{name}", quoted=True)


def _sorting(node: exp.Expr, select: exp.Select) -> exp.Expr:
    """Return what an ordinal or the name of an output sorts by."""
    if isinstance(node, exp.Literal) and node.is_int:
        chosen: exp.Expr = select.selects[int(node.name) - 1].unalias()
        return chosen.copy()
    if isinstance(node, exp.Column) and not node.table:
        for item in select.selects:
            if isinstance(item, exp.Alias) and item.alias == node.name:
                named: exp.Expr = item.this
                return named.copy()
    return node.copy()


def _sets(select: exp.Select) -> Iterator[exp.Expr]:
    group = select.args.get("group")
    for part in ("rollup", "cube", "grouping_sets"):
        yield from (group.args.get(part) or ()) if group is not None else ()


def _has_total(select: exp.Select) -> bool:
    """Tell whether one of the sets has no key: it has a row though there are none to group."""
    if select.args["group"].expressions:
        return False
    sets = list(_sets(select))
    return len(sets) == 1 and (
        not isinstance(sets[0], exp.GroupingSets)
        or any(isinstance(each, exp.Tuple) and not each.expressions for each in sets[0].expressions)
    )


def _total_of_nothing(select: exp.Select) -> exp.Select:
    """Return the row of all rows where there are none: no keys, no count, and nothing else known."""
    if any(nodes_of(item, exp.Window) for item in select.selects):
        raise UnsupportedError("window functions over ROLLUP, CUBE or GROUPING SETS are not supported on spark")
    source = select.copy()
    source.set("expressions", [exp.Literal.number(1)])
    for part in ("group", "having", "distinct"):
        source.set(part, None)
    none = exp.not_(exp.Exists(this=source))
    having, keys = select.args.get("having"), _keys(select)
    where = none if having is None else exp.and_(none, _of_nothing(having.this, keys))
    outputs = [exp.alias_(_of_nothing(item.unalias(), keys), item.args["alias"].copy()) for item in select.selects]
    return exp.Select(expressions=outputs, where=exp.Where(this=where))


def _keys(select: exp.Select) -> list[exp.Expr]:
    """Return the keys of all sets."""
    found: list[exp.Expr] = []
    waiting = [each for part in _sets(select) for each in part.expressions]
    while waiting:
        each = waiting.pop()
        if isinstance(each, exp.Tuple | exp.Rollup | exp.Cube | exp.GroupingSets):
            waiting += each.expressions
        else:
            found.append(each.unnest())
    return found


def _of_nothing(node: exp.Expr, keys: list[exp.Expr]) -> exp.Expr:
    """Return what an expression over groups comes to in the total of no rows."""

    def known(part: exp.Expr) -> exp.Expr:
        if isinstance(part, exp.Grouping):
            return exp.Literal.number(2 ** len(part.expressions) - 1)
        if isinstance(part, exp.Filter) and isinstance(part.this, exp.Count):
            return exp.Literal.number(0)
        if isinstance(part, exp.Count):
            return exp.Literal.number(0)
        if part in keys or isinstance(part, (*_AGGREGATES, exp.Column)) or _gathers(part):
            return exp.null()
        return part

    found = node.copy().transform(known)
    for branch in nodes_of(found, exp.If):
        if isinstance(branch.this, exp.Null):
            branch.set("this", exp.false())  # a condition has to be one
    return found


def _gathers(node: exp.Expr) -> bool:
    """Tell whether a node is what string_agg or array_agg is written as."""
    if isinstance(node, exp.Case) and len(node.args["ifs"]) == 1 and node.args.get("default") is None:
        node = node.args["ifs"][0].args["true"]
        return node.name == "transform" and any(each.name == "collect_list" for each in nodes_of(node, exp.Anonymous))
    return isinstance(node, exp.Anonymous) and node.name in ("listagg", "collect_list")
