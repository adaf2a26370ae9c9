"""PostgreSQL's types as Arrow's: what a cursor describes, and what a temporary table is made of."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from almanaq.errors import UnsupportedError

_SCALARS: dict[int, pa.DataType] = {
    16: pa.bool_(),
    17: pa.binary(),
    20: pa.int64(),
    21: pa.int16(),
    23: pa.int32(),
    26: pa.int64(),
    700: pa.float32(),
    701: pa.float64(),
    1082: pa.date32(),
    1083: pa.time64("us"),
    1114: pa.timestamp("us"),
    1184: pa.timestamp("us", tz="UTC"),
    1186: pa.duration("us"),
}
_ARRAYS = {1000: 16, 1001: 17, 1016: 20, 1005: 21, 1007: 23, 1021: 700, 1022: 701, 1182: 1082, 1183: 1083, 1115: 1114}
_TEXT_ARRAYS = frozenset({1009, 1015, 1014, 1002, 2951, 199, 3807})
_NUMERIC, _NUMERIC_ARRAY = 1700, 1231
_WRITTEN = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_int64, "bigint"),
    (pa.types.is_integer, "bigint"),
    (pa.types.is_float32, "real"),
    (pa.types.is_floating, "double precision"),
    (pa.types.is_string, "text"),
    (pa.types.is_large_string, "text"),
    (pa.types.is_date, "date"),
    (pa.types.is_time, "time"),
    (pa.types.is_binary, "bytea"),
    (pa.types.is_large_binary, "bytea"),
    (pa.types.is_duration, "interval"),
    (pa.types.is_null, "text"),
)


def to_batch(description: Sequence[Any], rows: Sequence[Sequence[Any]], text_arrays: frozenset[int]) -> pa.RecordBatch:
    """Give the rows of a cursor as Arrow; types that Arrow has no name for come as text.

    A numeric without declared digits has those that its values need.
    """
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(description)
    arrays = [_array(column, list(values), text_arrays) for column, values in zip(description, columns, strict=True)]
    return pa.record_batch(arrays, names=[column.name for column in description])


def sql_type(type_: pa.DataType) -> str:
    """Give PostgreSQL's name of an Arrow type; raises UnsupportedError when it has none."""
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return sql_type(type_.value_type) + "[]"
    if pa.types.is_dictionary(type_):
        return sql_type(type_.value_type)
    if pa.types.is_decimal(type_):
        return f"numeric({type_.precision},{type_.scale})"
    if pa.types.is_timestamp(type_):
        return "timestamptz" if type_.tz else "timestamp"
    for test, name in _WRITTEN:
        if test(type_):
            return name
    raise UnsupportedError(f"PostgreSQL has no type for Arrow's {type_}")


def _array(column: Any, values: list[Any], text_arrays: frozenset[int]) -> Any:
    oid = column.type_code
    if oid == _NUMERIC:
        return pa.array(values, _decimal(column, values))
    if oid == _NUMERIC_ARRAY:
        return pa.array(values, pa.list_(_decimal(column, [v for array in values if array for v in array])))
    if oid in _SCALARS:
        return pa.array(values, _SCALARS[oid])
    if oid in _ARRAYS:
        return pa.array(values, pa.list_(_SCALARS[_ARRAYS[oid]]))
    if oid in _TEXT_ARRAYS or oid in text_arrays:
        strings = [None if v is None else [None if e is None else str(e) for e in v] for v in values]
        return pa.array(strings, pa.list_(pa.string()))
    return pa.array([None if v is None else str(v) for v in values], pa.string())


def _decimal(column: Any, values: list[Decimal | None]) -> pa.DataType:
    """Give the decimal type that a column declares, else the least wide that holds its values; NaN needs a float."""
    if column.precision and column.scale is not None and column.scale >= 0:
        return (
            pa.decimal128(column.precision, column.scale)
            if column.precision <= 38
            else pa.decimal256(column.precision, column.scale)
        )
    present = [v for v in values if v is not None]
    if any(not v.is_finite() for v in present):
        return pa.float64()
    scale = max((-int(v.as_tuple().exponent) for v in present), default=0)
    digits = max((v.adjusted() + 1 for v in present if v), default=1)
    scale = max(scale, 0)
    return pa.decimal128(38, scale) if digits + scale <= 38 else pa.decimal256(76, min(scale, 76 - digits))
