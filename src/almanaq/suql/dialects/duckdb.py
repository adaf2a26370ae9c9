"""Where DuckDB differs from PostgreSQL, written out, or refused by name (semantics 7)."""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot import exp

from almanaq.errors import UnsupportedError
from almanaq.suql.dialects.date_formats import read_moment, write_moment
from almanaq.suql.dialects.numbers import is_numeric_here, is_numeric_there
from almanaq.suql.dialects.patterns import in_re2, similar_as_regexp
from almanaq.suql.syntax.normal_forms import COMPARISONS

_FRACTIONS = {"second": "1e6", "seconds": "1e6", "millisecond": "1e3", "milliseconds": "1e3"}
"""Microseconds in the parts of a moment that are whole numbers in DuckDB and have decimals in PostgreSQL."""
_NAMES = {
    "octet_length": "strlen",
    "btrim": "trim",
    "jsonb_array_length": "json_array_length",
    "json_build_object": "json_object",
    "jsonb_build_object": "json_object",
    "json_extract_path_text": "json_extract_string",
    "jsonb_extract_path_text": "json_extract_string",
}
"""Functions that go by another name."""


def write_for_duckdb(node: exp.Expr) -> exp.Expr:
    """Give a node of a PostgreSQL tree as DuckDB has to be told it.

    Raises:
        UnsupportedError: DuckDB has nothing that means the same.
    """
    if isinstance(node, exp.Query):
        return _query(node)
    if isinstance(node, COMPARISONS) and isinstance(node.expression, exp.Any):
        return _member(node)
    write = _WRITERS.get(type(node))
    return write(node) if write is not None else node


def _query(node: exp.Expr) -> exp.Expr:
    if isinstance(node.args.get("limit"), exp.Fetch):
        return _with_ties(node)
    if node.args.get("limit") is not None and node.args.get("offset") is None:
        if len(list(node.find_all(exp.Select, exp.Table))) > 2:
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


# --- text and patterns -----------------------------------------------------------------------------------------------


def _match(node: exp.Expr) -> exp.Expr:
    # Dots match line ends in PostgreSQL.
    flags = exp.Literal.string("si" if isinstance(node, exp.RegexpILike) else "s")
    flags = node.args.get("flag") or flags
    return exp.RegexpLike(this=node.this, expression=in_re2(node.expression, "DuckDB"), flag=flags)


def _replace(node: exp.Expr) -> exp.Expr:
    node.set("expression", in_re2(node.expression, "DuckDB"))
    said = node.args.get("modifiers")
    node.set("modifiers", exp.Literal.string((said.name if said is not None else "") + "s"))
    return node


def _similar(node: exp.Expr) -> exp.Expr:
    pattern = exp.Literal.string(similar_as_regexp(node.expression))
    return exp.RegexpLike(this=node.this, expression=pattern, flag=exp.Literal.string("s"))


def _like(node: exp.Expr) -> exp.Expr:
    if isinstance(node.parent, exp.Escape):
        return node
    if not isinstance(node.expression, exp.Literal) or "\\" in node.expression.name:
        return exp.Escape(this=node.copy(), expression=exp.Literal.string("\\"))
    return node


def _substring(node: exp.Expr) -> exp.Expr:
    """`substring(x FROM 'pattern')` is what matches; places before the first count on, not from the end."""
    start, length = node.args.get("start"), node.args.get("length")
    if isinstance(start, exp.Literal) and start.is_string and length is None:
        pattern = in_re2(start, "DuckDB")
        group = exp.Literal.number(1 if re.search(r"(?<!\\)\((?!\?)", start.name) else 0)
        flags = exp.Literal.string("s")
        matches = exp.RegexpLike(this=node.this.copy(), expression=pattern.copy(), flag=flags)
        found = exp.Anonymous(this="regexp_extract", expressions=[node.this.copy(), pattern, group, flags.copy()])
        return exp.Case(ifs=[exp.If(this=matches, true=found)])
    if start is None or (isinstance(start, exp.Literal) and start.name != "0"):
        return node
    first = exp.Case(
        ifs=[exp.If(this=exp.LT(this=start.copy(), expression=exp.Literal.number(1)), true=exp.Literal.number(1))],
        default=start.copy(),
    )
    if length is not None:
        end = exp.Add(this=exp.paren(start.copy()), expression=exp.paren(length.copy()))
        rest = exp.Sub(this=end, expression=first.copy())
        unknown = exp.Is(this=exp.paren(rest.copy()), expression=exp.null())
        some = exp.Greatest(this=rest, expressions=[exp.Literal.number(0)], ignore_nulls=True)
        length = exp.Case(ifs=[exp.If(this=unknown, true=exp.null())], default=some)
    return exp.Substring(this=node.this.copy(), start=first, length=length)


