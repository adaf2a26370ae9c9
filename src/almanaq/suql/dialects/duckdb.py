"""Where DuckDB differs from PostgreSQL, written out, or refused by name (semantics 7)."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from almanaq.errors import UnsupportedError
from almanaq.suql.dialects.aggregates import in_order
from almanaq.suql.dialects.date_formats import read_moment, write_moment
from almanaq.suql.dialects.duckdb_arrays import (
    read_literals,
    write_array_size,
    write_array_text,
    write_contains,
    write_json_path,
    write_member,
    write_pipe,
    write_remove,
    write_subscript,
)
from almanaq.suql.dialects.duckdb_casts import quotient, write_cast, write_concatenation, write_round
from almanaq.suql.dialects.duckdb_collation import write_collation
from almanaq.suql.dialects.duckdb_patterns import (
    write_count,
    write_match,
    write_matched,
    write_parts,
    write_place,
    write_replace,
    write_similar,
    write_substr,
)
from almanaq.suql.dialects.duckdb_reals import write_pair, write_range, write_sum
from almanaq.suql.dialects.duckdb_refused import refuse
from almanaq.suql.dialects.duckdb_text import (
    write_format,
    write_initcap,
    write_like,
    write_overlay,
    write_part,
    write_reverse,
    write_split,
    write_substring,
)
from almanaq.suql.syntax.nodes import nodes_of
from almanaq.suql.syntax.normal_forms import COMPARISONS

_FRACTIONS = {"second": "1e6", "seconds": "1e6", "millisecond": "1e3", "milliseconds": "1e3"}
"""Microseconds in the parts of a moment that are whole numbers in DuckDB and have decimals in PostgreSQL."""
_NAMES = {
    "every": "bool_and",
    "octet_length": "strlen",
    "btrim": "trim",
    "jsonb_array_length": "json_array_length",
    "json_build_object": "json_object",
    "jsonb_build_object": "json_object",
    "json_extract_path_text": "json_extract_string",
    "jsonb_extract_path_text": "json_extract_string",
}
"""Functions that go by another name."""
_CALLS: dict[str, Callable[[exp.Expr], exp.Expr]] = {
    "regexp_match": write_matched,
    "regexp_split_to_array": write_parts,
}
"""Functions of regular expressions that the parser has no node for."""


def write_for_duckdb(node: exp.Expr) -> exp.Expr:
    """Return a node of a PostgreSQL tree as DuckDB has to be told it.

    Raises:
        UnsupportedError: DuckDB has nothing that means the same.
    """
    refuse(node)
    if isinstance(node, exp.Query):
        return _query(node)
    if isinstance(node, COMPARISONS) and isinstance(node.expression, exp.Any):
        return write_member(node)
    if isinstance(node, _PAIRS):
        return write_pair(node)
    write = _WRITERS.get(type(node))
    return write(node) if write is not None else node


def _query(node: exp.Expr) -> exp.Expr:
    if isinstance(node.args.get("limit"), exp.Fetch):
        return _with_ties(node)
    if node.args.get("limit") is not None and node.args.get("offset") is None:
        if len(nodes_of(node, exp.Select, exp.Table)) > 2:
            # DuckDB 2.0 forgets a LIMIT above an outer join or an OR with an aggregate over no rows, unless it skips.
            node.set("offset", exp.Offset(expression=exp.Literal.number(0)))
    return node


def _with_ties(query: exp.Expr) -> exp.Expr:
    """`FETCH FIRST n ROWS WITH TIES` is a QUALIFY: what ties with the n-th row has a rank of n at most."""
    if not isinstance(query, exp.Select) or query.args.get("distinct") or query.args.get("qualify"):
        raise UnsupportedError("WITH TIES after UNION or DISTINCT is not supported here: put them into a subquery")
    order = query.args["order"].copy()
    for ordered in order.expressions:
        if isinstance(ordered.this, exp.Literal) and ordered.this.is_int:
            ordered.set("this", query.selects[int(ordered.this.name) - 1].unalias().copy())
    count = query.args["limit"].args.get("count") or exp.Literal.number(1)
    offset = query.args.get("offset")
    skipped = offset.expression if offset is not None else exp.Literal.number(0)
    last = exp.Add(this=exp.paren(count.copy()), expression=exp.paren(skipped.copy()))
    rank = exp.Window(this=exp.Anonymous(this="rank"), order=order)
    kept: exp.Expr = exp.LTE(this=rank, expression=last)
    if offset is not None:
        number = exp.Window(this=exp.RowNumber(), order=order.copy())
        kept = exp.and_(kept, exp.GT(this=number, expression=exp.paren(skipped.copy())), copy=False)
    query.set("qualify", exp.Qualify(this=kept))
    query.set("limit", None)
    query.set("offset", None)
    return query


def _named(node: exp.Expr) -> exp.Expr:
    if node.name.lower() == "div" and len(node.expressions) == 2:
        return quotient(*node.expressions)
    if (write := _CALLS.get(node.name.lower())) is not None and len(node.expressions) > 1:
        return write(node)
    name = _NAMES.get(node.name.lower())
    if name is not None:
        node.set("this", name)
    return node


def _hexadecimal(node: exp.Expr) -> exp.Expr:
    """`to_hex(-1)` has as many digits as its type: eight of an integer, sixteen of a bigint."""
    number = node.this
    if number.is_type("int", "smallint"):
        below = exp.LT(this=number.copy(), expression=exp.Literal.number(0))
        moved = exp.Add(this=exp.cast(number.copy(), "bigint"), expression=exp.Literal.number(1 << 32))
        number = exp.Case(ifs=[exp.If(this=below, true=moved)], default=exp.cast(number.copy(), "bigint"))
    return exp.Lower(this=exp.Anonymous(this="to_hex", expressions=[number]))


def _extract(node: exp.Expr) -> exp.Expr:
    if node.expression.is_type("timestamptz", "timestampltz"):  # its parts are those of UTC, the session's zone
        moment = exp.AtTimeZone(this=exp.paren(node.expression.copy()), zone=exp.Literal.string("UTC"))
        node.set("expression", exp.paren(moment, copy=False))
    if node.name.lower() not in _FRACTIONS:
        return node
    microseconds = exp.Extract(this=exp.var("MICROSECONDS"), expression=node.expression)
    one = exp.Literal.number(_FRACTIONS[node.name.lower()])
    return exp.paren(exp.Div(this=microseconds, expression=one), copy=False)


def _truncate(node: exp.Expr) -> exp.Expr:
    unit = node.args.get("unit")
    if unit is not None and unit.name.lower() in ("century", "millennium"):
        raise UnsupportedError(
            f"DuckDB begins a {unit.name.lower()} a year earlier: write it with extract(year FROM …)"
        )
    return node


def _neighbour(node: exp.Expr) -> exp.Expr:
    """`lag(n, 1, 0.5)` of whole numbers is numeric: DuckDB would round what stands in for a row that is not there."""
    default = node.args.get("default")
    whole = node.this.is_type(*exp.DataType.INTEGER_TYPES)
    if whole and default is not None and default.is_type("decimal", "double", "float"):
        node.set("this", exp.cast(node.this.copy(), "decimal(38, 9)"))
    return node


_PAIRS = (*COMPARISONS, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Add, exp.Sub, exp.Mul, exp.Div)
_WRITERS: dict[type[exp.Expr], Callable[[exp.Expr], exp.Expr]] = {
    exp.Collate: write_collation,
    exp.RegexpLike: write_match,
    exp.RegexpILike: write_match,
    exp.RegexpReplace: write_replace,
    exp.RegexpCount: write_count,
    exp.RegexpSubstr: write_substr,
    exp.RegexpInstr: write_place,
    exp.SimilarTo: write_similar,
    exp.Like: write_like,
    exp.ILike: write_like,
    exp.Substring: write_substring,
    exp.Overlay: write_overlay,
    exp.SplitPart: write_part,
    exp.Reverse: write_reverse,
    exp.Initcap: write_initcap,
    exp.Format: write_format,
    exp.StringToArray: write_split,
    exp.Anonymous: _named,
    exp.AnonymousAggFunc: _named,
    exp.Hex: _hexadecimal,
    exp.SHA2: lambda node: exp.Unhex(this=node.copy()),
    exp.Round: write_round,
    exp.Cast: write_cast,
    exp.Concat: write_concatenation,
    exp.ConcatWs: write_concatenation,
    exp.DPipe: write_pipe,
    exp.ArrayContainsAll: write_contains,
    exp.ArrayContainedBy: write_contains,
    exp.ArrayOverlaps: read_literals,
    exp.Bracket: write_subscript,
    exp.ArraySize: write_array_size,
    exp.ArrayRemove: write_remove,
    exp.ArrayToString: write_array_text,
    exp.JSONBExtract: write_json_path,
    exp.JSONBExtractScalar: write_json_path,
    exp.ArrayAgg: in_order,
    exp.GroupConcat: in_order,
    exp.In: write_range,
    exp.Between: write_range,
    exp.Sum: write_sum,
    exp.Filter: write_sum,
    exp.Window: write_sum,
    exp.Lag: _neighbour,
    exp.Lead: _neighbour,
    exp.Extract: _extract,
    exp.TimestampTrunc: _truncate,
    exp.DateTrunc: _truncate,
    exp.TimeToStr: write_moment,
    exp.StrToDate: read_moment,
    exp.StrToTime: read_moment,
}
