"""Nodes of a tree: found in order, built, and in one form for what queries write in several."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Container, Iterator, Sequence
from typing import Any, TypeVar

from sqlglot import exp

E = TypeVar("E", bound=exp.Expr)


def nodes(tree: exp.Expr) -> list[exp.Expr]:
    """Return all nodes of a tree, the tree first, each before what it is made of and level by level, as `walk` does.

    The list is what there is now: the tree may be changed while the list is gone through.
    """
    found = [tree]
    for node in found:  # which grows meanwhile
        for part in node.args.values():
            if isinstance(part, exp.Expr):
                found.append(part)
            elif isinstance(part, list):
                found += [item for item in part if isinstance(item, exp.Expr)]
    return found


def nodes_above(tree: exp.Expr, is_end: Callable[[exp.Expr], bool]) -> list[exp.Expr]:
    """Return the nodes of a tree in pre-order; those that are an end are given, but not gone into."""
    found: list[exp.Expr] = []
    pending = [tree]
    while pending:
        node = pending.pop()
        found.append(node)
        for part in () if is_end(node) else reversed(node.args.values()):
            if isinstance(part, exp.Expr):
                pending.append(part)
            elif isinstance(part, list):
                pending += [item for item in reversed(part) if isinstance(item, exp.Expr)]
    return found


def nodes_of(tree: exp.Expr, *kinds: type[E]) -> list[E]:
    return [node for node in nodes(tree) if isinstance(node, kinds)]


def copy_tree(tree: E) -> E:
    """Return a copy of a tree that shares its types, which nobody changes: `copy` copies one for each node."""
    parts: dict[str, Any] = {}
    for name, part in tree.args.items():
        if isinstance(part, exp.Expr):
            part = copy_tree(part)
        elif isinstance(part, list):
            part = [copy_tree(item) if isinstance(item, exp.Expr) else item for item in part]
        parts[name] = part
    made = type(tree)(**parts)
    made._type, made._meta = tree._type, tree._meta and dict(tree._meta)
    return made


def ancestors(node: exp.Expr, top: exp.Expr | None = None) -> Iterator[exp.Expr]:
    """Yield a node and what it stands in, from the inside out, below `top`."""
    at: exp.Expr | None = node
    while at is not None and at is not top:
        yield at
        at = at.parent


def is_within(node: exp.Expr, tree: exp.Expr) -> bool:
    return any(at is tree for at in ancestors(node))


def in_parentheses(node: exp.Expr) -> exp.Expr:
    """Return the outermost of the parentheses around a node, which stand in something; else the node itself."""
    while isinstance(node.parent, exp.Paren) and node.parent.parent is not None:
        node = node.parent
    return node


def quoted(name: str) -> exp.Identifier:
    return exp.to_identifier(name, quoted=True)


def column(table: str, name: str) -> exp.Column:
    """Return a qualified, quoted column reference."""
    return exp.Column(this=quoted(name), table=quoted(table))


def table(name: str) -> exp.Table:
    """Return a table node under its own name as alias."""
    return exp.Table(this=quoted(name), alias=table_alias(name))


def table_alias(name: str, columns: Sequence[str] = ()) -> exp.TableAlias:
    """Return the alias of an item of FROM, and of its columns."""
    return exp.TableAlias(this=quoted(name), columns=[quoted(each) for each in columns] or None)


def derived(query: exp.Expr, name: str, columns: Sequence[str] = ()) -> exp.Subquery:
    return exp.Subquery(this=query, alias=table_alias(name, columns))


def aliased(node: exp.Expr, name: str) -> exp.Alias:
    return exp.Alias(this=node, alias=quoted(name))


def free_name(name: str, taken: Container[str]) -> str:
    """Return a name, with a number behind it, that is not taken."""
    return next(made for n in itertools.count(1) if (made := f"{name}_{n}") not in taken)


def is_comma(join: exp.Join) -> bool:
    """Return whether a join is written as a comma, which binds less than JOIN."""
    return not any(join.args.get(key) for key in ("kind", "side", "on", "using", "method"))


def side_of(join: exp.Join) -> str:
    """Return whose rows a join keeps without a match: LEFT, RIGHT or FULL; "" none."""
    return "FULL" if join.kind == "FULL" else join.side


LONG_CHAIN = 16
"""Operands of AND or OR from which on they are written as a balanced tree."""


def joined(parts: list[exp.Expr], kind: type[exp.Connector] = exp.And) -> exp.Expr:
    """Return parts joined by AND or OR, in parentheses; what is joined by the other of the two gets some of its own."""
    apart = [exp.paren(part, copy=False) if isinstance(part, exp.Connector) else part for part in parts]
    return exp.paren(balanced(apart, kind), copy=False)


def balanced(parts: Sequence[exp.Expr], kind: type[exp.Connector]) -> exp.Expr:
    """Return parts joined by AND or OR in their order, as a tree whose depth grows with the logarithm
    of their number.
    """
    while len(parts) > 1:
        pairs = [kind(this=a, expression=b) for a, b in zip(parts[::2], parts[1::2], strict=False)]
        parts = [*pairs, *parts[len(pairs) * 2 :]]
    return parts[0]


def balance_chains(tree: exp.Expr) -> exp.Expr:
    """Return a tree, which is changed, in which no long `a AND b AND c …` or OR is as deep as it is long."""
    for top in nodes_of(tree, exp.And, exp.Or):
        kind = type(top)
        if type(top.parent) is kind:
            continue
        parts: list[exp.Expr] = []
        pending: list[exp.Expr] = [top]
        while pending:
            node = pending.pop()
            if type(node) is kind:
                pending += [node.expression, node.this]
            else:
                parts.append(node)
        if len(parts) > LONG_CHAIN:
            chain = balanced(parts, kind)
            if top is tree:
                tree = chain
            else:
                top.replace(chain)
    return tree


def write_memberships(tree: exp.Expr) -> exp.Expr:
    """Return a tree, which is changed, with one form for membership.

    - `x = ANY (SELECT y …)` becomes `x IN (SELECT y …)`, `x <> ALL (SELECT y …)` `NOT x IN (SELECT y …)`;
    - `x = ANY (SELECT unnest(list))`, as DuckDB writes it, becomes `x = ANY (list)`;
    - `(SELECT CASE WHEN array_agg(#1) … END FROM (SELECT y …))`, as DuckDB writes it, becomes `ARRAY(SELECT y …)`.
    """
    for node in reversed(nodes(tree)):
        made = _write_membership(node)
        if made is node:
            continue
        if node is tree:
            tree = made
        else:
            node.replace(made)
    return balance_chains(tree)


def _write_membership(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Subquery) and (query := _query_of_array(node)) is not None:
        return exp.Array(expressions=[query])
    if isinstance(node, exp.Any):
        return _over_list(node)
    some = isinstance(node, exp.EQ) and isinstance(node.expression, exp.Any)
    if not some and not (isinstance(node, exp.NEQ) and isinstance(node.expression, exp.All)):
        return node
    query = node.expression.this.unnest()
    if not isinstance(query, exp.Query):
        return node
    member = exp.In(this=node.this, query=exp.Subquery(this=query))
    return member if some else exp.not_(member, copy=False)


def _over_list(some: exp.Any) -> exp.Expr:
    """Write `ANY (SELECT unnest(list))` as `ANY (list)`."""
    query = some.this.unnest()
    clauses = {key for key, value in query.args.items() if value} if isinstance(query, exp.Select) else set()
    if clauses != {"expressions"} or len(query.expressions) != 1:
        return some
    function = query.expressions[0]
    if isinstance(function, exp.Unnest | exp.Explode):
        array = function.expressions[0] if isinstance(function, exp.Unnest) else function.this
        return exp.Any(this=exp.paren(array, copy=False))
    return some


def _query_of_array(node: exp.Subquery) -> exp.Expr | None:
    """Return the query of `ARRAY(SELECT …)` from what DuckDB writes for it."""
    select = node.this
    case = select.expressions[0].unalias() if isinstance(select, exp.Select) and len(select.expressions) == 1 else None
    if not isinstance(case, exp.Case) or not isinstance(case.args.get("default"), exp.ArrayAgg) or node.alias:
        return None
    source = select.args.get("from_")
    gathered = case.args["default"].this
    numbered = isinstance(gathered, exp.PositionalColumn)
    inner = source.this if source is not None else None
    if not numbered or not isinstance(inner, exp.Subquery) or len(nodes_of(select, exp.PositionalColumn)) < 2:
        return None
    query: exp.Expr = inner.this
    return query