def _initcap(node: exp.Expr) -> exp.Expr:
    parts = [node.this.copy(), exp.Literal.string(r"[\p{L}\p{N}]+|[^\p{L}\p{N}]+")]
    word = exp.to_identifier("w")
    rest = exp.Lower(this=exp.Substring(this=word.copy(), start=exp.Literal.number(2)))
    capital = exp.DPipe(this=exp.Upper(this=exp.Left(this=word, expression=exp.Literal.number(1))), expression=rest)
    words = _mapped("list_transform", exp.Anonymous(this="regexp_extract_all", expressions=parts), "w", capital)
    return exp.Anonymous(this="array_to_string", expressions=[words, exp.Literal.string("")])


def _format(node: exp.Expr) -> exp.Expr:
    """`format('%s of %s', a, b)` is a concatenation in which NULL is nothing."""
    template, values = node.this, list(node.expressions)
    parts = re.split(r"(%.?)", template.name) if isinstance(template, exp.Literal) else ["%?"]
    if any(part.startswith("%") and part not in ("%s", "%%") for part in parts) or parts.count("%s") > len(values):
        raise UnsupportedError("format() takes a text that is written out, with %s for values: use concat for others")
    pieces = [
        values.pop(0).copy() if part == "%s" else exp.Literal.string("%" if part == "%%" else part)
        for part in parts
        if part
    ]
    return exp.Anonymous(this="concat", expressions=[*pieces, exp.Literal.string("")])


def _split(node: exp.Expr) -> exp.Expr:
    """`string_to_array(x, sep)`: nothing in an empty text, an empty separator splits nothing, NULL into characters."""
    separator = node.expression
    if node.args.get("null") is not None:
        raise UnsupportedError("string_to_array takes a text and a separator here: use array_remove, or nullif")
    if isinstance(separator, exp.Null) or (isinstance(separator, exp.Literal) and not separator.name):
        raise UnsupportedError("string_to_array takes a separator of one or more characters here")
    empty = exp.EQ(this=node.this.copy(), expression=exp.Literal.string(""))
    nothing = exp.cast(exp.Array(expressions=[]), "text[]")
    return exp.Case(ifs=[exp.If(this=empty, true=nothing)], default=node.copy())


def _named(node: exp.Expr) -> exp.Expr:
    if node.name.lower() == "div" and len(node.expressions) == 2:
        return _quotient(*node.expressions)
    name = _NAMES.get(node.name.lower())
    if name is not None:
        node.set("this", name)
    return node


# --- numbers ---------------------------------------------------------------------------------------------------------


def _quotient(whole: exp.Expr, part: exp.Expr) -> exp.Expr:
    """`div(a, b)`, of numbers with decimals too, is exact: what is left over is taken away before."""
    rest = exp.Mod(this=exp.paren(whole.copy()), expression=exp.paren(part.copy()))
    multiple = exp.paren(exp.Sub(this=exp.paren(whole.copy()), expression=rest))
    divided = exp.Div(this=multiple, expression=exp.paren(part.copy()))
    return exp.cast(exp.Round(this=divided), "decimal(38, 0)")


def _round(node: exp.Expr) -> exp.Expr:
    """Halves of double precision go to the even number, those of numeric away from zero."""
    if node.args.get("decimals") is None and node.this.is_type("double", "float") and not is_numeric_there(node.this):
        return exp.Anonymous(this="round_even", expressions=[node.this, exp.Literal.number(0)])
    return node


def _cast(node: exp.Expr) -> exp.Expr:
    inner, to = node.this, node.args["to"]
    if to.is_type(*exp.DataType.TEXT_TYPES):
        return _cast_to_text(node)
    if to.is_type("decimal") and not to.expressions:
        # There numeric has as many decimals as it needs; here DECIMAL has three.
        digits = "38, 0" if inner.is_type(*exp.DataType.INTEGER_TYPES) else "38, 9"
        if not is_numeric_here(inner):
            node.set("to", exp.DataType.build(f"decimal({digits})"))
    elif to.is_type(*exp.DataType.INTEGER_TYPES) and inner.is_type("double", "float") and is_numeric_there(inner):
        node.set("this", exp.Round(this=inner.copy()))
    elif to.is_type("time") and inner.is_type("timestamptz", "timestampltz"):
        node.set("this", exp.cast(inner.copy(), "timestamp"))
    elif to.is_type("array") and isinstance(inner, exp.Literal) and inner.name.startswith("{"):
        node.set("this", exp.Array(expressions=_elements(inner.name)))
    return node


