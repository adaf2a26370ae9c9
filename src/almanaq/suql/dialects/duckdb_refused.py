"""What DuckDB would take and read as something else than PostgreSQL does: refused by name."""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot import exp

from almanaq.errors import UnsupportedError
from almanaq.suql.syntax.normal_forms import COMPARISONS

_JSON = (exp.DType.JSON, exp.DType.JSONB)  # names of types would be parsed at every node
_FEWER = {"second", "seconds", "sec", "secs", "s", "millisecond", "milliseconds", "microsecond", "microseconds"}
_PRECISE = 6


def refuse(node: exp.Expr) -> None:
    """Raise UnsupportedError for a node that DuckDB has another meaning for."""
    check = _CHECKS.get(type(node))
    reason = check(node) if check is not None else None
    if reason is not None:
        raise UnsupportedError(f"{reason} on duckdb")


_HALF_DAY = re.compile(r"[ap]\.?m\b", re.I)


def _cast(node: exp.Expr) -> str | None:
    inner, to = node.this, node.args["to"]
    if to.is_type("bit") and not (isinstance(inner, exp.BitString) and not to.expressions):
        return "bit strings are written b'101': casts to them are not supported"
    if to.is_type("timetz"):
        return "times with a zone are not supported: use timestamptz"
    if to.is_type("time", "timestamp", "timestamptz", "timestampltz") and to.expressions:
        if int(to.expressions[0].name) < _PRECISE:
            return f"{to.sql('postgres').lower()} does not round: date_trunc('second', …) is supported"
    if to.is_type("time") and isinstance(inner, exp.Literal) and _HALF_DAY.search(inner.name):
        return "a time of half a day is not supported: write 23:59"
    if to.is_type("array") and isinstance(inner, exp.Literal) and not inner.name.lstrip().startswith("{"):
        return f"the array {inner.name!r} is not supported: write ARRAY[…]"
    if to.is_type(*exp.DataType.TEXT_TYPES) and (inner.is_type("array") or isinstance(inner.unnest(), exp.Array)):
        return "the text of an array is not supported: use array_to_string"
    return None


def _pipe(node: exp.Expr) -> str | None:
    if node.this.is_type(*_JSON) or node.expression.is_type(*_JSON):
        return "|| of JSON is not supported: json_build_object makes one"
    return None


def _comparison(node: exp.Expr) -> str | None:
    if node.this.is_type(*_JSON) or node.expression.is_type(*_JSON):
        return "comparisons of JSON are not supported: compare what ->> gives"
    return None


def _subscript(node: exp.Expr) -> str | None:
    if node.this.unnest().is_type(*_JSON) or any(isinstance(i, exp.Literal) and i.is_string for i in node.expressions):
        return "subscripts of JSON are not supported: use ->"
    places = [*node.expressions, *node.this.expressions] if isinstance(node.this, exp.Bracket) else []
    if any(isinstance(place, exp.Slice) for place in places):
        return "parts of arrays in an array are not supported"
    return None


def _position(node: exp.Expr) -> str | None:
    return "array_position from a place on is not supported" if node.args.get("zero_based") is not None else None


def _replace(node: exp.Expr) -> str | None:
    given = [node.args.get("position"), node.args.get("occurrence")]
    flags = node.args.get("modifiers")
    if flags is not None and not isinstance(flags, exp.Literal):
        return "regexp_replace takes flags that are written out here, as 'g'"
    return "regexp_replace from a place on is not supported" if any(part is not None for part in given) else None


def _within(node: exp.Expr) -> str | None:
    if isinstance(node.this, exp.Rank | exp.DenseRank | exp.PercentRank | exp.CumeDist):
        return f"{node.this.key} WITHIN GROUP is not supported"
    return None


def _interval(node: exp.Expr) -> str | None:
    unit = node.args.get("unit")
    if node.this is not None and "." in node.this.name and unit is not None and unit.name.lower() not in _FEWER:
        return f"parts of {unit.name.lower()} are not supported: write them in smaller units"
    return None


def _nested(node: exp.Expr) -> str | None:
    array = node.this if isinstance(node, exp.Explode) else node.expressions[0] if node.expressions else None
    if isinstance(array, exp.Expr) and _is_nested(array):
        return "unnest of arrays in an array is not supported"
    return None


def _is_nested(array: exp.Expr) -> bool:
    inner = array.unnest()
    return isinstance(inner, exp.Array) and any(isinstance(item.unnest(), exp.Array) for item in inner.expressions)


def _function(node: exp.Expr) -> str | None:
    name, arguments = node.name.lower(), node.expressions
    if name == "regexp_matches":
        return f"{name} is not supported: use regexp_match, or substring(text from pattern)"
    if name == "cardinality" and arguments and _is_nested(arguments[0]):
        return "cardinality of arrays in an array is not supported"
    return None


def _array_of_json(node: exp.Expr) -> str | None:
    name = "json_agg" if isinstance(node, exp.JSONArrayAgg) else node.name.lower()
    return f"{name} is not supported: use array_agg" if name in ("json_agg", "jsonb_agg") else None


def _escape(node: exp.Expr) -> str | None:
    if isinstance(node.this, exp.RegexpLike | exp.SimilarTo):
        return "SIMILAR TO with ESCAPE is not supported: write a backslash before what means itself"
    return None


def _like(node: exp.Expr) -> str | None:
    array = node.expression.this.unnest() if isinstance(node.expression, exp.Any | exp.All) else None
    if isinstance(array, exp.Literal):
        return f"LIKE {node.expression.key.upper()} takes ARRAY[…] of patterns: a text of them is not supported"
    return None


_CHECKS: dict[type[exp.Expr], Callable[[exp.Expr], str | None]] = {
    **dict.fromkeys(COMPARISONS, _comparison),
    exp.Cast: _cast,
    exp.DPipe: _pipe,
    exp.Bracket: _subscript,
    exp.ArrayPosition: _position,
    exp.RegexpReplace: _replace,
    exp.WithinGroup: _within,
    exp.Interval: _interval,
    exp.Explode: _nested,
    exp.Unnest: _nested,
    exp.Anonymous: _function,
    **dict.fromkeys((exp.JSONArrayAgg, exp.AnonymousAggFunc), _array_of_json),
    exp.Escape: _escape,
    exp.Like: _like,
    exp.ILike: _like,
}
