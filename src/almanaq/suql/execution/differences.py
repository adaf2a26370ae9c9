"""Where engines differ from PostgreSQL, written out so that a query means the same on each (semantics 7)."""

from __future__ import annotations

import re
from functools import partial

import sqlglot
from sqlglot import exp

from almanaq.errors import UnsupportedError

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_ESCAPES = re.compile(r"\\(.)", re.DOTALL)
_NOT_RE2 = re.compile(r"\(\?(?:=|!|<)|\\[1-9]|\\[mM]|\[\[:[<>]:\]\]")
_DIVISION = {
    "mysql": "TRUNCATE({} / {}, 0)",
    "trino": "({} / {})",
    "clickhouse": "intDiv({}, {})",
    "snowflake": "TRUNC({} / {})",
    "databricks": "({} DIV {})",
    "bigquery": "DIV({}, {})",
}
"""How engines divide integers towards zero; what sqlglot writes for some of them rounds."""
_WITHOUT_FILTER = ("mysql", "bigquery", "snowflake")
_WITHOUT_ARRAYS = ("mysql",)


def write_differences(tree: exp.Expr, dialect: str) -> exp.Expr:
    """Give a PostgreSQL tree, which is changed, as an engine has to be told it.

    Raises:
        UnsupportedError: the engine has nothing that means the same.
    """
    own = {"postgres": _for_postgres, "duckdb": _for_duckdb}.get(dialect)
    write = own or partial(_for_others, dialect=dialect)
    for node in reversed(list(tree.walk())):  # what a node is made of comes before it
        _refuse_backspace(node)
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
        return exp.RegexpLike(this=node.this, expression=_for_re2(node.expression), flag=node.args.get("flag") or flags)
    if isinstance(node, exp.RegexpReplace):
        node.set("expression", _for_re2(node.expression))
        said = node.args.get("modifiers")
        node.set("modifiers", exp.Literal.string((said.name if said is not None else "") + "s"))
    elif isinstance(node, exp.SimilarTo):
        pattern = exp.Literal.string(_similar_as_regexp(node.expression))
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
    return node


def _for_others(node: exp.Expr, dialect: str) -> exp.Expr:
    """Write out what the engines that are reached through their SQL alone do differently, or refuse it."""
    if isinstance(node, exp.IntDiv) and dialect in _DIVISION:
        return sqlglot.parse_one(
            _DIVISION[dialect].format(node.this.sql(dialect), node.expression.sql(dialect)), read=dialect
        )
    if isinstance(node, exp.Filter) and dialect in _WITHOUT_FILTER:
        return _filter_inside(node)
    if dialect in _WITHOUT_ARRAYS and isinstance(node, exp.Array | exp.ArrayAgg | exp.Unnest | exp.Any | exp.Bracket):
        raise UnsupportedError(f"{dialect} has no arrays: write the query without {node.sql('postgres')}")
    return node


def _filter_inside(node: exp.Filter) -> exp.Expr:
    """`f(x) FILTER (WHERE c)` becomes `f(CASE WHEN c THEN x END)`: aggregates pass over NULL."""
    function, condition = node.this.copy(), node.expression.this
    if not isinstance(function, exp.Count | exp.Sum | exp.Avg | exp.Min | exp.Max):
        raise UnsupportedError(f"FILTER on {function.sql('postgres')} is not supported here: write CASE inside of it")
    counted = exp.Literal.number(1) if isinstance(function.this, exp.Star) else function.this
    function.set("this", exp.Case(ifs=[exp.If(this=condition.copy(), true=counted.copy())]))
    return function


def _for_re2(pattern: exp.Expr) -> exp.Expr:
    """Give a pattern in RE2's syntax; one that is computed is taken as it is."""
    if not isinstance(pattern, exp.Literal):
        return pattern
    if found := _NOT_RE2.search(pattern.name):
        raise UnsupportedError(
            f"DuckDB's regular expressions have no {found[0]!r} (in {pattern.name!r}): write the pattern without "
            "look-around, back references and \\m, \\M"
        )
    words = {"y": r"\b", "Y": r"\B", "Z": r"\z"}
    return exp.Literal.string(_ESCAPES.sub(lambda match: words.get(match[1], match[0]), pattern.name))


def _similar_as_regexp(pattern: exp.Expr) -> str:
    """Give the regular expression of a SIMILAR TO pattern: % and _ are its wildcards, and it matches the whole text."""
    if not isinstance(pattern, exp.Literal):
        raise UnsupportedError("SIMILAR TO takes a pattern that is written out here: use ~ for a computed one")
    parts = re.findall(r"\\.|\[[^\]]*\]|.", pattern.name, re.DOTALL)
    signs = {"%": ".*", "_": ".", ".": r"\.", "^": r"\^", "$": r"\$"}
    return f"^(?:{''.join(signs.get(part, part) for part in parts)})$"


def _refuse_backspace(node: exp.Expr) -> None:
    pattern = node.args.get("expression") if isinstance(node, exp.RegexpLike | exp.RegexpILike) else None
    if isinstance(pattern, exp.Literal) and any(match[1] == "b" for match in _ESCAPES.finditer(pattern.name)):
        raise UnsupportedError(
            rf"\b is a backspace in PostgreSQL's regular expressions: write \y for a word's edge (in {pattern.name!r})"
        )
