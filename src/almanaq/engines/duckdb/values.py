"""DuckDB's values through Arrow, and from there as Python objects: those that DuckDB's own client gives.

Arrow has no type for some of DuckDB's, and calls others by the type that they are stored in: a UUID is text. So columns
that Arrow cannot hold are cast to text as they leave the engine, and where Arrow's type of a column says too little,
the metadata of its field has DuckDB's, as `duckdb_type`. docs/python.md has the table of types.
"""

from __future__ import annotations

import datetime
import threading
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import numpy as np
import pyarrow as pa
from duckdb.sqltypes import DuckDBPyType

from almanaq.errors import DataError, NotSupportedError
from almanaq.text.sql_literals import quote
from almanaq.values import shortest

TYPE = b"duckdb_type"
"""What DuckDB's type of a column is called in the metadata of its field."""

_TEXT = frozenset(["bit", "bignum", "uhugeint", "time with time zone"])
"""Arrow has no type for these, or DuckDB loses a part of them: they travel as text."""
_COMPOUND = frozenset(["list", "array", "struct", "tuple", "map", "union"])
_SAME = frozenset(
    "boolean tinyint smallint integer bigint utinyint usmallint uinteger ubigint double decimal varchar blob geometry "
    "enum null".split()
)
"""Arrow's Python values of these are the client's."""
_OBJECTS = _TEXT.difference(["bit", "bignum"]).union(
    "hugeint uuid date time time_ns interval variant tuple map union".split()
)
"""pandas has no type for these, or Arrow gives it something else: their Python values are put into its columns."""
_MICROSECONDS = 6
"""Digits of a second that Python's values have."""


# --- leaving the engine


@dataclass(frozen=True, slots=True)
class Export:
    relation: duckdb.DuckDBPyRelation
    names: Sequence[str]
    kinds: Sequence[DuckDBPyType]

    def describe(self, data: Any) -> Any:
        """Return a table or a batch of the relation under its own names, with DuckDB's types; ENUMs as text."""
        fields = [
            pa.field(name, _decode_dictionaries(field.type), metadata=_metadata(field, kind))
            for name, kind, field in zip(self.names, self.kinds, data.schema, strict=True)
        ]
        columns = [
            column if field.type == column.type else column.cast(field.type)
            for field, column in zip(fields, data.columns, strict=True)
        ]
        return type(data).from_arrays(columns, schema=pa.schema(fields))


def export(relation: duckdb.DuckDBPyRelation) -> Export:
    """Return a relation with the columns as text that Arrow cannot hold; states of aggregates are refused."""
    names, kinds = relation.columns, relation.types
    carried = [_export_type(name, kind) for name, kind in zip(names, kinds, strict=True)]
    if any(carried):
        places = (f"#{i}" if kind is None else f"CAST(#{i} AS {kind})" for i, kind in enumerate(carried, 1))
        relation = relation.project(", ".join(places))
    return Export(relation, names, kinds)


def _export_type(name: str, kind: DuckDBPyType) -> str | None:
    if kind.id in _SAME and str(kind) != "AGGREGATE_STATE":
        return None
    written = str(kind)
    if "AGGREGATE_STATE" in written and _holds(kind, lambda part: str(part) == "AGGREGATE_STATE"):
        raise NotSupportedError(f"the column {name!r} holds states of an aggregate: finalize({name})")
    return _text_type(kind) if _holds(kind, lambda part: part.id in _TEXT) else None


def _text_type(kind: DuckDBPyType) -> str:
    if kind.id in _TEXT:
        return "VARCHAR"
    if kind.id not in _COMPOUND:
        return str(kind)
    parts = [(name, _text_type(part)) for name, part in _parts(kind)]
    match kind.id:
        case "list":
            return f"{parts[0][1]}[]"
        case "array":
            return f"{parts[0][1]}[{_size(kind)}]"
        case "tuple" | "map":
            return f"{kind.id}({', '.join(part for _, part in parts)})"
    return f"{kind.id}({', '.join(f'{quote(name)} {part}' for name, part in parts)})"


def _parts(kind: DuckDBPyType) -> list[tuple[str, DuckDBPyType]]:
    children: list[Any] = kind.children  # of a union the first is the tag, of an array the second the size
    return children[1:] if kind.id == "union" else children[:1] if kind.id == "array" else children


def _size(kind: DuckDBPyType) -> int:
    size: Any = kind.children[1][1]
    return int(size)


