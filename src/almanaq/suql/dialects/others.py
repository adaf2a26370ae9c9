"""Where engines without a module of their own differ from PostgreSQL: written out, or refused by name (semantics 7)."""

from __future__ import annotations

import sqlglot
from sqlglot import exp

from almanaq.errors import UnsupportedError
from almanaq.suql.dialects.patterns import in_re2, similar_as_regexp
from almanaq.suql.plan.stages import ROW
from almanaq.suql.syntax.templates import TEMPLATED, with_read_template

_DIVISION = {
    "mysql": "CAST(({0} - MOD({0}, {1})) / {1} AS SIGNED)",
    "trino": "({} / {})",
    "clickhouse": "intDiv({}, {})",
    "snowflake": "CAST(({0} - MOD({0}, {1})) / {1} AS BIGINT)",
    "databricks": "({} DIV {})",
    "bigquery": "DIV({}, {})",
}
"""How engines divide integers towards zero; what sqlglot writes for some of them rounds, and so does a quotient with
few decimals: 9999999 / 10000000 is 1.0000 in MySQL."""
_MEMBER = {
    "trino": "CONTAINS({array}, {value})",
    "clickhouse": "has({array}, {value})",
    "snowflake": "ARRAY_CONTAINS(CAST({value} AS VARIANT), {array})",
    "bigquery": "{value} IN UNNEST({array})",
    "databricks": "ARRAY_CONTAINS({array}, {value})",
}
_MATCH = {
    "mysql": "REGEXP_INSTR({text}, {pattern}) > 0",
    "postgres": "{text} ~ {pattern}",
    "trino": "REGEXP_LIKE({text}, {pattern})",
    "clickhouse": "match({text}, {pattern})",
    "snowflake": "REGEXP_INSTR({text}, {pattern}, 1, 1, 0, '{flags}') > 0",
    "bigquery": "REGEXP_CONTAINS({text}, {pattern})",
    "databricks": "{text} RLIKE {pattern}",
}
"""A pattern found anywhere in a text; what sqlglot writes has to match the whole text in Snowflake."""
_WITHOUT_FILTER = ("mysql", "bigquery", "snowflake")
_NUMBERS_WANT_ORDER = ("snowflake", "databricks")
_WITHOUT_IS_TRUE = ("trino", "snowflake")
_WITHOUT_ESCAPE = ("trino", "snowflake")


def write_for_others(node: exp.Expr, dialect: str) -> exp.Expr:
    """Give a node of a PostgreSQL tree as an engine has to be told it; raises UnsupportedError where it cannot be."""
    if isinstance(node, exp.Fetch):
        raise UnsupportedError(f"WITH TIES is not supported on {dialect}: write a subquery with rank() for ties")
    if isinstance(node, exp.IntDiv) and dialect in _DIVISION:
        return _read(_DIVISION[dialect], dialect, node.this, node.expression)
    if isinstance(node, TEMPLATED):
        return with_read_template(node)
    if isinstance(node, exp.Filter) and dialect in _WITHOUT_FILTER:
        return _filter_inside(node)
    if isinstance(node, exp.Binary) and isinstance(node.expression, exp.Any | exp.All):
        return _member(node, dialect)
    if isinstance(node, exp.RegexpLike | exp.RegexpILike | exp.SimilarTo):
        return _match(node, dialect)
    if isinstance(node, exp.RegexpReplace):
        raise UnsupportedError(f"regexp_replace differs from PostgreSQL's in {dialect}: use replace, or do it outside")
    if isinstance(node, exp.Window) and isinstance(node.this, exp.RowNumber) and dialect in _NUMBERS_WANT_ORDER:
        if node.args.get("order") is None:
            node.set("order", exp.Order(expressions=[exp.Ordered(this=exp.Literal.number(1), nulls_first=True)]))
    elif isinstance(node, exp.Is) and isinstance(node.expression, exp.Boolean) and dialect in _WITHOUT_IS_TRUE:
        return _is_truth(node)
    elif isinstance(node, exp.Like | exp.ILike) and dialect in _WITHOUT_ESCAPE and not _escaped(node):
        return exp.Escape(this=node.copy(), expression=exp.Literal.string("\\"))
    elif isinstance(node, exp.Identifier):
        node.set("quoted", True)  # where bare names are folded, r and "r" are two
        if dialect == "bigquery":
            node.set("this", node.this.replace(".", "__"))  # no column's name has dots there
    return _array(node, dialect)


