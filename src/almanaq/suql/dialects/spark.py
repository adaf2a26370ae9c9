"""Where Spark differs from PostgreSQL, written out, or refused by name (semantics 7).

What sqlglot would write in words of another meaning is written as a call by Spark's own name.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from almanaq.errors import UnsupportedError
from almanaq.suql.dialects.numbers import is_numeric_here, is_numeric_there
from almanaq.suql.dialects.spark_arrays import (
    write_agg,
    write_array_size,
    write_array_text,
    write_contains,
    write_member,
    write_pipe,
    write_remove,
    write_source,
    write_string_agg,
    write_subscript,
    write_unnest,
)
from almanaq.suql.dialects.spark_select import write_select
from almanaq.suql.dialects.spark_text import (
    write_concat,
    write_format,
    write_initcap,
    write_like,
    write_match,
    write_position,
    write_replace,
    write_similar,
    write_split,
    write_substring,
    write_template,
)
from almanaq.suql.plan.stages import ROW
from almanaq.suql.syntax.normal_forms import COMPARISONS
from almanaq.suql.syntax.templates import TEMPLATED

_NAMES = {
    "every": "bool_and",
    "jsonb_array_length": "json_array_length",
    "cardinality": "size",
    "array_cat": "concat",
    "string_agg": "listagg",
}
"""Functions that go by another name."""
_REFUSED = frozenset(
    """
    age array_any array_length array_position date_part factorial json_agg json_array_elements json_build_object
    json_extract_path json_extract_path_text json_object_agg jsonb_agg jsonb_array_elements jsonb_build_object
    jsonb_extract_path_text justify_days levenshtein localtime log mode overlay regexp_match regexp_matches
    regexp_split_to_array strftime to_number width_bucket instr median array_append array_prepend isfinite
    localtimestamp date datetime iif if ifnull nvl strip random now pow
    """.split()
)
_REFUSED_CLASSES: tuple[type[exp.Expr], ...] = (
    *(exp.JSONExtract, exp.JSONExtractScalar, exp.JSONBExtract, exp.JSONBExtractScalar, exp.JSONObject),
    *(exp.Overlaps, exp.ArrayContainedBy, exp.JSONBContains, exp.Glob),
    *(exp.ArgMax, exp.ArgMin, exp.Mode, exp.Median, exp.ArrayPosition, exp.BitString, exp.WidthBucket, exp.Overlay),
    *(exp.Levenshtein, exp.Factorial, exp.JSONArrayAgg, exp.JSONObjectAgg, exp.JustifyDays, exp.ArrayAppend),
    *(exp.ArrayPrepend, exp.RegexpSplit, exp.Rand, exp.ToNumber, exp.BitwiseLeftShift),
)
"""What Spark has under the same name with another meaning, or has not; the last step is left to the client's engine."""


def write_for_spark(node: exp.Expr) -> exp.Expr:
    """Return a node of a PostgreSQL tree as Spark has to be told it.

    Raises:
        UnsupportedError: Spark has nothing that means the same.
    """
    _refuse(node)
    if isinstance(node, COMPARISONS) and isinstance(node.expression, exp.Any):
        return write_member(node)
    if isinstance(node, TEMPLATED):
        return write_template(node)
    write = _WRITERS.get(type(node))
    return write(node) if write is not None else node


def call(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    """Return a call by a name that is printed as it is."""
    return exp.Anonymous(this=name, expressions=[argument.copy() for argument in arguments])


def _refuse(node: exp.Expr) -> None:
    if isinstance(node, exp.Fetch):
        raise UnsupportedError("WITH TIES is not supported on spark: write a subquery with rank() for ties")
    if isinstance(node, exp.With) and node.recursive:
        raise UnsupportedError("WITH RECURSIVE is not supported on spark")
    if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc) and node.name.lower() in _REFUSED:
        raise UnsupportedError(f"{node.name.lower()} is not supported on spark")
    if isinstance(node, _REFUSED_CLASSES):
        raise UnsupportedError(f"{node.sql('postgres')[:60]} is not supported on spark")


def _named(node: exp.Expr) -> exp.Expr:
    name = node.name.lower()
    if name == "div" and len(node.expressions) == 2:
        return _divide(node.expressions[0], node.expressions[1])
    if name in _NAMES:
        node.set("this", _NAMES[name])
    return node


def _divide(whole: exp.Expr, part: exp.Expr) -> exp.Expr:
    """`div(a, b)`, of numbers with decimals too, is exact: what is left over is taken away before."""
    rest = exp.Mod(this=exp.paren(whole.copy()), expression=exp.paren(part.copy()))
    multiple = exp.paren(exp.Sub(this=exp.paren(whole.copy()), expression=rest))
    divided = exp.Div(this=multiple, expression=exp.paren(part.copy()), typed=False, safe=False)
    return exp.cast(exp.Round(this=divided), "decimal(38, 0)")


