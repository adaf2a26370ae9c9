"""PostgreSQL's types as Arrow's: what a cursor describes, and what a temporary table is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cache
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
    1186: pa.month_day_nano_interval(),
}
_NUMERIC = 1700
_MOST_DIGITS = 76
"""Of Arrow's widest decimal."""
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


def to_batch(description: Sequence[Any], rows: Sequence[Sequence[Any]], elements: Mapping[int, int]) -> pa.RecordBatch:
    """Return the rows of a cursor as Arrow; types that Arrow has no name for come as text.

    A numeric without declared digits has those that its values need; an array has as many dimensions as its values.

    Args:
        elements: the id of the elements' type of each array type that is not PostgreSQL's own.
    """
    if not description:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * len(rows), pa.struct([])))
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(description)
    arrays = [_array(column, list(values), elements) for column, values in zip(description, columns, strict=True)]
    return pa.record_batch(arrays, names=[column.name for column in description])


def size_of(value: Any) -> int:
    """Return about how many bytes a value takes as Arrow."""
    if isinstance(value, list | tuple):
        return sum(map(size_of, value))
    return len(value) if isinstance(value, str | bytes) else 8


def to_table(description: Sequence[Any], batches: Sequence[pa.RecordBatch], elements: Mapping[int, int]) -> pa.Table:
    """Return the rows of batches of one result, with the types that they would have together."""
    if all(batch.schema == batches[0].schema for batch in batches):
        return pa.Table.from_batches(batches)
    columns = []
    for i, column in enumerate(description):
        parts = [batch.column(i) for batch in batches]
        if any(part.type != parts[0].type for part in parts):
            values = [_as_read(value) for part in parts for value in part.to_pylist()]
            columns.append(_array(column, values, elements))
        else:
            columns.append(pa.chunked_array(parts))
    return pa.table(columns, names=[column.name for column in description])


def _as_read(value: Any) -> Any:
    """Return a value of a numeric, which one batch has as a decimal and another as a float, as the driver gave it."""
    if isinstance(value, list):
        return [_as_read(part) for part in value]
    return Decimal(repr(value)) if isinstance(value, float) else value


def sql_type(type_: pa.DataType) -> str:
    """Return PostgreSQL's name of an Arrow type; raises UnsupportedError when it has none."""
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


def _array(column: Any, values: list[Any], elements: Mapping[int, int]) -> Any:
    element = elements.get(column.type_code) or _own_elements().get(column.type_code)
    if element is None:
        type_, plain = _scalar(column.type_code, column, values)
        return pa.array([None if v is None else plain(v) for v in values] if plain else values, type_)
    depth = max((_depth(value) for value in values), default=1)
    type_, plain = _scalar(element, column, list(_leaves(values)))
    for _ in range(max(depth, 1)):
        type_ = pa.list_(type_)
    return pa.array([_each(value, plain) for value in values] if plain else values, type_)


@cache
def _own_elements() -> dict[int, int]:
    """Return the id of the elements' type of each array type of PostgreSQL's own."""
    from psycopg.postgres import types

    return {info.array_oid: info.oid for info in types if info.array_oid}


def _scalar(oid: int, column: Any, values: list[Any]) -> tuple[pa.DataType, Callable[[Any], Any] | None]:
    """Return the Arrow type of values of a type, and what each has to be made before (None: nothing)."""
    if oid == _NUMERIC:
        if any(v is not None and not v.is_finite() for v in values):  # Arrow's decimals have no NaN
            return pa.float64(), float
        return _decimal(column, values), None
    known = _SCALARS.get(oid)
    return (known, None) if known is not None else (pa.string(), str)


def _depth(value: Any) -> int:
    """Return the number of dimensions of an array, 0 of an empty one: it may stand beside any."""
    return 1 + _depth(value[0]) if isinstance(value, list) and value else 0


def _leaves(value: Any) -> Iterator[Any]:
    for part in value:
        if isinstance(part, list):
            yield from _leaves(part)
        else:
            yield part


def _each(value: Any, plain: Callable[[Any], Any]) -> Any:
    if isinstance(value, list):
        return [_each(part, plain) for part in value]
    return None if value is None else plain(value)


def _decimal(column: Any, values: list[Decimal | None]) -> pa.DataType:
    """Return the decimal type that a column declares, else the least wide that holds its values."""
    if column.precision and column.precision <= _MOST_DIGITS and column.scale is not None and column.scale >= 0:
        return (
            pa.decimal128(column.precision, column.scale)
            if column.precision <= 38
            else pa.decimal256(column.precision, column.scale)
        )
    present = [v for v in values if v is not None]
    scale = max((-int(v.as_tuple().exponent) for v in present), default=0)
    digits = max((v.adjusted() + 1 for v in present if v), default=1)
    scale, digits = max(scale, 0), max(digits, 1)
    return (
        pa.decimal128(38, scale)
        if digits + scale <= 38
        else pa.decimal256(_MOST_DIGITS, max(0, min(scale, _MOST_DIGITS - digits)))
    )
