"""Where engines differ from PostgreSQL, written out so that a query means the same on each (semantics 7)."""

from __future__ import annotations

from functools import partial

from sqlglot import exp

from almanaq.suql.execution.other_engines import write_for_others
from almanaq.suql.execution.patterns import in_re2, refuse_backspace, similar_as_regexp

_FRACTIONS = {"second": "1e6", "seconds": "1e6", "millisecond": "1e3", "milliseconds": "1e3"}
"""Microseconds in the parts of a moment that are whole numbers in DuckDB and have decimals in PostgreSQL."""
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)


def write_differences(tree: exp.Expr, dialect: str) -> exp.Expr:
    """Give a PostgreSQL tree, which is changed, as an engine has to be told it.

    Raises:
        UnsupportedError: the engine has nothing that means the same.
    """
    own = {"postgres": _for_postgres, "duckdb": _for_duckdb}.get(dialect)
    write = own or partial(write_for_others, dialect=dialect)
    for node in reversed(list(tree.walk())):  # what a node is made of comes before it
        refuse_backspace(node)
        written = write(node)
        if written is node:
            continue
        if node is tree:
            tree = written
        else:
            node.replace(written)
    return tree


def _for_postgres(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.IntDiv):
        return exp.Div(this=node.this, expression=node.expression, typed=True)
    if isinstance(node, exp.Join) and not any(node.args.get(key) for key in ("kind", "side", "on", "using", "method")):
        node.set("kind", "CROSS")  # a comma binds less than JOIN: later conditions would not see the item before it
    elif isinstance(node, exp.AnyValue):  # there since PostgreSQL 16
        known = exp.Filter(
            this=exp.ArrayAgg(this=node.this),
            expression=exp.Where(this=exp.not_(exp.Is(this=node.this.copy(), expression=exp.null()))),
        )
        return exp.Bracket(this=exp.paren(known), expressions=[exp.Literal.number(1)], offset=1)
    elif isinstance(node, _COMPARISONS):
        return _compare_as_text(_by_address(node))
    return node


def _by_address(node: exp.Expr) -> exp.Expr:
    """Write `x = t.ctid::text` so that PostgreSQL goes to the row instead of reading the relation through."""
    for other, cast in ((node.this, node.expression), (node.expression, node.this)):
        if isinstance(cast, exp.Cast) and isinstance(cast.this, exp.Column) and cast.this.name == "ctid":
            address = exp.Cast(this=other, to=exp.DataType.build("tid", dialect="postgres", udt=True))
            return exp.EQ(this=cast.this, expression=address)
    return node


def _compare_as_text(node: exp.Expr) -> exp.Expr:
    """Compare both sides as text where one is: an ENUM is cast where it is known as one, but not above a subquery."""
    for key, other in (("this", node.expression), ("expression", node.this)):
        side = node.args[key]
        if isinstance(other, exp.Cast) and other.is_type("text") and isinstance(side, exp.Column):
            node.set(key, exp.cast(side.copy(), "text"))
    return node


def _for_duckdb(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.RegexpLike | exp.RegexpILike):
        folded = isinstance(node, exp.RegexpILike)
        # Dots match line ends in PostgreSQL.
        flags = exp.Literal.string("si" if folded else "s")
        return exp.RegexpLike(
            this=node.this, expression=in_re2(node.expression, "DuckDB"), flag=node.args.get("flag") or flags
        )
    if isinstance(node, exp.RegexpReplace):
        node.set("expression", in_re2(node.expression, "DuckDB"))
        said = node.args.get("modifiers")
        node.set("modifiers", exp.Literal.string((said.name if said is not None else "") + "s"))
    elif isinstance(node, exp.SimilarTo):
        pattern = exp.Literal.string(similar_as_regexp(node.expression))
        return exp.RegexpLike(this=node.this, expression=pattern, flag=exp.Literal.string("s"))
    elif isinstance(node, exp.Like | exp.ILike) and not isinstance(node.parent, exp.Escape):
        if not isinstance(node.expression, exp.Literal) or "\\" in node.expression.name:
            return exp.Escape(this=node.copy(), expression=exp.Literal.string("\\"))
    elif isinstance(node, exp.EQ | exp.NEQ) and isinstance(node.expression, exp.Any):
        array = node.expression.this
        if not isinstance(array.unnest(), exp.Array | exp.Query):  # DuckDB finds nothing in an unknown array
            known = exp.Is(this=array.copy(), expression=exp.null())
            return exp.Case(ifs=[exp.If(this=exp.not_(known), true=node.copy())])
    elif isinstance(node, exp.Query) and node.args.get("limit") is not None and node.args.get("offset") is None:
        if len(list(node.find_all(exp.Select, exp.Table))) > 2:
            # DuckDB 2.0 forgets a LIMIT above an outer join or an OR with an aggregate over no rows, unless it skips.
            node.set("offset", exp.Offset(expression=exp.Literal.number(0)))
    elif isinstance(node, exp.Bracket) and any(isinstance(index, exp.Neg) for index in node.expressions):
        return exp.null()  # DuckDB counts from the end, in PostgreSQL there is nothing before the first
    elif isinstance(node, exp.ArraySize) and isinstance(node.expression, exp.Literal) and node.expression.name == "1":
        return exp.Nullif(this=exp.ArraySize(this=node.this), expression=exp.Literal.number(0))
    elif isinstance(node, exp.Extract) and node.name.lower() in _FRACTIONS:
        microseconds = exp.Extract(this=exp.var("MICROSECONDS"), expression=node.expression)
        one = exp.Literal.number(_FRACTIONS[node.name.lower()])
        return exp.paren(exp.Div(this=microseconds, expression=one), copy=False)
    elif isinstance(node, exp.Round) and node.args.get("decimals") is None and node.this.is_type("double", "float"):
        return exp.Anonymous(this="round_even", expressions=[node.this, exp.Literal.number(0)])
    return node