def _holds(kind: DuckDBPyType, is_it: Callable[[DuckDBPyType], bool]) -> bool:
    return is_it(kind) or (kind.id in _COMPOUND and any(_holds(part, is_it) for _, part in _parts(kind)))


def _is_same(kind: DuckDBPyType) -> bool:
    return kind.id in _SAME or (kind.id in ("list", "struct") and all(_is_same(part) for _, part in _parts(kind)))


def _metadata(field: pa.Field, kind: DuckDBPyType) -> dict[bytes, bytes] | None:
    known: dict[bytes, bytes] | None = field.metadata
    said = _is_same(kind) and not _holds(kind, lambda part: part.id == "enum")
    return known if said else {**(known or {}), TYPE: str(kind).encode()}


def _decode_dictionaries(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(type_):  # as which DuckDB sends ENUMs
        return type_.value_type
    inner = _decode_dictionaries(type_.value_type) if pa.types.is_list(type_) else None
    return type_ if inner is None or inner == type_.value_type else pa.list_(inner)


def as_stored(field: pa.Field) -> str:
    """Return the SQL that takes a column of an Arrow table back as what it was in the engine."""
    kind = (field.metadata or {}).get(TYPE)
    return quote(field.name) if kind is None else f"CAST({quote(field.name)} AS {kind.decode()}) AS {quote(field.name)}"


# --- as Python objects


def kind_of(field: pa.Field) -> DuckDBPyType | None:
    written = (field.metadata or {}).get(TYPE)
    return None if written is None else _kind(written.decode())


_kind = lru_cache(maxsize=256)(DuckDBPyType)


def is_object(kind: DuckDBPyType) -> bool:
    return _holds(kind, lambda part: part.id in _OBJECTS)


def python_values(field: pa.Field, column: pa.ChunkedArray | pa.Array, *, exact: bool = False) -> list[Any]:
    """Return the values of a column of DuckDB's as its Python client gives them.

    Args:
        exact: give what the client would change as it is: months of intervals, nanoseconds, infinities (as text), and
            FLOAT as the shortest number that it stands for.
    """
    kind = kind_of(field)
    assert kind is not None
    if _holds(kind, lambda part: part.id == "variant"):
        whole = column.take(pa.array(range(len(column)), pa.int64()))  # DuckDB reads no structs of a slice
        try:
            return _ask_engine(pa.table([whole], schema=pa.schema([field])), f"#1::{kind}")
        except duckdb.Error as error:
            raise DataError(f"the column {field.name!r} cannot be given as Python values: {error}") from error
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    try:
        return [value for chunk in chunks for value in _values(chunk, kind, exact)]
    except OverflowError as error:
        raise DataError(
            f"the column {field.name!r} holds an interval that is too long for Python: write {field.name}::VARCHAR"
        ) from error


def _values(array: pa.Array, kind: DuckDBPyType, exact: bool) -> list[Any]:
    if kind.id in _COMPOUND:
        return _compounds(array, kind, exact)
    match kind.id:
        case "hugeint":
            return _integers(array)
        case "uhugeint" | "time with time zone":
            return _ask_engine(pa.table([array], ["v"]), f"#1::{kind}")
        case "uuid":
            return [None if text is None else uuid.UUID(text) for text in array.to_pylist()]
        case "interval":
            spans = array.to_pylist()
            return spans if exact else [None if span is None else _timedelta(span) for span in spans]
        case "float" if exact:
            return [shortest(value) for value in array.to_pylist()]
    return _moments(array, kind, exact) if pa.types.is_temporal(array.type) else list(array.to_pylist())


def _compounds(array: pa.Array, kind: DuckDBPyType, exact: bool) -> list[Any]:
    parts = _parts(kind)
    if kind.id in ("list", "array", "map"):
        return _lists(array, kind, exact)
    columns = [_values(array.field(i), part, exact) for i, (_, part) in enumerate(parts)]
    if kind.id == "union":
        return [columns[code][row] for row, code in enumerate(array.type_codes.to_pylist())]
    rows = zip(*columns, strict=True)
    names = [name for name, _ in parts]
    made = rows if kind.id == "tuple" else (dict(zip(names, row, strict=True)) for row in rows)
    return [value if there else None for value, there in zip(made, array.is_valid().to_pylist(), strict=True)]


def _lists(array: pa.Array, kind: DuckDBPyType, exact: bool) -> list[Any]:
    """Return lists, arrays (as tuples) or maps (as dicts, or as keys and values where keys are compound)."""
    parts = _parts(kind)
    if kind.id == "array":
        size = _size(kind)
        bounds = list(range(0, (len(array) + 1) * size, size))
        items = [array.values.slice(array.offset * size, len(array) * size)]
    else:
        ends = array.offsets.to_pylist()
        bounds = [end - ends[0] for end in ends]
        stored = [array.keys, array.items] if kind.id == "map" else [array.values]
        items = [one.slice(ends[0], bounds[-1]) for one in stored]
    values = [_values(one, part, exact) for one, (_, part) in zip(items, parts, strict=True)]
    make = _maker(kind, parts)
    return [
        make(*(one[start:end] for one in values)) if there else None
        for start, end, there in zip(bounds, bounds[1:], array.is_valid().to_pylist(), strict=False)
    ]


def _maker(kind: DuckDBPyType, parts: Sequence[tuple[str, DuckDBPyType]]) -> Callable[..., Any]:
    if kind.id == "map":
        if parts[0][1].id in _COMPOUND:
            return lambda keys, values: {"key": keys, "value": values}
        return lambda keys, values: dict(zip(keys, values, strict=True))
    return tuple if kind.id == "array" else list


def _integers(array: pa.Array) -> list[int | None]:
    """Return integers of 128 bits, which Arrow takes for decimals."""
    halves = np.frombuffer(array.buffers()[1], np.int64).reshape(-1, 2)[array.offset : array.offset + len(array)]
    low, high = halves[:, 0], halves[:, 1]
    values: list[int | None]
    if np.array_equal(low >> 63, high):
        values = low.tolist()
    else:
        values = [(h << 64) | lo for lo, h in zip(low.view(np.uint64).tolist(), high.tolist(), strict=True)]
    if not array.null_count:
        return values
    return [value if there else None for value, there in zip(values, array.is_valid().to_pylist(), strict=True)]


def _moments(array: pa.Array, kind: DuckDBPyType, exact: bool) -> list[Any]:
    """Return days, moments and times; where Arrow cannot, or would change some, the engine says what they are."""
    zone = getattr(array.type, "tz", None)
    if not pa.types.is_time(array.type) and getattr(array.type, "unit", "") != "ns":
        values: list[Any] = array.to_numpy(zero_copy_only=False).tolist()
        if not any(type(value) is int for value in values):  # infinity, or a year that Python has none for
            return values if zone is None else [None if v is None else _in_zone(v, zone) for v in values]
    if not exact and zone is None:
        return _ask_engine(pa.table([array], ["v"]), f"#1::{kind}")
    texts = _ask_engine(pa.table([array], ["v"]), f"#1::{kind}::VARCHAR")
    return [None if text is None else _read_moment(text, kind, zone, exact) for text in texts]


def _in_zone(value: datetime.datetime, zone: str) -> datetime.datetime:
    return value.replace(tzinfo=datetime.UTC).astimezone(ZoneInfo(zone))


def _timedelta(span: Any) -> datetime.timedelta:  # a month as 30 days, as the client has it
    return datetime.timedelta(days=span.months * 30 + span.days, microseconds=span.nanoseconds // 1000)


def _read_moment(text: str, kind: DuckDBPyType, zone: str | None, exact: bool) -> Any:
    """Return the value of DuckDB's text, in UTC; the text itself where Python has no such value."""
    if text.endswith("infinity") and not exact:
        return datetime.datetime.min if text.startswith("-") else datetime.datetime.max
    read: Any = {"date": datetime.date, "time": datetime.time, "time_ns": datetime.time}.get(kind.id, datetime.datetime)
    if len(text.removesuffix("+00").partition(".")[2]) > _MICROSECONDS:
        return text.replace(" ", "T")
    with suppress(ValueError):
        value = read.fromisoformat(text.removesuffix("+00"))
        return value if zone is None else _in_zone(value, zone)
    return text


# --- what only the engine knows to read

_engine: duckdb.DuckDBPyConnection | None = None
_opening = threading.Lock()


def _ask_engine(table: pa.Table, expression: str) -> list[Any]:
    """Return the values of an expression over a table, as an engine that holds nothing gives them."""
    global _engine
    with _opening:
        if _engine is None:
            _engine = duckdb.connect()
            _engine.execute("SET GLOBAL TimeZone = 'UTC'")
        cursor = _engine.cursor()
    with cursor:
        return [value for (value,) in cursor.from_arrow(table).project(expression).fetchall()]