def _whole(node: exp.Expr) -> exp.Expr:
    """`7 / 2` of whole numbers is 3: sqlglot writes DIV for it, which Spark has."""
    return exp.IntDiv(this=exp.paren(node.this.copy()), expression=exp.paren(node.expression.copy()))


def _division(node: exp.Expr) -> exp.Expr:
    """Divide as PostgreSQL does: whole numbers towards zero, and by 0 an error."""
    sides = (node.this, node.expression)
    if all(side.is_type(*exp.DataType.INTEGER_TYPES) for side in sides):
        return exp.paren(_whole(node))
    return exp.Div(this=node.this, expression=node.expression, typed=False, safe=False)


def _round(node: exp.Expr) -> exp.Expr:
    """Halves of double precision go to the even number, those of numeric away from zero."""
    if node.args.get("decimals") is None and node.this.is_type("double", "float") and not is_numeric_there(node.this):
        return call("rint", node.this)
    return node


def _cast(node: exp.Expr) -> exp.Expr:
    inner, to = node.this, node.args["to"]
    if to.is_type("interval", "time", "timetz", "bit", "json", "jsonb", "uuid", "varbinary") or (
        to.this is exp.DType.USERDEFINED
    ):
        raise UnsupportedError(f"values of type {to.sql('postgres').lower()} are not supported on spark")
    if to.is_type("timestamp"):
        node.set("to", exp.DataType.build("timestampntz"))
    elif to.is_type("double", "float") and to.expressions:
        node.set("to", exp.DataType.build("float" if int(to.expressions[0].name) <= 24 else "double"))
    elif to.is_type("decimal") and not to.expressions:
        digits = "28, 0" if inner.is_type(*exp.DataType.INTEGER_TYPES) else "38, 9"
        if is_numeric_here(inner):
            return exp.paren(inner.copy(), copy=False)
        node.set("to", exp.DataType.build(f"decimal({digits})"))
    elif to.is_type(*exp.DataType.TEXT_TYPES):
        return _cast_to_text(node)
    elif to.is_type(*exp.DataType.INTEGER_TYPES) and inner.is_type("decimal", "double", "float"):
        rounded = exp.Round(this=inner.copy()) if is_numeric_there(inner) else call("rint", inner)
        node.set("this", rounded)
    elif to.is_type("array") and isinstance(inner, exp.Literal):
        from almanaq.suql.dialects.lists import elements

        node.set("this", exp.Array(expressions=elements(inner.name)))
    return node


def _cast_to_text(node: exp.Expr) -> exp.Expr:
    inner, to = node.this, node.args["to"]
    if inner.is_type("array") or isinstance(inner.unnest(), exp.Array):
        raise UnsupportedError("the text of an array is not supported on spark: use array_to_string")
    written: exp.Expr = exp.Cast(this=inner.copy(), to=exp.DataType.build("text"))
    if to.this is exp.DType.CHAR and not to.expressions:
        return exp.Left(this=written, expression=exp.Literal.number(1))
    if to.expressions:  # varchar(3) cuts, and the spaces at the end of char(3) do not count
        cut = exp.Left(this=written, expression=to.expressions[0].this.copy())
        return call("rtrim", cut) if to.is_type("char", "nchar") else cut
    if inner.is_type("double", "float") and not is_numeric_there(inner):
        return call("regexp_replace", written, exp.Literal.string(r"\.0$"), exp.Literal.string(""))
    return written


def _average(node: exp.Expr) -> exp.Expr:
    """An average has four decimals more than its numbers there, sixteen digits in PostgreSQL."""
    inner = node.this
    if isinstance(inner, exp.Distinct) or inner.is_type("interval"):
        return node
    node.set("this", exp.cast(inner.copy(), "double"))
    return node


def _subtract(node: exp.Expr) -> exp.Expr:
    """Days lie between two dates, which is a whole number in PostgreSQL."""
    if node.this.is_type("date") and node.expression.is_type("date"):
        return call("date_diff", node.this, node.expression)
    return node


def _in_zone(node: exp.Expr) -> exp.Expr:
    """A moment in a zone is a time of day there, and a time of day in a zone is a moment."""
    zone, utc = node.args["zone"], exp.Literal.string("UTC")
    if node.this.is_type("timestamptz", "timestampltz"):
        return call("convert_timezone", utc, zone, exp.cast(node.this.copy(), "timestampntz"))
    if node.this.is_type("timestamp", "timestampntz"):
        return exp.cast(call("convert_timezone", zone, utc, node.this), "timestamptz")
    raise UnsupportedError("AT TIME ZONE takes a timestamp on spark: say its type, as x::timestamptz")


def _collated(node: exp.Expr) -> exp.Expr:
    """Text is compared by its bytes already."""
    if node.expression.name.upper() not in ("C", "POSIX", "UCS_BASIC"):
        raise UnsupportedError(f"COLLATE {node.expression.sql('postgres')} is not supported on spark")
    return exp.paren(node.this.copy(), copy=False)


