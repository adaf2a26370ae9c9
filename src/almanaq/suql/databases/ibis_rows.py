"""Rows as drivers give them → Arrow, typed by their values: drivers tell types in as many ways as there are drivers."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from decimal import Decimal
from itertools import islice
from typing import Any

import pyarrow as pa

from almanaq.suql.databases.postgres_types import size_of

_READ_AT_ONCE = 64
"""Rows that are read between two looks at how much they take: each may be as wide as it likes."""
_TYPES: dict[type, pa.DataType] = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    bytes: pa.binary(),
    datetime.date: pa.date32(),
    datetime.time: pa.time64("us"),
    datetime.timedelta: pa.duration("us"),
}


def to_batch(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> pa.RecordBatch:
    """Return rows as Arrow.

    A column without a value has the type of NULL, values that Arrow has no type for are text.
    """
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    return pa.record_batch([_array(values) for values in columns], names=list(names))


def _array(values: Sequence[Any]) -> pa.Array:
    kinds = {type(value) for value in values if value is not None}
    if not kinds:
        return pa.nulls(len(values))
    if kinds <= {list, tuple}:
        inner = _array([element for value in values if value is not None for element in value])
        lists = [None if value is None else [_plain(e, inner.type) for e in value] for value in values]
        return pa.array(lists, pa.list_(inner.type))
    type_ = _type(kinds, values)
    return pa.array([_plain(value, type_) for value in values], type_)


def _type(kinds: set[type], values: Sequence[Any]) -> pa.DataType:
    """Return the Arrow type that holds values of these kinds."""
    if len(kinds) == 1 and (found := _TYPES.get(next(iter(kinds)))) is not None:
        wide = found == pa.int64() and any(v is not None and not -(2**63) <= v < 2**63 for v in values)
        return pa.decimal128(38, 0) if wide else found
    if kinds == {datetime.datetime}:
        aware = any(value is not None and value.tzinfo is not None for value in values)
        return pa.timestamp("us", tz="UTC" if aware else None)
    if kinds <= {int, Decimal}:
        return _decimal([Decimal(value) for value in values if value is not None])
    return pa.float64() if kinds <= {int, float, Decimal} else pa.string()


def _decimal(values: list[Decimal]) -> pa.DataType:
    if any(not value.is_finite() for value in values):
        return pa.float64()
    scale = max(0, *(-int(value.as_tuple().exponent) for value in values))
    digits = max(1, *(value.adjusted() + 1 for value in values if value))
    return pa.decimal128(38, scale) if digits + scale <= 38 else pa.decimal256(76, min(scale, 76 - digits))


def _plain(value: Any, type_: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_string(type_) and not isinstance(value, str):
        return json.dumps(value, default=str) if isinstance(value, dict | list) else str(value)
    return float(value) if pa.types.is_floating(type_) else value


def read(result: Any, most_bytes: int | None, stop: Callable[[], None], most_rows: int | None = None) -> pa.RecordBatch:
    """Return the rows of a driver's result; beyond so many bytes or rows, stop it and give those that were read."""
    names, following = reader(result)
    rows: list[tuple[Any, ...]] = []
    held = 0
    while found := following(_READ_AT_ONCE):
        rows += found
        held += sum(map(size_of, found))
        if (most_bytes is not None and held > most_bytes) or (most_rows is not None and len(rows) >= most_rows):
            stop()
            with suppress(Exception):  # that it was stopped
                close(result)
            break
    return to_batch(names, rows)


def reader(result: Any) -> tuple[list[str], Callable[[int | None], list[tuple[Any, ...]]]]:
    """Return the column names of a driver's result, and what gives its next rows (None: all)."""
    if hasattr(result, "fetchmany"):
        names = [column[0] for column in result.description or ()]
        return names, lambda size: list(result.fetchall() if size is None else result.fetchmany(size))
    if hasattr(result, "result_rows"):  # ClickHouse
        rows: Iterator[Any] = iter(result.result_rows)
        names = list(result.column_names)
    else:  # BigQuery
        rows = (tuple(row.values()) for row in result)
        names = [field.name for field in result.schema]
    return names, lambda size: [tuple(row) for row in islice(rows, size)]


def close(result: Any) -> None:
    """Close a driver's result, where it can be."""
    closing = getattr(result, "close", None)
    if closing is not None:
        closing()
