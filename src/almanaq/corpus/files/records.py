"""JSON as tables: arrays of objects, objects one after another, objects that hold arrays; nested ones opened up.

An object within a record becomes columns (`address_city`), a list of objects a table of its own (`orders_items`) with
the number of the record that it belongs to; a list of plain values stays one column.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from sys import intern
from typing import Any

from almanaq.corpus.read_cancellation import raise_if_cancelled, until_cancelled
from almanaq.errors import SourceError

Record = Mapping[str, Any]
MOST_BYTES = 512 << 20  # the objects of a larger file would fill the memory: they take several times its size
_MOST_KEYS = 200  # an object with more keys over all records maps names to values, and is kept as JSON text
_DEEPEST = 8
_LEAST_NAMED, _ALIKE = 3, 0.9  # fewer objects in one are as likely parts of settings
_MOST_EXAMPLES = 3
_LONGEST_BEGINNING = 1 << 20
_LONGEST_SHOWN = 60
_SPACE = re.compile(r"[ \t\r\n]*")


@dataclass(slots=True)
class Records:
    rows: list[Record] = field(default_factory=list)
    notes: tuple[str, ...] = ()
    whole: Record | None = None  # the object that the file is, where that may be a row among those of other files
    tables: Mapping[str, list[Record]] = field(default_factory=dict)  # lists side by side in it; then `rows` is empty
    faults: tuple[str, ...] = ()  # those of the notes that hold however the file is read


@dataclass(slots=True)
class RecordTable:
    """A table of records with their nested parts opened up."""

    name: str
    columns: dict[str, list[Any]]
    key: str = ""  # the column by which children name their record
    parent: tuple[str, str, str] | None = None  # of a child: its own column, the parent's name and column


class _Decoder(json.JSONDecoder):
    """Reads JSON, and keeps some keys that an object holds twice: Python gives the last value, and says nothing."""

    def __init__(self) -> None:
        super().__init__(object_pairs_hook=self._build)
        self.place = ""  # of the value that is read
        self.twice: list[str] = []

    def _build(self, pairs: list[tuple[str, Any]]) -> Record:
        built = {intern(key): value for key, value in pairs}  # values come with keys of their own, however long
        if len(built) < len(pairs) and len(self.twice) < _MOST_EXAMPLES:
            key = Counter(key for key, _ in pairs).most_common(1)[0][0]
            self.twice.append(f"{self.place}, {key!r} in {json.dumps(built)[:_LONGEST_SHOWN]}")
        return built


def read_json(path: Path, name: str) -> Records:
    """Return the objects of a JSON file in any of the forms; raises SourceError where it holds none."""
    decoder = _Decoder()
    found = _read(path, name, decoder)
    if decoder.twice:
        said = "; ".join(decoder.twice)
        found.faults = (f"{name}: of a key that is twice in an object the last value is read, as at {said}",)
    found.notes = found.faults + found.notes
    return found


def _read(path: Path, name: str, decoder: _Decoder) -> Records:
    size = path.stat().st_size
    if size > MOST_BYTES:
        raise SourceError(
            f"{name} holds {size >> 20:,} MB, and JSON is read up to {MOST_BYTES >> 20:,}: write it as Parquet"
        )
    with path.open(encoding="utf-8-sig", errors="replace") as lines:
        begins = (line for line in iter(partial(lines.readline, _LONGEST_BEGINNING), "") if line.strip())
        first, second = next(begins, ""), next(begins, "")
    if not first:
        raise SourceError(f"{name} is empty: JSON Lines need one object per line")
    by_lines = not name.lower().split(".", 1)[-1].startswith("json.") and not name.lower().endswith(".json")
    if by_lines or (second and not _parse_line(first)[1]):
        return _read_lines(path, name, decoder)
    try:
        return _read_document(path, name, decoder)
    except SourceError:
        if len(first) < _LONGEST_BEGINNING or not first.startswith("{"):
            raise
        return _read_lines(path, name, decoder)  # of objects so long that the first was not seen whole


def _read_lines(path: Path, name: str, decoder: _Decoder) -> Records:
    """Read one object per line; lines that hold none are left out and counted, unless all do."""
    found = Records()
    faults: list[str] = []
    count = 0
    with path.open(encoding="utf-8-sig", errors="replace") as lines:
        for number, line in enumerate(until_cancelled(lines), start=1):
            if not line.strip():
                continue
            decoder.place = f"line {number}"
            value, fault = _parse_line(line, decoder.decode)
            if fault:
                count += 1
                faults += [f"line {number}: {fault}"] if count <= _MOST_EXAMPLES else []
            else:
                found.rows.append(value)
    if not found.rows:
        raise SourceError(f"{name}, {faults[0]}: JSON Lines need one object per line")
    if count:
        left = f"{count:,} lines without an object are left out" if count > 1 else "a line is left out"
        found.notes = (f"{name}: {left}: {'; '.join(faults)}",)
    return found


def _parse_line(line: str, decode: Callable[[str], Any] = json.loads) -> tuple[Any, str]:
    try:
        value = decode(line)
    except (ValueError, RecursionError) as error:
        return None, f"not JSON ({error})"
    if not isinstance(value, dict):
        return None, f"one object per line, not a {type(value).__name__}"
    return value, ""


def _read_document(path: Path, name: str, decoder: _Decoder) -> Records:
    """Read a file that is one JSON value, or objects one after another."""
    try:
        value = _parse_values(path.read_text(encoding="utf-8-sig", errors="replace"), decoder)
    except (ValueError, RecursionError) as error:  # also a number of thousands of digits, or lists too deep
        why = f"{error.msg}: char {error.pos:,}" if isinstance(error, json.JSONDecodeError) else str(error)
        raise SourceError(f"{name} is not JSON ({why}): fix it there, or write one object per line") from error
    notes: tuple[str, ...] = ()
    whole: Record | None = None
    if isinstance(value, dict):
        lists = [key for key, inner in value.items() if isinstance(inner, list) and _take_records(inner)]
        rest = [key for key in value if key not in lists]
        whole = value if rest else None
        if len(lists) > 1:
            left: tuple[str, ...] = (f"{name}: read without its {', '.join(map(repr, rest))}",) if rest else ()
            tables: dict[str, list[Record]] = {key: _take_records(value[key]) for key in lists}
            for key, rows in tables.items():
                left += _count_left(f"{name}, {key!r}", value[key], rows)
            return Records(notes=left, whole=whole, tables=tables)
        if lists:
            value, notes = value[lists[0]], (f"{name}: the rows are those of its {lists[0]!r}",)
        elif (shaped := reshape_rows(value)) is not None:
            value, whole, notes = shaped, None, (f"{name}: one object, read as {len(shaped):,} rows",)
        else:
            return Records(whole=value)
    rows = _take_records(value) if isinstance(value, list) else []
    if not rows:
        raise SourceError(f"{name} holds no objects: write an array of objects, or one object per line")
    return Records(rows, (*notes, *_count_left(name, value, rows)), whole)


def _count_left(where: str, values: Sequence[Any], rows: Sequence[Record]) -> tuple[str, ...]:
    left = len(values) - len(rows)
    return (f"{where}: {left:,} of its elements are not objects and are left out",) if left else ()


def _take_records(values: list[Any]) -> list[Record]:
    return [each for each in values if isinstance(each, dict)]


def _parse_values(text: str, decoder: _Decoder) -> Any:
    """Return the value of a JSON text; of several objects one after another, a list.

    Arrays are read value by value: Ctrl-C would wait for one call over all of a large file.
    """
    at = _skip_space(text, 0)
    if not text.startswith(("[", "{"), at):
        return json.loads(text)
    array = text[at] == "["
    values, at = [], _skip_space(text, at + array)
    closed = array and text.startswith("]", at)
    while at < len(text) and not closed:
        raise_if_cancelled()
        if not array and text[at] != "{":
            raise json.JSONDecodeError("Extra data", text, at)
        decoder.place = f"char {at:,}"
        value, at = decoder.raw_decode(text, at)
        values.append(value)
        at = _skip_space(text, at)
        if array and not (closed := text.startswith("]", at)):
            if not text.startswith(",", at):
                raise json.JSONDecodeError("Expecting ',' delimiter", text, at)
            at = _skip_space(text, at + 1)
    if array and not closed:
        raise json.JSONDecodeError("Expecting value", text, at)
    if closed and (at := _skip_space(text, at + 1)) < len(text):
        raise json.JSONDecodeError("Extra data", text, at)
    return values if array or len(values) > 1 else values[0]


def _skip_space(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space else at


def reshape_rows(value: Mapping[str, Any]) -> list[Record] | None:
    """Return the rows of an object that is a table in another shape, None where it is none.

    `{"a": {"x": 1}, "b": {"x": 2}}` names its rows, in a column `key`; `{"x": [1, 2]}` and pandas' `{"x": {"0": 1,
    "1": 2}}` hold columns of one length; pandas' `{"columns": ["x"], "index": [0, 1], "data": [[1], [2]]}` lists them.
    """
    if (split := _reshape_split(value)) is not None:
        return split
    parts = list(value.values())
    if parts and all(isinstance(part, dict) and part for part in parts):
        if all(list(part) == [str(n) for n in range(len(part))] for part in parts):
            value, parts = {name: list(part.values()) for name, part in value.items()}, []
        elif len(parts) >= _LEAST_NAMED:
            counts = Counter(key for part in parts for key in part)
            if max(counts.values()) >= _ALIKE * len(parts):
                column = _free_name("key", counts)
                return [{column: name, **part} for name, part in value.items()]
    columns = list(value.values())
    if columns and all(isinstance(c, list) for c in columns) and len({len(c) for c in columns}) == 1 and columns[0]:
        if not any(isinstance(cell, list | dict) for column in columns for cell in column):
            return [dict(zip(value, row, strict=True)) for row in zip(*columns, strict=True)]
    return None


def _reshape_split(value: Mapping[str, Any]) -> list[Record] | None:
    """Return the rows of an object in pandas' orientation `split`; an index that only counts is left out."""
    columns, data = value.get("columns"), value.get("data")
    if not isinstance(columns, list) or not isinstance(data, list) or not set(value) <= {"columns", "data", "index"}:
        return None
    if not data or not all(isinstance(row, list) and len(row) == len(columns) for row in data):
        return None
    rows = [dict(zip(map(str, columns), row, strict=True)) for row in data]
    index = value.get("index", [])
    if len(index) != len(rows) or index == list(range(len(rows))):
        return list(rows)
    name = _free_name("index", map(str, columns))
    return [{name: at, **row} for at, row in zip(index, rows, strict=True)]


def share_keys(objects: Sequence[Record]) -> bool:
    """Return whether objects are of one kind: half of their keys, and of those in their lists, nearly all have."""
    shapes = [
        {*each, *(f"{key} {inner}" for key, value in each.items() if _is_objects(value) for inner in value[0])}
        for each in objects
    ]
    counts = Counter(key for shape in shapes for key in shape)
    common = sum(count for count in counts.values() if count >= _ALIKE * len(objects))
    return 2 * common >= counts.total()


def _is_objects(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, dict) for each in value)


def open_records(rows: Iterable[Record], name: str) -> list[RecordTable]:
    """Return the table of some records, and of every list of objects in them a table of its own.

    Records are told apart by the column that is called an id, else by their number.
    """
    found: list[RecordTable] = []
    _open(list(rows), name, found, 0)
    return found


def flat_columns(rows: Sequence[Record], depth: int = 0) -> dict[str, list[Any]]:
    """Return the values of each key, objects opened up into columns of their own; lists of objects stay lists."""
    columns: dict[str, list[Any]] = {}
    for at, row in enumerate(until_cancelled(rows)):
        for key, value in row.items():
            if key not in columns:
                columns[key] = [None] * len(rows)
            columns[key][at] = value
    opened: dict[str, list[Any]] = {}
    for column, values in columns.items():
        objects = [value for value in values if value is not None]
        keys = {key for value in objects if isinstance(value, dict) for key in value}
        if not objects or not all(isinstance(v, dict) for v in objects) or not keys or depth >= _DEEPEST:
            opened[_free_name(column, opened) if column in opened else column] = values  # `clean_header` folds case
        elif len(keys) > _MOST_KEYS:
            opened[_free_name(column, opened)] = [v and json.dumps(v, ensure_ascii=False) for v in values]
        else:
            for inner, parts in flat_columns([value or {} for value in values], depth + 1).items():
                opened[_free_name(f"{column}_{inner}", opened)] = parts
    return opened


def _open(rows: list[Record], name: str, found: list[RecordTable], depth: int) -> RecordTable:
    table = RecordTable(name, {})
    found.append(table)
    children: dict[str, list[tuple[int, Record]]] = {}
    for column, values in flat_columns(rows, depth).items():
        if any(map(_is_objects, values)) and depth < _DEEPEST and all(_is_objects(v) or not v for v in values):
            children[column] = [(at, inner) for at, value in enumerate(values) for inner in value or ()]
        else:
            table.columns[column] = values
    if children:
        table.key = _find_key(table.columns)
        if not table.key:
            table.key = _free_name("row", table.columns)
            table.columns = {table.key: list(range(1, len(rows) + 1)), **table.columns}
        keys = table.columns[table.key]
    for column, parts in children.items():
        child = _open([part for _, part in parts], f"{name}_{column}", found, depth + 1)
        own = _free_name(f"{name}_{table.key}", child.columns)
        child.columns = {own: [keys[at] for at, _ in parts], **child.columns}
        child.parent = (own, name, table.key)
    return table


def _find_key(columns: Mapping[str, list[Any]]) -> str:
    """Return the column that is called an id and tells records apart, "" where none does."""
    for name in ("id", "_id", "uuid", "key"):
        found = next((column for column in columns if column.casefold() == name), None)
        values = columns[found] if found is not None else []
        if found and all(isinstance(v, str | int) and v != "" for v in values) and len(set(values)) == len(values):
            return found
    return ""


def _free_name(name: str, taken: Iterable[str]) -> str:
    folded = {each.casefold() for each in taken}
    number, candidate = 2, name
    while candidate.casefold() in folded:
        candidate, number = f"{name}_{number}", number + 1
    return candidate
