"""Rows of Arrow as Python objects: those that the client of the engine gives that the rows come from."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from almanaq.errors import DataError
from almanaq.values import shortest


def python_rows(table: pa.Table | pa.RecordBatch, *, exact: bool = False) -> list[tuple[Any, ...]]:
    """Return rows of Arrow as Python tuples, of what the client of the engine that they come from gives.

    Args:
        exact: give what DuckDB's client would change as it is, for a text: months of intervals, infinity, nanoseconds.
    """
    fields = zip(table.schema, table.columns, strict=True)
    columns = [python_column(field, column, exact=exact) for field, column in fields]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def python_column(field: pa.Field, column: pa.ChunkedArray | pa.Array, *, exact: bool = False) -> list[Any]:
    if field.metadata is not None and b"duckdb_type" in field.metadata:
        from almanaq.engines.duckdb.values import python_values

        return python_values(field, column, exact=exact)
    if field.metadata is not None and b"postgres_type" in field.metadata and not exact:
        from almanaq.engines.postgres import driver

        return driver.python_values(field.metadata[b"postgres_type"], column.to_pylist())
    try:
        if not column.null_count and (pa.types.is_integer(column.type) or pa.types.is_float64(column.type)):
            return column.to_numpy().tolist()  # type: ignore[no-any-return] # ten times as fast
        values: list[Any] = column.to_pylist()
    except (OverflowError, ValueError) as error:
        raise DataError(
            f"the column {field.name!r} holds a date or time outside the years 1 to 9999: write {field.name}::text"
        ) from error
    inner = column.type
    while pa.types.is_list(inner) or pa.types.is_large_list(inner):
        inner = inner.value_type
    return _shorten(values) if pa.types.is_float32(inner) else values


def _shorten(values: list[Any]) -> list[Any]:
    return [_shorten(value) if isinstance(value, list) else shortest(value) for value in values]
