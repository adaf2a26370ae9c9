"""Forms of PostgreSQL that say the same as simpler ones, written as those: every later stage then knows one form."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from almanaq.errors import QuerySyntaxError, UnsupportedError
from almanaq.suql.syntax.functions import AGGREGATES, WRITTEN
from almanaq.suql.syntax.limits import check_row
from almanaq.suql.syntax.nodes import nodes, nodes_of
from almanaq.suql.syntax.templates import shown_template

_NEGATED: dict[type[exp.Expr], type[exp.Binary]] = {
    **{exp.EQ: exp.NEQ, exp.NEQ: exp.EQ, exp.LT: exp.GTE, exp.GTE: exp.LT, exp.GT: exp.LTE, exp.LTE: exp.GT},
}
COMPARISONS = tuple(_NEGATED)
LONG_CHAIN = 16
"""Operands of AND or OR from which on they are written as a balanced tree."""
_ORDERS: dict[type[exp.Expr], type[exp.Binary]] = {exp.LT: exp.LT, exp.LTE: exp.LT, exp.GT: exp.GT, exp.GTE: exp.GT}


def write_normal_forms(tree: exp.Expr) -> exp.Expr:
    """Return a tree, which is changed, without comparisons of rows, ALL over an array, or LIKE ANY of patterns.

    - `(a, b) < (c, d)` becomes `a < c OR a = c AND b < d`, and `(a, b) IN ((1, 2), …)` an OR of such comparisons;
    - `x <> ALL (array)` becomes `NOT x = ANY (array)`, `x = ANY (ARRAY(SELECT …))` `x = ANY (SELECT …)`;
    - `x = ANY (SELECT …)` becomes `x IN (SELECT …)`, `x <> ALL (SELECT …)` `NOT x IN (SELECT …)`;
    - `x LIKE ANY (ARRAY[p, q])` becomes `x LIKE p OR x LIKE q`;
    - `pg_catalog.f(x)` becomes `f(x)`, and an aggregate that the parser does not know one;
    - `regexp_like(x, p, 'i')` becomes `x ~* p`;
    - `x IS NORMALIZED` becomes `is_normalized(x)`, `ARRAY(VALUES …)` an array of a SELECT;
    - `current_timestamp(3)` becomes a cast to timestamptz(3);
    - `div(a, b)` is kept by name: a division of integers is another thing.
    """
    return rewritten(tree, _written)


def rewritten(tree: exp.Expr, write: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """Return a tree, which is changed, with each node as `write` gives it, after what it is made of."""
    for node in reversed(nodes(tree)):
        written = write(node)
        if written is node:
            continue
        if node is tree:
            tree = written
        else:
            node.replace(written)
    return tree


def _written(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Anonymous | exp.Extract | exp.Mod):
        return node.expression if node.this.name == "pg_catalog" else node
    if isinstance(node, exp.Anonymous) and node.name.lower() in ("date_part", "mod"):
        return _operation(node)
    if isinstance(node, (*COMPARISONS, exp.Is)):
        _name_rows(node)
    if isinstance(node, exp.Anonymous) and node.name.lower() in AGGREGATES:
        return exp.AnonymousAggFunc(this=node.name.lower(), expressions=node.expressions)
    if isinstance(node, exp.Is) and _is_word(node.expression, "normalized"):
        return exp.Anonymous(this="is_normalized", expressions=[node.this])
    if isinstance(node, exp.Group) and node.args.get("all") and len(node.args) > 1:
        node.set("all", None)  # `GROUP BY ALL ROLLUP (a)` keeps equal sets, as without a word
    if isinstance(node, exp.Array) and len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Values):
        return exp.Array(expressions=[exp.select("*").from_(node.expressions[0])])
    if isinstance(node, COMPARISONS):
        return _membership(_all_of_array(_rows_compared(node)))
    if isinstance(node, exp.Like | exp.ILike):
        return _like_each(node)
    if isinstance(node, exp.In) and isinstance(node.this, exp.Tuple) and node.expressions:
        if all(isinstance(item, exp.Tuple) for item in node.expressions):
            return _each([exp.EQ(this=node.this.copy(), expression=item) for item in node.expressions])
    elif isinstance(node, exp.Is) and isinstance(node.this, exp.Tuple):
        return joined([_with(node, this=part.copy()) for part in node.this.expressions])
    elif isinstance(node, exp.Any) and (query := _query_of_array(node.this)) is not None:
        return exp.Any(this=query)
    elif isinstance(node, exp.RegexpLike) and node.args.get("flag") is not None:
        flag = node.args["flag"]
        if not isinstance(flag, exp.Literal) or flag.name not in ("", "i", "c", "s"):
            raise UnsupportedError("regexp_like takes the flag 'i' or none: write the others into the pattern, as (?n)")
        kind = exp.RegexpILike if flag.name == "i" else exp.RegexpLike
        return _called(kind(this=node.this, expression=node.expression), "regexp_like")
    elif isinstance(node, exp.CurrentTimestamp) and node.this is not None:
        if not isinstance(node.this, exp.Literal) or node.this.is_string:
            raise QuerySyntaxError("the digits of current_timestamp are a number: current_timestamp(3)")
        return exp.cast(exp.CurrentTimestamp(), f"timestamptz({node.this.name})", dialect="postgres")
    elif isinstance(node, exp.Cast) and isinstance(node.this, exp.IntDiv):
        return exp.Anonymous(this="div", expressions=[node.this.this, node.this.expression])
    return shown_template(node)


def _operation(node: exp.Expr) -> exp.Expr:
    """`date_part('year', d)` is `extract(year FROM d)`, `mod(a, b)` `a % b`; their outputs are called otherwise."""
    name, given = node.name.lower(), node.expressions
    if len(given) != 2:
        return node
    if name == "mod":
        left, right = (exp.paren(part) if isinstance(part, exp.Binary) else part for part in given)
        return _called(exp.Mod(this=left, expression=right), name)
    if isinstance(given[0], exp.Literal) and given[0].is_string:
        return _called(exp.Extract(this=given[0], expression=given[1]), name)
    return node


def _called(node: exp.Expr, name: str) -> exp.Expr:
    """Return a node that the query wrote as a call, for its output to be called so."""
    node.meta[WRITTEN] = name
    return node


def _is_word(node: exp.Expr, word: str) -> bool:
    """Return whether a keyword that the parser does not know was read as a column."""
    return (
        isinstance(node, exp.Column)
        and not node.table
        and not node.this.args.get("quoted")
        and node.name.lower() == word
    )


def _name_rows(node: exp.Expr) -> None:
    """Write `ROW(a, b)` as `(a, b)` where it is compared."""
    for side in (node.this, node.expression):
        if isinstance(side, exp.Anonymous) and side.name.lower() == "row" and len(side.expressions) > 1:
            side.replace(exp.Tuple(expressions=side.expressions))


def _rows_compared(node: exp.Expr) -> exp.Expr:
    left, right = node.this.unnest(), node.expression.unnest()
    if not (isinstance(left, exp.Tuple) and isinstance(right, exp.Tuple)):
        return node
    if len(left.expressions) != len(right.expressions):
        return node  # the database says what is wrong
    return _each_pair(type(node), list(zip(left.expressions, right.expressions, strict=True)))


def _each_pair(kind: type[exp.Expr], pairs: list[tuple[exp.Expr, exp.Expr]]) -> exp.Expr:
    if kind in (exp.EQ, exp.NEQ):
        compared: list[exp.Expr] = [kind(this=a.copy(), expression=b.copy()) for a, b in pairs]
        return joined(compared, exp.And if kind is exp.EQ else exp.Or)
    check_row(len(pairs))
    *earlier, (a, b) = pairs
    result: exp.Expr = kind(this=a.copy(), expression=b.copy())
    for a, b in reversed(earlier):
        before = _ORDERS[kind](this=a.copy(), expression=b.copy())
        result = exp.Or(this=before, expression=joined([exp.EQ(this=a.copy(), expression=b.copy()), result], exp.And))
    return exp.paren(result, copy=False)


def _each(rows: list[exp.EQ]) -> exp.Expr:
    return joined([_rows_compared(row) for row in rows], exp.Or)


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


def _all_of_array(node: exp.Expr) -> exp.Expr:
    """`x < ALL (array)` is `NOT x >= ANY (array)`, NULLs included; ALL of a query stays."""
    array = _argument_of_all(node.args.get("expression"))
    if array is None:
        return node
    query = _query_of_array(array)
    if query is not None:
        return type(node)(this=node.this, expression=exp.All(this=query))
    some = exp.Any(this=exp.paren(array, copy=False))
    return exp.not_(exp.paren(_NEGATED[type(node)](this=node.this, expression=some), copy=False))


def _membership(node: exp.Expr) -> exp.Expr:
    """`x = ANY (SELECT …)` is `x IN (SELECT …)`, and `x <> ALL (SELECT …)` is its opposite, NULLs included."""
    some = isinstance(node, exp.EQ) and isinstance(node.expression, exp.Any)
    if not some and not (isinstance(node, exp.NEQ) and isinstance(node.expression, exp.All)):
        return node
    query = node.expression.this.unnest()
    if not isinstance(query, exp.Query):
        return node
    member = exp.In(this=node.this, query=exp.Subquery(this=query))
    return member if some else exp.not_(member, copy=False)


def _argument_of_all(node: exp.Expr | None) -> exp.Expr | None:
    """Return what `ALL (x)` is over, which sqlglot reads as a function where x is no query."""
    if isinstance(node, exp.Anonymous) and node.name.lower() == "all" and len(node.expressions) == 1:
        array: exp.Expr = node.expressions[0]
        return array
    return None


def _query_of_array(node: exp.Expr) -> exp.Expr | None:
    """Return the query of `ARRAY(SELECT …)`."""
    items = array.expressions if isinstance(array := node.unnest(), exp.Array) else []
    return items[0].copy() if len(items) == 1 and isinstance(items[0], exp.Query) else None


def _like_each(node: exp.Expr) -> exp.Expr:
    every = node.expression
    of_all = _argument_of_all(every)
    over = every.this if isinstance(every, exp.Any | exp.All) else of_all
    array = over.unnest() if over is not None else None
    if not isinstance(array, exp.Array) or not array.expressions:
        return node
    every.pop()  # or each part would be a copy of all of it first
    parts = [_with(node, this=node.this.copy(), expression=item.copy()) for item in array.expressions]
    return joined(parts, exp.And if of_all is not None or isinstance(every, exp.All) else exp.Or)


def _with(node: exp.Expr, **parts: exp.Expr) -> exp.Expr:
    """Return a node with other parts; what else is said of it, as that it is negated, stays."""
    changed = node.copy()
    for name, part in parts.items():
        changed.set(name, part)
    return changed
