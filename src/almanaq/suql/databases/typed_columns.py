"""Columns of text or of Python values as Arrow columns of the type that their cells have."""

from __future__ import annotations

import json
from collections import Counter
from datetime import date, datetime, time, timedelta
from typing import Any

import pyarrow as pa

from almanaq.corpus.inference import ColumnReport, Told, TypedColumn, infer_column

ARROW_TYPES = {
    "bigint": pa.int64(),
    "double precision": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "time": pa.time64("us"),
    "interval": pa.duration("us"),
}
SQL_TYPES = {arrow: name for name, arrow in ARROW_TYPES.items()}
_FEW = 500
"""So few cells are looked at one by one."""
_MANY = 20_000
"""Of more distinct cells than this so many, spread over all, are looked at first: text is told by them."""
_NOTHING = Told()


def type_column(name: str, column: Any, told: Told = _NOTHING) -> tuple[Any, ColumnReport]:
    """Return an Arrow column of text typed by its distinct cells, and how it was read."""
    if len(column) <= _FEW:
        return _type_few(name, column, told)
    encoded = column.combine_chunks().dictionary_encode()
    encoded = encoded.chunk(0) if isinstance(encoded, pa.ChunkedArray) else encoded
    import pyarrow.compute as pc

    counted = pc.value_counts(encoded.indices.drop_null()).to_pylist()
    cells = encoded.dictionary.to_pylist()
    counts = {cells[c["values"]]: c["counts"] for c in counted}
    found = _infer(name, counts, told)
    if found.values is None:
        return column, found.report
    return typed_cells(cells, found).take(encoded.indices), found.report


def _type_few(name: str, column: Any, told: Told) -> tuple[Any, ColumnReport]:
    """Do the same for few cells, without what takes longer to be imported than they take to be read."""
    cells = column.to_pylist()
    found = _infer(name, Counter(cell for cell in cells if cell is not None), told)
    if found.values is None:
        return column, found.report
    return typed_cells(cells, found), found.report


def typed_cells(cells: list[Any], found: TypedColumn) -> Any:
    """Return the values of distinct cells, in their order, as an Arrow array."""
    values = [(found.values or {}).get(cell) for cell in cells]
    if found.report.type == "time":
        values = [None if span is None else (datetime.min + span).time() for span in values]
    if found.report.type == "double precision":
        values = [None if value is None else float(value) for value in values]
    return pa.array(values, ARROW_TYPES[found.report.type])


def _infer(name: str, counts: dict[str, int], told: Told) -> TypedColumn:
    if len(counts) > _MANY and not told.type:
        picked = dict(list(counts.items())[:: len(counts) // _MANY + 1])
        if infer_column(name, picked, told).values is None:
            return TypedColumn(ColumnReport(name, "text", sum(counts.values())))
    return infer_column(name, counts, told)


def value_column(name: str, values: list[Any], told: Told = _NOTHING) -> tuple[Any, ColumnReport]:
    """Return a column of JSON's or a workbook's values: of their type, lists of one type as arrays, all else as text.

    Strings that are digits only were quoted on purpose and stay text.
    """
    kinds = {type(value) for value in values if value is not None}
    cells = sum(value is not None for value in values)
    if kinds == {list}:
        element = _arrow_type({type(e) for value in values if value for e in value if e is not None})
        if element is not None:
            return _report(name, pa.array(values, pa.list_(element)), cells)
    elif kinds and kinds != {str} and not told.type and (type_ := _arrow_type(kinds)) is not None:
        try:
            return _report(name, pa.array(_alike(values, type_), type_), cells)
        except (pa.ArrowException, OverflowError):  # an integer beyond 64 bits
            return _report(name, pa.array([_text(value) for value in values], pa.large_string()), cells)
    texts = pa.chunked_array([pa.array([_text(value) for value in values], pa.large_string())])
    return type_column(name, texts, Told(kinds != {str}, told.file, told.said, told.type))


def _arrow_type(kinds: set[type]) -> pa.DataType | None:
    """Return the Arrow type that holds values of these Python types, None when none does."""
    if kinds <= {str}:
        return pa.large_string()
    if kinds <= {int, float} and float in kinds:
        return pa.float64()
    if kinds <= {date, datetime}:
        return pa.timestamp("us") if datetime in kinds else pa.date32()
    single = {bool: pa.bool_(), int: pa.int64(), time: pa.time64("us"), timedelta: pa.duration("us")}
    return single.get(next(iter(kinds))) if len(kinds) == 1 else None


def _alike(values: list[Any], type_: pa.DataType) -> list[Any]:
    """Return days among moments as their midnights."""
    if not pa.types.is_timestamp(type_):
        return values
    return [datetime(v.year, v.month, v.day) if type(v) is date else v for v in values]


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value or None
    if isinstance(value, date | time | timedelta):
        return str(value)
    return json.dumps(value, ensure_ascii=False, default=str)


def _report(name: str, column: Any, cells: int) -> tuple[Any, ColumnReport]:
    type_ = column.type.value_type if pa.types.is_list(column.type) else column.type
    written = SQL_TYPES.get(type_, "text") + ("[]" if pa.types.is_list(column.type) else "")
    return column, ColumnReport(name, written, cells)
