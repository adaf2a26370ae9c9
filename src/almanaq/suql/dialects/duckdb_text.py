"""Text and patterns in DuckDB, as PostgreSQL has them."""

from __future__ import annotations

import re

from sqlglot import exp

from almanaq.errors import UnsupportedError
from almanaq.suql.dialects.duckdb_matches import call, text
from almanaq.suql.dialects.duckdb_patterns import substring_of_pattern
from almanaq.suql.dialects.lists import mapped

_TEXTS = exp.DataType.TEXT_TYPES


def write_like(node: exp.Expr) -> exp.Expr:
    if isinstance(node.parent, exp.Escape):
        return node
    if not isinstance(node.expression, exp.Literal) or "\\" in node.expression.name:
        return exp.Escape(this=node.copy(), expression=exp.Literal.string("\\"))
    return node


def write_substring(node: exp.Expr) -> exp.Expr:
    """`substring(x FROM 'pattern')` is what matches; places before the first count on, not from the end."""
    start, length = node.args.get("start"), node.args.get("length")
    if start is not None and ((isinstance(start, exp.Literal) and start.is_string) or start.is_type(*_TEXTS)):
        if length is not None:
            raise UnsupportedError("substring(… SIMILAR … ESCAPE …) is not supported on duckdb: write FROM a pattern")
        return substring_of_pattern(node.this, start)
    if start is None or (_is_count(start) and start.name != "0" and (length is None or _is_count(length))):
        return node
    first = exp.Case(
        ifs=[exp.If(this=exp.LT(this=start.copy(), expression=exp.Literal.number(1)), true=exp.Literal.number(1))],
        default=start.copy(),
    )
    if length is not None:
        if isinstance(length, exp.Neg):
            raise UnsupportedError("substring of a negative length is an error in PostgreSQL")
        end = exp.Add(this=exp.paren(start.copy()), expression=exp.paren(length.copy()))
        rest = exp.Sub(this=end, expression=first.copy())
        unknown = exp.Is(this=exp.paren(rest.copy()), expression=exp.null())
        some = exp.Greatest(this=rest, expressions=[exp.Literal.number(0)], ignore_nulls=True)
        cases = [exp.If(this=unknown, true=exp.null())]
        if not _is_count(length):
            below = exp.LT(this=exp.paren(length.copy()), expression=exp.Literal.number(0))
            cases.append(exp.If(this=below, true=call("error", text("negative substring length not allowed"))))
        length = exp.Case(ifs=cases, default=some)
    return exp.Substring(this=node.this.copy(), start=first, length=length)


def _is_count(number: exp.Expr) -> bool:
    return isinstance(number, exp.Literal) and number.is_int


def write_overlay(node: exp.Expr) -> exp.Expr:
    """DuckDB takes places before the first, and counts backwards, which are errors or repeat text in PostgreSQL."""
    place, length = node.args["from_"], node.args.get("for_")
    if not _is_count(place) or place.name == "0" or (length is not None and not _is_count(length)):
        raise UnsupportedError("overlay takes places from 1 on that are written out on duckdb: use left and substr")
    return node


def write_part(node: exp.Expr) -> exp.Expr:
    """`split_part(x, '', n)`: an empty separator splits nothing, and there is no part 0."""
    separator, number = node.args["delimiter"], node.args["part_index"]
    digits = number.this if isinstance(number, exp.Neg) else number
    counted = _is_count(digits)
    if counted and digits.name == "0":
        raise UnsupportedError(
            "split_part has no part 0, in PostgreSQL neither: it counts from 1, or from -1 backwards"
        )
    cases = []
    if not counted:
        none = exp.EQ(this=exp.paren(number.copy()), expression=exp.Literal.number(0))
        cases.append(exp.If(this=none, true=call("error", text("field position must not be zero"))))
    if not isinstance(separator, exp.Literal) or not separator.name:
        ends = exp.In(this=exp.paren(number.copy()), expressions=[exp.Literal.number(1), exp.Literal.number(-1)])
        all_or_nothing = exp.Case(ifs=[exp.If(this=ends, true=node.this.copy())], default=exp.Literal.string(""))
        empty = exp.EQ(this=separator.copy(), expression=exp.Literal.string(""))
        known = exp.not_(exp.Is(this=exp.paren(node.copy()), expression=exp.null()))
        cases.append(exp.If(this=exp.and_(empty, known, copy=False), true=all_or_nothing))
    return exp.Case(ifs=cases, default=node.copy()) if cases else node


def write_reverse(node: exp.Expr) -> exp.Expr:
    """`reverse(x)` turns characters round, not signs with their accents."""
    return call("array_to_string", call("list_reverse", call("string_split", node.this, text(""))), text(""))


def write_initcap(node: exp.Expr) -> exp.Expr:
    parts = [node.this.copy(), exp.Literal.string(r"[\p{L}\p{N}]+|[^\p{L}\p{N}]+")]
    word = exp.to_identifier("w")
    rest = exp.Lower(this=exp.Substring(this=word.copy(), start=exp.Literal.number(2)))
    capital = exp.DPipe(this=exp.Upper(this=exp.Left(this=word, expression=exp.Literal.number(1))), expression=rest)
    words = mapped("list_transform", exp.Anonymous(this="regexp_extract_all", expressions=parts), "w", capital)
    return exp.Anonymous(this="array_to_string", expressions=[words, exp.Literal.string("")])


def write_format(node: exp.Expr) -> exp.Expr:
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


def write_split(node: exp.Expr) -> exp.Expr:
    """`string_to_array(x, sep)`: nothing in an empty text, an empty separator splits nothing, NULL into characters."""
    separator = node.expression
    if node.args.get("null") is not None:
        raise UnsupportedError("string_to_array takes a text and a separator here: use array_remove, or nullif")
    if isinstance(separator, exp.Null) or (isinstance(separator, exp.Literal) and not separator.name):
        raise UnsupportedError("string_to_array takes a separator of one or more characters here")
    empty = exp.EQ(this=node.this.copy(), expression=exp.Literal.string(""))
    nothing = exp.cast(exp.Array(expressions=[]), "text[]")
    return exp.Case(ifs=[exp.If(this=empty, true=nothing)], default=node.copy())