def _extract(node: exp.Expr) -> exp.Expr:
    unit = node.name.lower()
    known = ("year", "month", "day", "hour", "minute", "second", "quarter", "week", "doy", "dow", "isodow", "isoyear")
    if unit not in known:
        raise UnsupportedError(f"extract({unit} FROM …) is not supported on spark")
    if unit == "dow":  # Sunday is 1 there and 0 here
        node.set("this", exp.var("DAYOFWEEK"))
        return exp.paren(exp.Sub(this=node.copy(), expression=exp.Literal.number(1)), copy=False)
    names = {"isodow": "DAYOFWEEK_ISO", "isoyear": "YEAROFWEEK", "doy": "DOY"}
    node.set("this", exp.var(names.get(unit, unit.upper())))
    return node


def _truncate(node: exp.Expr) -> exp.Expr:
    unit = node.args["unit"].name.lower() if node.args.get("unit") is not None else ""
    if unit not in ("year", "quarter", "month", "week", "day", "hour", "minute", "second"):
        raise UnsupportedError(f"date_trunc('{unit}', …) is not supported on spark")
    moment = node.this
    if moment.is_type("timestamptz", "timestampltz"):
        return call("date_trunc", exp.Literal.string(unit.upper()), moment)
    cut = call("date_trunc", exp.Literal.string(unit.upper()), moment)
    return exp.cast(cut, "timestampntz")


def _interval(node: exp.Expr) -> exp.Expr:
    unit = node.args.get("unit")
    if not isinstance(node.this, exp.Literal) or unit is None or not node.this.name.lstrip("-").isdigit():
        raise UnsupportedError("intervals are written with one whole number and one unit on spark: interval '3 days'")
    return node


def _hexadecimal(node: exp.Expr) -> exp.Expr:
    return exp.Lower(this=call("hex", node.this))


def _neighbour(node: exp.Expr) -> exp.Expr:
    default = node.args.get("default")
    if node.this.is_type(*exp.DataType.INTEGER_TYPES) and default is not None:
        if default.is_type("decimal", "double", "float"):
            node.set("this", exp.cast(node.this.copy(), "decimal(38, 9)"))
    return node


def _number_rows(node: exp.Expr) -> exp.Expr:
    """row_number() and its like want an order; rows that are only told apart need not all go to one place for it."""
    if isinstance(node.this, exp.RowNumber) and isinstance(node.parent, exp.Alias) and node.parent.alias == ROW:
        if node.args.get("order") is None and not node.args.get("partition_by"):
            return call("monotonically_increasing_id")
    if node.args.get("order") is None and isinstance(
        node.this, exp.RowNumber | exp.Rank | exp.Lag | exp.Lead | exp.Ntile
    ):
        node.set("order", exp.Order(expressions=[exp.Ordered(this=exp.Literal.number(1), nulls_first=True)]))
    return node


def _spelled(node: exp.Expr) -> exp.Expr:
    node.set("quoted", True)
    return node


_WRITERS: dict[type[exp.Expr], Callable[[exp.Expr], exp.Expr]] = {
    exp.Select: write_select,
    exp.RegexpLike: write_match,
    exp.RegexpILike: write_match,
    exp.RegexpReplace: write_replace,
    exp.SimilarTo: write_similar,
    exp.Like: write_like,
    exp.ILike: write_like,
    exp.Substring: write_substring,
    exp.StrPosition: write_position,
    exp.Initcap: write_initcap,
    exp.Format: write_format,
    exp.StringToArray: write_split,
    exp.Concat: write_concat,
    exp.ConcatWs: write_concat,
    exp.DPipe: write_pipe,
    exp.Anonymous: _named,
    exp.AnonymousAggFunc: _named,
    exp.IntDiv: _whole,
    exp.Div: _division,
    exp.Round: _round,
    exp.Cast: _cast,
    exp.Avg: _average,
    exp.Sub: _subtract,
    exp.AtTimeZone: _in_zone,
    exp.Collate: _collated,
    exp.Extract: _extract,
    exp.TimestampTrunc: _truncate,
    exp.DateTrunc: _truncate,
    exp.Interval: _interval,
    exp.Hex: _hexadecimal,
    exp.Lag: _neighbour,
    exp.Lead: _neighbour,
    exp.Window: _number_rows,
    exp.Identifier: _spelled,
    exp.ArrayContainsAll: write_contains,
    exp.ArrayOverlaps: write_contains,
    exp.Bracket: write_subscript,
    exp.ArraySize: write_array_size,
    exp.ArrayRemove: write_remove,
    exp.ArrayToString: write_array_text,
    exp.ArrayAgg: write_agg,
    exp.GroupConcat: write_string_agg,
    exp.Filter: write_agg,
    exp.Unnest: write_unnest,
    exp.Table: write_source,
}