def _cast_to_text(node: exp.Expr) -> exp.Expr:
    inner, to = node.this, node.args["to"]
    written = exp.Cast(this=inner.copy(), to=exp.DataType.build("text"))
    if to.expressions:  # varchar(3) cuts, and the spaces at the end of char(3) do not count
        cut = exp.Left(this=written, expression=to.expressions[0].this.copy())
        return exp.Anonymous(this="rtrim", expressions=[cut]) if to.is_type("char", "nchar") else cut
    return _without_zero(written) if _is_double(inner) else node


def _is_double(node: exp.Expr) -> bool:
    return bool(node.is_type("double", "float")) and not is_numeric_there(node)


def _without_zero(written: exp.Expr) -> exp.Expr:
    """A whole number of double precision is written as such: 2, not 2.0."""
    end = [exp.Literal.string(r"\.0$"), exp.Literal.string("")]
    return exp.Anonymous(this="regexp_replace", expressions=[written, *end])


def _joined_text(node: exp.Expr) -> exp.Expr:
    for part in list(node.iter_expressions()):
        if _is_double(part):
            part.replace(_without_zero(exp.Cast(this=part.copy(), to=exp.DataType.build("text"))))
    return node


# --- arrays and JSON -------------------------------------------------------------------------------------------------


def _member(node: exp.Expr) -> exp.Expr:
    array = node.expression.this
    if isinstance(array.unnest(), exp.Array | exp.Query):
        return node
    known = exp.Is(this=array.copy(), expression=exp.null())  # DuckDB finds nothing in an unknown array
    return exp.Case(ifs=[exp.If(this=exp.not_(known), true=node.copy())])


def _pipe(node: exp.Expr) -> exp.Expr:
    """`a || b`: NULL is nothing among arrays, and an element may stand on either side of one."""
    _read_literals(node)
    sides = (node.this, node.expression)
    arrays = [side.is_type("array") or isinstance(side.unnest(), exp.Array) for side in sides]
    if all(arrays):
        return exp.Coalesce(this=exp.paren(node.copy()), expressions=[side.copy() for side in sides])
    known = [side.type is not None and not side.is_type("unknown") for side in sides]
    if arrays[0] and known[1]:
        return exp.Anonymous(this="list_append", expressions=[side.copy() for side in sides])
    if arrays[1] and known[0]:
        return exp.Anonymous(this="list_prepend", expressions=[side.copy() for side in sides])
    return _joined_text(node)


def _contains(node: exp.Expr) -> exp.Expr:
    """No array contains NULL."""
    _read_literals(node)
    within, whole = node.expression, node.this
    if isinstance(node, exp.ArrayContainedBy):
        within, whole = whole, within
    if isinstance(within.unnest(), exp.Array) and all(isinstance(item, exp.Literal) for item in within.expressions):
        return node
    count = exp.Anonymous(this="list_count", expressions=[within.copy()])
    some_null = exp.LT(this=count, expression=exp.Length(this=within.copy()))
    known = exp.not_(exp.Is(this=whole.copy(), expression=exp.null()))
    return exp.Case(ifs=[exp.If(this=exp.and_(some_null, known), true=exp.false())], default=node.copy())


def _read_literals(node: exp.Expr) -> exp.Expr:
    """Write the text `'{a,b}'` beside an array as the array it is."""
    for side, other in ((node.this, node.expression), (node.expression, node.this)):
        if isinstance(side, exp.Literal) and side.name.startswith("{") and other.is_type("array"):
            side.replace(exp.Cast(this=exp.Array(expressions=_elements(side.name)), to=other.type.copy()))
    return node


def _subscript(node: exp.Expr) -> exp.Expr:
    if any(isinstance(index, exp.Neg) for index in node.expressions):
        return exp.null()  # DuckDB counts from the end, in PostgreSQL there is nothing before the first
    return node


