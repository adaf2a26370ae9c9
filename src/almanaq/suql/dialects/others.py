"""Where engines that ibis reaches differ from PostgreSQL: written out, or refused by name (semantics 7)."""

from __future__ import annotations

import sqlglot
from sqlglot import exp

from almanaq.errors import UnsupportedError
from almanaq.suql.dialects.engines import DESCRIPTIONS
from almanaq.suql.dialects.engines.description import Description
from almanaq.suql.dialects.patterns import in_re2, similar_as_regexp
from almanaq.suql.plan.stages import ROW
from almanaq.suql.syntax.templates import TEMPLATED, with_read_template


def write_for_others(node: exp.Expr, dialect: str) -> exp.Expr:
    """Return a node of a PostgreSQL tree as an engine has to be told it; raises UnsupportedError where it cannot be."""
    engine = DESCRIPTIONS[dialect]
    if isinstance(node, exp.Fetch):
        raise UnsupportedError(f"WITH TIES is not supported on {dialect}: write a subquery with rank() for ties")
    if isinstance(node, exp.IntDiv):
        return _read(engine.division, dialect, node.this, node.expression)
    if isinstance(node, TEMPLATED):
        return with_read_template(node)
    if isinstance(node, exp.Filter) and not engine.filters:
        return _filter_inside(node)
    if isinstance(node, exp.Binary) and isinstance(node.expression, exp.Any | exp.All):
        return _member(node, engine)
    if isinstance(node, exp.RegexpLike | exp.RegexpILike | exp.SimilarTo):
        return _match(node, engine)
    if isinstance(node, exp.RegexpReplace):
        raise UnsupportedError(f"regexp_replace differs from PostgreSQL's in {dialect}: use replace, or do it outside")
    if isinstance(node, exp.Window) and isinstance(node.this, exp.RowNumber) and engine.numbers_want_order:
        if node.args.get("order") is None:
            node.set("order", exp.Order(expressions=[exp.Ordered(this=exp.Literal.number(1), nulls_first=True)]))
    elif isinstance(node, exp.Is) and isinstance(node.expression, exp.Boolean) and not engine.truth:
        return _is_truth(node)
    elif isinstance(node, exp.Like | exp.ILike) and not engine.escapes and not _escaped(node):
        return exp.Escape(this=node.copy(), expression=exp.Literal.string("\\"))
    elif isinstance(node, exp.Identifier):
        node.set("quoted", True)  # where bare names are folded, r and "r" are two
        node.set("this", engine.spelled(node.this))
    return _array(node, engine)


def _read(template: str, dialect: str, *nodes: exp.Expr, **named: exp.Expr) -> exp.Expr:
    """Return the tree of a template of an engine's own SQL, with nodes in its places."""
    written = {name: node.sql(dialect) for name, node in named.items()}
    return sqlglot.parse_one(template.format(*(node.sql(dialect) for node in nodes), **written), read=dialect)


def _filter_inside(node: exp.Filter) -> exp.Expr:
    """`f(x) FILTER (WHERE c)` becomes `f(CASE WHEN c THEN x END)`: aggregates pass over NULL."""
    function, condition = node.this.copy(), node.expression.this
    if not isinstance(function, exp.Count | exp.Sum | exp.Avg | exp.Min | exp.Max):
        raise UnsupportedError(f"FILTER on {function.sql('postgres')} is not supported here: write CASE inside of it")
    counted = exp.Literal.number(1) if isinstance(function.this, exp.Star) else function.this
    function.set("this", exp.Case(ifs=[exp.If(this=condition.copy(), true=counted.copy())]))
    return function


def _member(node: exp.Binary, engine: Description) -> exp.Expr:
    """`x = ANY(array)`: IN where the array is written out, the engine's own function where it is a column."""
    array = node.expression.this.unnest()
    if isinstance(array, exp.Query):
        return node
    if isinstance(node, exp.EQ) and isinstance(node.expression, exp.Any):
        if isinstance(array, exp.Array):
            return exp.In(this=node.this.copy(), expressions=[item.copy() for item in array.expressions])
        if engine.member is not None:
            return _read(engine.member, engine.dialect, value=node.this, array=array)
    raise UnsupportedError(
        f"{engine.dialect} has nothing for {node.sql('postgres')}: it has no arrays, or only `= ANY` of them"
    )


def _match(node: exp.Expr, engine: Description) -> exp.Expr:
    """Match a pattern anywhere in a text, dots and line ends as PostgreSQL has them."""
    dialect, flags = engine.dialect, "si" if isinstance(node, exp.RegexpILike) else "s"
    pattern = node.expression
    if isinstance(node, exp.SimilarTo):
        pattern = exp.Literal.string(similar_as_regexp(pattern))
    pattern = in_re2(pattern, dialect)
    if not isinstance(pattern, exp.Literal):
        raise UnsupportedError(f"{dialect} takes a regular expression that is written out: {node.sql('postgres')}")
    if ("(?" in pattern.name and not engine.groups) or "[[:" in pattern.name:
        raise UnsupportedError(
            f"{dialect}'s regular expressions have no groups like (?:…), or classes like [[:alpha:]]"
        )
    if engine.flags_in_pattern:
        pattern = exp.Literal.string(f"(?{flags}){pattern.name}")
    return _read(engine.match.replace("{flags}", flags), dialect, text=node.this, pattern=pattern)


def _is_truth(node: exp.Is) -> exp.Expr:
    """`x IS TRUE` is never NULL; sqlglot writes `x`."""
    asked = node.this.copy() if node.expression.this else exp.not_(exp.paren(node.this.copy()))
    return exp.Coalesce(this=asked, expressions=[exp.false()])


def _escaped(node: exp.Expr) -> bool:
    pattern = node.expression
    return isinstance(node.parent, exp.Escape) or (isinstance(pattern, exp.Literal) and "\\" not in pattern.name)


def _array(node: exp.Expr, engine: Description) -> exp.Expr:
    """Refuse what arrays do differently everywhere: subscripts, rows of them, and where there are none, all."""
    if not isinstance(node, exp.Array | exp.ArrayAgg | exp.Unnest | exp.Bracket):
        return node
    if isinstance(node, exp.ArrayAgg) and engine.rows_of_groups is not None and node.this.name == ROW:
        return exp.Anonymous(this=engine.rows_of_groups, expressions=[node.this.copy()])
    if engine.member is None:
        if isinstance(node, exp.Array) and isinstance(node.find_ancestor(exp.Any, exp.Binary), exp.Any):
            return node
        raise UnsupportedError(f"{engine.dialect} has no arrays: write the query without {node.sql('postgres')}")
    if isinstance(node, exp.Unnest | exp.Bracket):
        raise UnsupportedError(
            f"{node.sql('postgres')} means something else in {engine.dialect}, or an error: only `= ANY(array)`, "
            "documents of type text[] and array_agg are supported there"
        )
    return node
