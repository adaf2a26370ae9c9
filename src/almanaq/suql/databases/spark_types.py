"""Spark's types: as PostgreSQL names them, as Arrow data that the rest reads, and back."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

_NAMES = {
    "byte": "smallint",
    "short": "smallint",
    "integer": "integer",
    "long": "bigint",
    "float": "real",
    "double": "double precision",
    "boolean": "boolean",
    "string": "text",
    "date": "date",
    "timestamp": "timestamp with time zone",
    "timestamp_ntz": "timestamp",
    "binary": "bytea",
}


def pg_type(type_: Any) -> tuple[str, bool]:
    """Return the PostgreSQL name of a Spark type, or of an array's elements, and whether it is an array.

    Structs, maps and arrays of arrays have none: their values are read as JSON text.
    """
    kind = type_.typeName()
    if kind == "array":
        inner, nested = pg_type(type_.elementType)
        return ("jsonb", False) if nested or inner == "jsonb" else (inner, True)
    if kind == "decimal":
        return f"numeric({type_.precision},{type_.scale})", False
    if kind in ("varchar", "char"):
        return "text", False
    if kind in ("struct", "map", "variant"):
        return "jsonb", False
    if "interval" in kind:
        return "interval", False
    return _NAMES.get(kind, kind), False


def with_offsets(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch in which columns and lists without a value have offsets.

    Spark sends none for them, and what looks for the first then reads memory that nobody owns: the process may end.
    """
    columns = [_with_offsets(column) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _with_offsets(column: pa.Array) -> pa.Array:
    if not len(column) or (pa.types.is_list(column.type) and not len(column.values)):
        return pa.array(column.to_pylist(), column.type)
    return column


def to_plain(data: Any) -> Any:
    """Return rows of a server (a batch or a table) with structs, maps and nested arrays as JSON text."""
    if not any(_is_nested(field.type) for field in data.schema):
        return data
    columns = [
        pa.array(
            [None if v is None else json.dumps(_jsonable(v), default=str) for v in column.to_pylist()], pa.string()
        )
        if _is_nested(column.type)
        else column
        for column in data.columns
    ]
    return type(data).from_arrays(columns, names=data.schema.names)


def to_spark(table: pa.Table) -> pa.Table:
    """Return a table with types that Spark has: of others, text."""
    columns = []
    for column in table.columns:
        target = _spark_type(column.type)
        columns.append(column if target == column.type else _cast(column, target))
    return pa.Table.from_arrays(columns, names=table.column_names)


def _spark_type(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(type_):
        return _spark_type(type_.value_type)
    if pa.types.is_null(type_) or pa.types.is_large_string(type_) or pa.types.is_time(type_):
        return pa.string()
    if pa.types.is_unsigned_integer(type_):
        return pa.int64() if type_.bit_width < 64 else pa.decimal128(20, 0)
    if pa.types.is_timestamp(type_):
        return pa.timestamp("us", tz="UTC" if type_.tz else None)
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return pa.list_(_spark_type(type_.value_type))
    if pa.types.is_decimal256(type_):
        return pa.decimal128(38, min(type_.scale, 38))
    if pa.types.is_date64(type_):
        return pa.date32()
    return type_


def _cast(column: pa.ChunkedArray, target: pa.DataType) -> pa.ChunkedArray:
    try:
        return column.cast(target)
    except pa.ArrowNotImplementedError:
        return pa.chunked_array([pa.array([None if v is None else str(v) for v in column.to_pylist()], target)])


def _is_nested(type_: pa.DataType) -> bool:
    if pa.types.is_list(type_):
        return bool(pa.types.is_nested(type_.value_type))
    return bool(pa.types.is_nested(type_))


def _jsonable(value: Any) -> Any:
    """Return a value as JSON has it: a map comes as pairs."""
    if isinstance(value, dict):
        return {str(key): _jsonable(part) for key, part in value.items()}
    if isinstance(value, list):
        if value and all(isinstance(part, tuple) and len(part) == 2 for part in value):
            return {str(key): _jsonable(part) for key, part in value}
        return [_jsonable(part) for part in value]
    return value