def _array_size(node: exp.Expr) -> exp.Expr:
    if isinstance(node.expression, exp.Literal) and node.expression.name == "1":
        return exp.Nullif(this=exp.ArraySize(this=node.this), expression=exp.Literal.number(0))
    return node


def _remove(node: exp.Expr) -> exp.Expr:
    other = exp.NullSafeNEQ(this=exp.to_identifier("e"), expression=node.expression.copy())
    return _mapped("list_filter", node.this.copy(), "e", other)


def _array_text(node: exp.Expr) -> exp.Expr:
    shown = node.args.get("null")
    if shown is not None:
        text = exp.cast(exp.to_identifier("e"), "text")
        shown = exp.Coalesce(this=text, expressions=[shown.copy()])
        node.set("this", _mapped("list_transform", node.this.copy(), "e", shown))
        node.set("null", None)
        return node
    known = exp.not_(exp.Is(this=node.this.copy(), expression=exp.null()))
    return exp.Coalesce(  # of nothing but NULLs DuckDB makes NULL
        this=node.copy(), expressions=[exp.Case(ifs=[exp.If(this=known, true=exp.Literal.string(""))])]
    )


def _mapped(function: str, array: exp.Expr, name: str, body: exp.Expr) -> exp.Expr:
    each = exp.Lambda(this=body, expressions=[exp.to_identifier(name)], colon=True)
    return exp.Anonymous(this=function, expressions=[array, each])


def _elements(literal: str) -> list[exp.Expr]:
    """Give the elements of an array as PostgreSQL writes one in text: `{a,"b c",NULL}`."""
    element = r'\s*(?:"((?:[^"\\]|\\.)*)"|([^{},"\\]*?))\s*'
    if not re.fullmatch(rf"\{{(?:{element}(?:,{element})*)?\}}", literal):
        raise UnsupportedError(f"the array {literal!r} cannot be read here: write ARRAY['a', 'b']")
    found = re.finditer(rf"(?<=[{{,]){element}(?=[,}}])", literal) if literal.strip("{} ") else []
    return [
        exp.Literal.string(re.sub(r"\\(.)", r"\1", m[1]))
        if m[1] is not None
        else exp.null()
        if m[2].upper() == "NULL"
        else exp.Literal.string(m[2])
        for m in found
    ]


def _json_path(node: exp.Expr) -> exp.Expr:
    """`x #>> '{a,0}'` is what a JSON pointer leads to."""
    path = node.expression
    if not isinstance(path, exp.Literal):
        raise UnsupportedError("the path after #> and #>> has to be written out: '{a,b}'")
    steps = [step.name.replace("~", "~0").replace("/", "~1") for step in _elements(path.name)]
    function = "json_extract_string" if isinstance(node, exp.JSONBExtractScalar) else "json_extract"
    pointer = exp.Literal.string("".join("/" + step for step in steps))
    return exp.Anonymous(this=function, expressions=[node.this.copy(), pointer])


# --- moments ---------------------------------------------------------------------------------------------------------


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


_WRITERS: dict[type[exp.Expr], Callable[[exp.Expr], exp.Expr]] = {
    exp.RegexpLike: _match,
    exp.RegexpILike: _match,
    exp.RegexpReplace: _replace,
    exp.SimilarTo: _similar,
    exp.Like: _like,
    exp.ILike: _like,
    exp.Substring: _substring,
    exp.Initcap: _initcap,
    exp.Format: _format,
    exp.StringToArray: _split,
    exp.Anonymous: _named,
    exp.Hex: lambda node: exp.Lower(this=exp.Anonymous(this="to_hex", expressions=[node.this])),
    exp.Round: _round,
    exp.Cast: _cast,
    exp.Concat: _joined_text,
    exp.ConcatWs: _joined_text,
    exp.DPipe: _pipe,
    exp.ArrayContainsAll: _contains,
    exp.ArrayContainedBy: _contains,
    exp.ArrayOverlaps: _read_literals,
    exp.Bracket: _subscript,
    exp.ArraySize: _array_size,
    exp.ArrayRemove: _remove,
    exp.ArrayToString: _array_text,
    exp.JSONBExtract: _json_path,
    exp.JSONBExtractScalar: _json_path,
    exp.Extract: _extract,
    exp.TimestampTrunc: _truncate,
    exp.DateTrunc: _truncate,
    exp.TimeToStr: write_moment,
    exp.StrToDate: read_moment,
    exp.StrToTime: read_moment,
}
