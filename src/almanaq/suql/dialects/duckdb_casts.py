"""Numbers and casts in DuckDB, as PostgreSQL has them."""

from __future__ import annotations

from sqlglot import exp

from almanaq.suql.dialects.duckdb_intervals import interval_text, is_interval
from almanaq.suql.dialects.duckdb_reals import is_real
from almanaq.suql.dialects.lists import elements
from almanaq.suql.dialects.numbers import is_numeric_here, is_numeric_there


def quotient(whole: exp.Expr, part: exp.Expr) -> exp.Expr:
    """`div(a, b)`, of numbers with decimals too, is exact: what is left over is taken away before."""
    rest = exp.Mod(this=exp.paren(whole.copy()), expression=exp.paren(part.copy()))
    multiple = exp.paren(exp.Sub(this=exp.paren(whole.copy()), expression=rest))
    divided = exp.Div(this=multiple, expression=exp.paren(part.copy()))
    return exp.cast(exp.Round(this=divided), "decimal(38, 0)")


def write_round(node: exp.Expr) -> exp.Expr:
    """Halves of double precision go to the even number, those of numeric away from zero."""
    if node.args.get("decimals") is None and node.this.is_type("double", "float") and not is_numeric_there(node.this):
        return exp.Anonymous(this="round_even", expressions=[node.this, exp.Literal.number(0)])
    return node


def write_cast(node: exp.Expr) -> exp.Expr:
    inner, to = node.this, node.args["to"]
    if to.is_type(*exp.DataType.TEXT_TYPES):
        return _cast_to_text(node)
    if to.is_type("double", "float") and to.expressions:  # float(24) is real there
        bits = int(to.expressions[0].name)
        node.set("to", exp.DataType.build("float" if bits <= 24 else "double"))
    if to.is_type("decimal") and is_real(inner):  # of which PostgreSQL takes six digits
        double = exp.Cast(this=inner.copy(), to=exp.DataType.build("double"))
        node.set("this", exp.Anonymous(this="printf", expressions=[exp.Literal.string("%.6g"), double]))
    if to.is_type("decimal") and not to.expressions:
        # There numeric has as many decimals as it needs; here DECIMAL has three. With fewer digits than 38 a whole
        # number leaves room for the decimals of others beside it.
        digits = "28, 0" if inner.is_type(*exp.DataType.INTEGER_TYPES) else "38, 9"
        if not is_numeric_here(inner):
            node.set("to", exp.DataType.build(f"decimal({digits})"))
    elif to.is_type(*exp.DataType.INTEGER_TYPES) and inner.is_type("double", "float") and is_numeric_there(inner):
        node.set("this", exp.Round(this=inner.copy()))
    elif to.is_type("time") and inner.is_type("timestamptz", "timestampltz"):
        node.set("this", exp.cast(inner.copy(), "timestamp"))
    elif to.is_type("array") and isinstance(inner, exp.Literal) and inner.name.startswith("{"):
        node.set("this", exp.Array(expressions=elements(inner.name)))
    return node


def _cast_to_text(node: exp.Expr) -> exp.Expr:
    inner, to = node.this, node.args["to"]
    span = is_interval(inner)
    written = interval_text(inner) if span else exp.Cast(this=inner.copy(), to=exp.DataType.build("text"))
    if to.this is exp.DType.CHAR and not to.expressions:
        return exp.Left(this=written, expression=exp.Literal.number(1))
    if to.expressions:  # varchar(3) cuts, and the spaces at the end of char(3) do not count
        cut = exp.Left(this=written, expression=to.expressions[0].this.copy())
        return exp.Anonymous(this="rtrim", expressions=[cut]) if to.is_type("char", "nchar") else cut
    if span:
        return written
    return _without_zero(written) if _is_double(inner) else node


def _is_double(node: exp.Expr) -> bool:
    return bool(node.is_type("double", "float")) and not is_numeric_there(node)


def _without_zero(written: exp.Expr) -> exp.Expr:
    """A whole number of double precision is written as such: 2, not 2.0."""
    end = [exp.Literal.string(r"\.0$"), exp.Literal.string("")]
    return exp.Anonymous(this="regexp_replace", expressions=[written, *end])


def write_joined_text(node: exp.Expr) -> exp.Expr:
    for part in list(node.iter_expressions()):
        if is_interval(part):
            part.replace(interval_text(part))
        elif _is_double(part):
            part.replace(_without_zero(exp.Cast(this=part.copy(), to=exp.DataType.build("text"))))
    return node


def write_concatenation(node: exp.Expr) -> exp.Expr:
    """concat and concat_ws write truth as t and f, unlike ||."""
    for part in list(node.iter_expressions()):
        if part.is_type("boolean"):
            known = [(part.copy(), "t"), (exp.not_(exp.paren(part.copy())), "f")]
            part.replace(exp.Case(ifs=[exp.If(this=test, true=exp.Literal.string(sign)) for test, sign in known]))
    return write_joined_text(node)
