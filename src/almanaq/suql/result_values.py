"""A result's Arrow as rows of Python objects, those of the engine's client, and as frames of pandas and polars.

A frame has the same values, or an error says which column has others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from almanaq.errors import DataError
from almanaq.values import shortest

_WIDE = {"hugeint": "Int128", "uhugeint": "UInt128"}
"""polars' names of DuckDB's integers of 128 bits."""
_MOST_DAYS = 95_000_000
"""Days from 1970 that polars counts to, 260,000 years."""
_PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 97_000_000_000}
"""Units of a timestamp in a day; of nanoseconds so many that all but infinity are counted."""


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


def pandas_frame(table: pa.Table) -> Any:
    """Return a DataFrame of pandas; columns that it has no type for hold Python objects."""
    import pandas

    from almanaq.engines.duckdb.values import TYPE, is_object, kind_of

    kinds = [kind_of(field) for field in table.schema]
    objects = [i for i, kind in enumerate(kinds) if kind is not None and is_object(kind)]
    columns = [pa.nulls(table.num_rows) if i in objects else column for i, column in enumerate(table.columns)]
    for field, column in zip(table.schema, table.columns, strict=True):
        if pa.types.is_timestamp(field.type) and TYPE in (field.metadata or {}):
            _refuse_infinity(field, column, "pandas", 2**63 - 2)
    names = [str(i) for i in range(len(columns))]
    frame = pa.table(columns, names=names).to_pandas() if columns else pandas.DataFrame(index=range(table.num_rows))
    for i in objects:
        values = python_column(table.field(i), table.column(i))
        is_span = table.schema.types[i] == pa.month_day_nano_interval()
        frame.isetitem(i, pandas.Series(values, dtype=None if is_span else object))
    frame.columns = pandas.Index(table.column_names)
    return frame


def polars_frame(table: pa.Table) -> Any:
    import polars

    from almanaq.engines.duckdb.values import kind_of

    if repeated := [name for name, times in Counter(table.column_names).items() if times > 1]:
        raise DataError(f"two columns are called {repeated[0]!r}, and polars has one of a name: rename one with AS")
    columns, wide = [], {}
    for field, column in zip(table.schema, table.columns, strict=True):
        kind = kind_of(field)
        if kind is not None and kind.id in _WIDE:
            wide[field.name] = getattr(polars, _WIDE[kind.id])
        if field.type == pa.month_day_nano_interval():
            column = _durations(field.name, column)
        elif _holds(field.type, lambda type_: type_ == pa.month_day_nano_interval() or pa.types.is_union(type_)):
            raise DataError(
                f"the column {field.name!r} is of a type that polars has none for ({field.type}): {field.name}::VARCHAR"
            )
        elif kind is not None and pa.types.is_date32(field.type):
            _refuse_infinity(field, column, "polars", _MOST_DAYS)
        elif kind is not None and pa.types.is_timestamp(field.type):
            _refuse_infinity(field, column, "polars", _MOST_DAYS * _PER_DAY[field.type.unit])
        columns.append(column)
    fields = [pa.field(f.name, c.type, metadata=f.metadata) for f, c in zip(table.schema, columns, strict=True)]
    frame = polars.DataFrame(pa.table(columns, schema=pa.schema(fields)))
    return frame.with_columns(polars.col(name).cast(type_) for name, type_ in wide.items()) if wide else frame


def _refuse_infinity(field: pa.Field, column: pa.ChunkedArray, library: str, most: int) -> None:
    import pyarrow.compute as pc

    counts = column.cast(pa.int32()).cast(pa.int64()) if pa.types.is_date32(field.type) else column.cast(pa.int64())
    if pc.any(pc.greater(pc.abs(counts), most)).as_py():
        raise DataError(
            f"the column {field.name!r} holds infinity, or a time that {library} has none for: {field.name}::VARCHAR"
        )


def _holds(type_: pa.DataType, is_it: Callable[[pa.DataType], bool]) -> bool:
    return is_it(type_) or any(_holds(type_.field(i).type, is_it) for i in range(type_.num_fields))


def _durations(name: str, column: pa.ChunkedArray) -> pa.Array:
    spans = column.to_pylist()
    if any(span is not None and span.months for span in spans):
        raise DataError(f"the column {name!r} holds intervals of months, which polars has no type for: {name}::text")
    nanoseconds = [None if span is None else span.days * 86_400_000_000_000 + span.nanoseconds for span in spans]
    return pa.array(nanoseconds, pa.duration("ns"))