def _read(template: str, dialect: str, *nodes: exp.Expr, **named: exp.Expr) -> exp.Expr:
    """Give the tree of a template of an engine's own SQL, with nodes in its places."""
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


def _member(node: exp.Binary, dialect: str) -> exp.Expr:
    """`x = ANY(array)`: IN where the array is written out, the engine's own function where it is a column."""
    array = node.expression.this.unnest()
    if isinstance(array, exp.Query) or dialect == "postgres":
        return node
    if isinstance(node, exp.EQ) and isinstance(node.expression, exp.Any):
        if isinstance(array, exp.Array):
            return exp.In(this=node.this.copy(), expressions=[item.copy() for item in array.expressions])
        if dialect in _MEMBER:
            return _read(_MEMBER[dialect], dialect, value=node.this, array=array)
    raise UnsupportedError(
        f"{dialect} has nothing for {node.sql('postgres')}: it has no arrays, or only `= ANY` of them"
    )


def _match(node: exp.Expr, dialect: str) -> exp.Expr:
    """Match a pattern anywhere in a text, dots and line ends as PostgreSQL has them."""
    folded = isinstance(node, exp.RegexpILike)
    pattern = node.expression
    if isinstance(node, exp.SimilarTo):
        pattern = exp.Literal.string(similar_as_regexp(pattern))
    if dialect == "postgres":
        return node
    pattern, flags = in_re2(pattern, dialect), "si" if folded else "s"
    if not isinstance(pattern, exp.Literal):
        raise UnsupportedError(f"{dialect} takes a regular expression that is written out: {node.sql('postgres')}")
    if (dialect == "snowflake" and "(?" in pattern.name) or "[[:" in pattern.name:
        raise UnsupportedError(
            f"{dialect}'s regular expressions have no groups like (?:…), or classes like [[:alpha:]]"
        )
    if dialect != "snowflake":
        pattern = exp.Literal.string(f"(?{flags}){pattern.name}")
    return _read(_MATCH[dialect].replace("{flags}", flags), dialect, text=node.this, pattern=pattern)


def _is_truth(node: exp.Is) -> exp.Expr:
    """`x IS TRUE` is never NULL; sqlglot writes `x`."""
    asked = node.this.copy() if node.expression.this else exp.not_(exp.paren(node.this.copy()))
    return exp.Coalesce(this=asked, expressions=[exp.false()])


def _escaped(node: exp.Expr) -> bool:
    pattern = node.expression
    return isinstance(node.parent, exp.Escape) or (isinstance(pattern, exp.Literal) and "\\" not in pattern.name)


def _array(node: exp.Expr, dialect: str) -> exp.Expr:
    """Refuse what arrays do differently everywhere: subscripts, rows of them, and in MySQL, which has none, all."""
    if dialect == "postgres" or not isinstance(node, exp.Array | exp.ArrayAgg | exp.Unnest | exp.Bracket):
        return node
    if isinstance(node, exp.ArrayAgg) and dialect == "mysql" and node.this.name == ROW:
        return exp.Anonymous(this="JSON_ARRAYAGG", expressions=[node.this.copy()])  # the rows behind a group
    if dialect == "mysql":
        if isinstance(node, exp.Array) and isinstance(node.find_ancestor(exp.Any, exp.Binary), exp.Any):
            return node
        raise UnsupportedError(f"mysql has no arrays: write the query without {node.sql('postgres')}")
    if isinstance(node, exp.Unnest | exp.Bracket):
        raise UnsupportedError(
            f"{node.sql('postgres')} means something else in {dialect}, or an error: only `= ANY(array)`, documents of "
            "type text[] and array_agg are supported there"
        )
    return node
