"""Rows of Arrow as frames of pandas and polars: the same values, or an error that says which column has others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from almanaq.engines.duckdb.values import TYPE, is_object, kind_of
from almanaq.errors import DataError
from almanaq.suql.row_values import python_column

_WIDE = {"hugeint": "Int128", "uhugeint": "UInt128"}
"""polars' names of DuckDB's integers of 128 bits."""
_MOST_DAYS = 95_000_000
"""Days from 1970 that polars counts to, 260,000 years."""
_PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 97_000_000_000}
"""Units of a timestamp in a day; of nanoseconds so many that all but infinity are counted."""


def pandas_frame(table: pa.Table) -> Any:
    """Return a DataFrame of pandas; columns that it has no type for hold Python objects."""
    import pandas

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
    counts = column.cast(pa.int32()).cast(pa.int64()) if pa.types.is_date32(field.type) else column.cast(pa.int64())
    if np.any(np.abs(pc.drop_null(counts).to_numpy()) > most):
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
