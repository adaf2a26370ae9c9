"""`= ANY (SELECT …)` and its like written as IN, and arrays of a query as such: later stages then know one form."""

from __future__ import annotations

from sqlglot import exp

from almanaq.suql.syntax.nodes import nodes, nodes_of
from almanaq.suql.syntax.normal_forms import balance_chains


def write_memberships(tree: exp.Expr) -> exp.Expr:
    """Return a tree, which is changed, with one form for membership.

    - `x = ANY (SELECT y …)` becomes `x IN (SELECT y …)`, `x <> ALL (SELECT y …)` `NOT x IN (SELECT y …)`;
    - `x = ANY (SELECT unnest(list))`, as DuckDB writes it, becomes `x = ANY (list)`;
    - `(SELECT CASE WHEN array_agg(#1) … END FROM (SELECT y …))`, as DuckDB writes it, becomes `ARRAY(SELECT y …)`.
    """
    for node in reversed(nodes(tree)):
        made = _written(node)
        if made is node:
            continue
        if node is tree:
            tree = made
        else:
            node.replace(made)
    return balance_chains(tree)


def _written(node: exp.Expr) -> exp.Expr:
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
