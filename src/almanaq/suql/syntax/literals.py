"""Python values → literals of SUQL: what a parameter of a query may be."""

from __future__ import annotations

import datetime
import decimal
import json
import math
import numbers
import uuid
from collections.abc import Mapping
from typing import Any

from sqlglot import exp

from almanaq.errors import ParameterError
from almanaq.suql.syntax.limits import check_list

_MOST_DIMENSIONS = 6
_DEEPEST = 100
"""Levels of lists and dicts within each other in a value."""


_PLAIN = (bool, int, float, decimal.Decimal, datetime.date, datetime.time, datetime.timedelta, uuid.UUID)


def bindable(value: object, _depth: int = 0) -> object:
    """Return a parameter's value as drivers bind it: numbers of NumPy and others as Python's own.

    >>> from fractions import Fraction
    >>> bindable([Fraction(1, 2), {"a": None}])
    [0.5, {'a': None}]
    """
    if _depth > _DEEPEST:
        raise ParameterError(f"a parameter has more than {_DEEPEST} levels of lists and dicts within each other")
    match value:
        case None:
            return None
        case str():
            return _encodable(value)
        case bytes() | bytearray() | memoryview():
            return bytes(value)
        case list() | tuple():
            return [bindable(item, _depth + 1) for item in value]
        case Mapping():
            return {_encodable(str(name)): bindable(item, _depth + 1) for name, item in value.items()}
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value)
    raise ParameterError(
        f"a parameter of type {type(value).__name__} cannot be put into a query; give None, bool, a number, str, "
        "bytes, UUID, date, time, datetime, timedelta, a dict, or a list of one of these"
    )


def literal(value: object, dialect: str = "postgres") -> exp.Expr:
    """Return the SQL literal of a Python value: None, bool, a number, str, bytes, UUID, a moment, a dict, or a list.

    A timedelta is an interval, a dict is jsonb (of DuckDB a STRUCT, as its client binds it), a list or tuple an array.

    >>> literal(datetime.timedelta(hours=1.5)).sql("postgres")
    "CAST('0 days 5400.000000 seconds' AS INTERVAL)"
    >>> literal(b"ab").sql("postgres")
    "CAST('\\\\x6162' AS BYTEA)"
    >>> literal({"a": [1, None]}, "duckdb").sql("duckdb")
    "{'a': [1, NULL]}"
    """
    return _write(bindable(value), dialect, 0)


def is_untyped(node: exp.Expr) -> bool:
    """Return whether a literal takes its type from what stands beside it: NULL, or a text."""
    return isinstance(node, exp.Null) or (isinstance(node, exp.Literal) and node.is_string)


def _write(value: Any, dialect: str, dimensions: int) -> exp.Expr:
    match value:
        case None:
            return exp.null()
        case bool():
            return exp.true() if value else exp.false()
        case int():
            return _number(str(value))
        case decimal.Decimal() if value.is_finite():
            return _decimal(value, dialect)
        case decimal.Decimal() | float():
            number = float(value)
            plain = _number(repr(number)) if math.isfinite(number) else exp.Literal.string(str(number))
            return exp.cast(plain, "double precision")
        case str():
            return exp.Literal.string(_check_text(value))
        case list():
            if dimensions == _MOST_DIMENSIONS:
                raise ParameterError(f"a list of more than {dimensions} dimensions is no array of any database")
            return exp.Array(expressions=[_write(item, dialect, dimensions + 1) for item in check_list(value)])
        case bytes() if dialect == "duckdb":
            return exp.cast(exp.Literal.string("".join(f"\\x{byte:02X}" for byte in value)), "blob", dialect="duckdb")
        case dict() if dialect == "duckdb":
            return _struct(value)
    text, kind = _write_value(value)
    return exp.cast(exp.Literal.string(text), kind, dialect="postgres")


def _decimal(value: decimal.Decimal, dialect: str) -> exp.Expr:
    """Return a decimal; of DuckDB a whole one with its type, which would be an integer without."""
    number = _number(f"{value:f}")
    whole = value == value.to_integral_value() and "." not in f"{value:f}"
    if dialect != "duckdb" or not whole:
        return number
    return exp.cast(number, f"DECIMAL({len(f'{abs(value):f}')}, 0)", dialect="duckdb")


def _struct(value: Mapping[str, object]) -> exp.Expr:
    """Return a dict as DuckDB's client binds it: a STRUCT, or a MAP of its lists `key` and `value`."""
    if not value:
        return exp.ToMap(this=exp.Struct())
    keys, values = value.get("key"), value.get("value")
    if len(value) == 2 and isinstance(keys, list) and isinstance(values, list) and len(keys) == len(values):
        return exp.Map(keys=_write(keys, "duckdb", 0), values=_write(values, "duckdb", 0))
    fields = [
        exp.PropertyEQ(this=exp.to_identifier(_check_text(name), quoted=True), expression=_write(item, "duckdb", 0))
        for name, item in value.items()
    ]
    return exp.Struct(expressions=fields)


def _write_value(value: Any) -> tuple[str, str]:
    """Return the text of a value that SQL has no literal for, and the type that it is cast to."""
    match value:
        case datetime.datetime():
            return value.isoformat(sep=" "), "timestamp" if value.tzinfo is None else "timestamptz"
        case datetime.date():
            return value.isoformat(), "date"
        case datetime.time():
            return value.isoformat(), "time" if value.tzinfo is None else "timetz"
        case datetime.timedelta():
            return f"{value.days} days {value.seconds}.{value.microseconds:06} seconds", "interval"
        case uuid.UUID():
            return str(value), "uuid"
        case bytes():
            return "\\x" + value.hex(), "bytea"
    try:
        return _check_text(json.dumps(value, ensure_ascii=False, allow_nan=False)), "jsonb"
    except (TypeError, ValueError) as error:
        raise ParameterError(f"a parameter cannot be written as JSON: {error}") from error


def _check_text(text: str) -> str:
    if "\0" in text:
        raise ParameterError("a parameter holds the character U+0000, which no query takes in a text")
    return text


def _encodable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ParameterError(f"the parameter {text!r} holds half a character (a lone surrogate)") from None
    return text


def _number(digits: str) -> exp.Expr:
    positive = exp.Literal.number(digits.removeprefix("-"))
    return exp.Neg(this=positive) if digits.startswith("-") else positive
