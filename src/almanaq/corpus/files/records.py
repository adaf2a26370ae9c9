"""JSON as tables: arrays of objects, objects one after another, objects that hold arrays; nested ones opened up.

An object within a record becomes columns (`address_city`), a list of objects a table of its own (`orders_items`) with
the number of the record that it belongs to; a list of plain values stays one column.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from sys import intern
from typing import Any, TextIO

from almanaq.corpus.read_cancellation import raise_if_cancelled
from almanaq.errors import SourceError

# --- a JSON text, read element by element -----------------------------------------------------------------------------

_CHUNK = 1 << 18
_LOOK_ELEMENTS = 1 << 10
"""How many elements are read between two looks whether the reading is to end."""
_SPACE = re.compile(r"[ \t\r\n]*")
_CLOSED, _BEHIND = frozenset('"]}'), frozenset(" \t\r\n,]}")
"""A value that ends with one of these, or has one of those behind it, is whole; "1e" may go on."""


class JSONStream:
    """A JSON text, of which as much is held as the value that is read needs.

    Raises:
        ValueError: what is asked for is not there, as the text is no JSON.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._text, self._at, self._before = "", 0, 0
        self._ended = False
        self._decoder = json.JSONDecoder()

    def peek(self) -> str:
        """Return the next sign that is no space; "" at the end."""
        while True:
            found = _SPACE.match(self._text, self._at)
            self._at = found.end() if found else self._at
            if self._at < len(self._text) or not self._more():
                return self._text[self._at : self._at + 1]

    def value(self) -> Any:
        """Return the next value, whole."""
        self.peek()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except ValueError as error:
                if self._more():
                    continue
                where = self._before + (error.pos if isinstance(error, json.JSONDecodeError) else self._at)
                why = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
                raise ValueError(f"{why}: char {where:,}") from error
            if self._text[end - 1] in _CLOSED or self._text[end : end + 1] in _BEHIND or not self._more():
                self._at = end
                return value

    def elements(self) -> Iterator[Any]:
        """Yield the elements of the array that comes next."""
        for number, _ in enumerate(self._parts("[", "]")):
            if number % _LOOK_ELEMENTS == 0:
                raise_if_cancelled()
            value = self.value()
            # Each value comes with keys of its own, as long as they may be.
            yield {intern(key): inner for key, inner in value.items()} if type(value) is dict else value

    def members(self) -> Iterator[str]:
        """Yield the keys of the object that comes next; the caller takes the value of each before the next."""
        for _ in self._parts("{", "}"):
            key = self.value()
            if not isinstance(key, str):
                raise ValueError(f"a key is not a string: char {self._place():,}")
            self._take(":")
            yield key

    def finish(self) -> None:
        """See that nothing follows."""
        if self.peek():
            raise ValueError(f"Extra data: char {self._place():,}")

    def _parts(self, opens: str, closes: str) -> Iterator[None]:
        """Stop at each part of what stands between two signs, with commas between the parts."""
        self._take(opens)
        if self.peek() == closes:
            self._at += 1
            return
        while True:
            yield
            if self.peek() == closes:
                self._at += 1
                return
            self._take(",")

    def _take(self, sign: str) -> None:
        if self.peek() != sign:
            raise ValueError(f"{sign!r} is missing: char {self._place():,}")
        self._at += 1

    def _place(self) -> int:
        return self._before + self._at

    def _more(self) -> bool:
        """Read on, each time as much as is held; False at the end."""
        if self._ended:
            return False
        raise_if_cancelled()
        self._text, self._before, kept = self._text[self._at :], self._before + self._at, len(self._text) - self._at
        self._at = 0
        read = self._file.read(max(_CHUNK, kept))
        self._text += read
        self._ended = not read
        return bool(read)


# --- records ----------------------------------------------------------------------------------------------------------

Record = Mapping[str, Any]
_MOST_KEYS = 200
"""An object with more different keys over all records is a mapping of names to values, kept as JSON text."""
_DEEPEST = 8
_LEAST_NAMED, _ALIKE = 3, 0.9
"""Fewer objects in one are as likely parts of settings."""
_MOST_EXAMPLES = 3
_LOOK = 1 << 12
"""How many records are read between two looks whether the reading is to end."""
_LONGEST_BEGINNING = 1 << 20
MOST_BYTES = 512 << 20
"""Of a larger file the objects would fill the memory: they take several times its size."""


@dataclass(slots=True)
class Records:
    """The objects of a file, and what was left out of it.

    Attributes:
        whole: the object that the file is as a whole, where that may be a row among those of other files.
        tables: lists of objects that stand side by side in it, by their names; then `rows` is empty.
    """

    rows: list[Record] = field(default_factory=list)
    notes: tuple[str, ...] = ()
    whole: Record | None = None
    tables: Mapping[str, list[Record]] = field(default_factory=dict)


@dataclass(slots=True)
class RecordTable:
    """A table of records with their nested parts opened up.

    Attributes:
        key: the column by which children name their record; "" where there is none.
        parent: of a child, (its own column, the parent's name, the parent's column).
    """

    name: str
    columns: dict[str, list[Any]]
    key: str = ""
    parent: tuple[str, str, str] | None = None


def read_json(path: Path, name: str) -> Records:
    """Return the objects of a JSON file in any of the forms.

    Raises:
        SourceError: it holds no objects, or nothing of it is JSON.
    """
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
    if by_lines or (second and _is_object(first)):
        return _lines(path, name)
    try:
        return _document(path, name)
    except SourceError:
        if len(first) < _LONGEST_BEGINNING or not first.startswith("{"):
            raise
        return _lines(path, name)  # of objects so long that the first was not seen whole


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _lines(path: Path, name: str) -> Records:
    """Read one object per line; lines that hold none are left out and counted, unless all do."""
    found = Records()
    faults: list[str] = []
    count = 0
    for number, line in _read_numbered_lines(path):
        value, fault = _record(line)
        if fault:
            count += 1
            faults += [f"line {number}: {fault}"] if len(faults) < _MOST_EXAMPLES else []
        else:
            found.rows.append(value)
    if not found.rows:
        raise SourceError(f"{name}, {faults[0]}: JSON Lines need one object per line")
    if count:
        lines = f"{count:,} lines without an object are left out" if count > 1 else "a line is left out"
        found.notes = (f"{name}: {lines}: {'; '.join(faults)}",)
    return found


def _read_numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    with path.open(encoding="utf-8-sig", errors="replace") as lines:
        for number, line in enumerate(lines, start=1):
            if number % _LOOK == 0:
                raise_if_cancelled()
            if line.strip():
                yield number, line


def _record(line: str) -> tuple[Any, str]:
    try:
        value = json.loads(line)
    except ValueError as error:
        return None, f"not JSON ({error})"
    if not isinstance(value, dict):
        return None, f"one object per line, not a {type(value).__name__}"
    return {intern(key): inner for key, inner in value.items()}, ""


def _document(path: Path, name: str) -> Records:
    """Read a file that is one JSON value."""
    try:
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            value = _parse_stream(JSONStream(file))
    except ValueError as error:
        raise SourceError(f"{name} is not JSON ({error}): fix it there, or write one object per line") from error
    notes: tuple[str, ...] = ()
    whole: Record | None = None
    if isinstance(value, dict):
        lists = [key for key, inner in value.items() if _objects(inner)]
        rest = [key for key in value if key not in lists]
        whole = value if rest else None
        if len(lists) > 1:
            left = (f"{name}: read without its {', '.join(map(repr, rest))}",) if rest else ()
            tables: dict[str, list[Record]] = {}
            for key in lists:
                tables[key] = [each for each in value[key] if isinstance(each, dict)]
            return Records(notes=left, whole=whole, tables=tables)
        if lists:
            value, notes = value[lists[0]], (f"{name}: the rows are those of its {lists[0]!r}",)
        elif (shaped := reshape_rows(value)) is not None:
            value, whole, notes = shaped, None, (f"{name}: one object, read as {len(shaped):,} rows",)
        else:
            return Records(whole=value)
    rows: list[Record] = [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
    if not rows:
        raise SourceError(f"{name} holds no objects: write an array of objects, or one object per line")
    if len(rows) < len(value):
        notes = (*notes, f"{name}: {len(value) - len(rows):,} of its elements are not objects and are left out")
    return Records(rows, notes, whole)


def _parse_stream(stream: JSONStream) -> Any:
    """Return a JSON text's value, read element by element where it is an array or holds one; of several, a list."""
    first = stream.peek()
    if first == "[":
        value: Any = list(stream.elements())
    elif first == "{":
        value = {key: list(stream.elements()) if stream.peek() == "[" else stream.value() for key in stream.members()}
        if stream.peek() == "{":
            value = [value]
            while stream.peek() == "{":
                value.append(stream.value())
    else:
        value = stream.value()
    stream.finish()
    return value


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
        elif len(parts) >= _LEAST_NAMED and _are_alike(parts):
            column = _free("key", {key for part in parts for key in part})
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
    name = _free("index", map(str, columns))
    return [{name: at, **row} for at, row in zip(index, rows, strict=True)]


def share_keys(objects: Sequence[Record]) -> bool:
    """Return whether objects are of one kind: half of their keys, and of those in their lists, nearly all have."""
    shapes = [
        {*each, *(f"{key} {inner}" for key, value in each.items() if _objects(value) for inner in value[0])}
        for each in objects
    ]
    counts = Counter(key for shape in shapes for key in shape)
    common = sum(count for count in counts.values() if count >= _ALIKE * len(objects))
    return 2 * common >= counts.total()


def _are_alike(parts: Sequence[Record]) -> bool:
    """Tell whether objects are rows of one table: nearly all of them have a key in common."""
    counts = Counter(key for part in parts for key in part)
    return max(counts.values()) >= _ALIKE * len(parts)


def _objects(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


# --- opening up ------------------------------------------------------------------------------------------------------


def open_records(rows: Iterable[Record], name: str, *, key: str = "") -> list[RecordTable]:
    """Return the table of some records, and of every list of objects in them a table of its own.

    Args:
        key: what tells records apart; "": what is called so, or the number of the record.
    """
    found: list[RecordTable] = []
    _open(list(rows), name, found, 0, key)
    return found


def flat_columns(rows: Sequence[Record]) -> dict[str, list[Any]]:
    """Return the values of each column of some records, objects opened up; lists of objects stay lists."""
    return _columns(list(rows), 0)


def _open(rows: list[Record], name: str, found: list[RecordTable], depth: int, key: str = "") -> RecordTable:
    columns = _columns(rows, depth)
    table = RecordTable(name, {})
    found.append(table)
    children: dict[str, list[tuple[int, Record]]] = {}
    for column, values in columns.items():
        if any(map(_objects, values)) and depth < _DEEPEST and all(_objects(v) or not v for v in values):
            children[column] = [(at, inner) for at, value in enumerate(values) for inner in value or ()]
        else:
            table.columns[column] = values
    if children:
        table.key = key or _key(table.columns)
        if not table.key:
            table.key = _free("row", table.columns)
            table.columns = {table.key: list(range(1, len(rows) + 1)), **table.columns}
        keys = table.columns[table.key]
    for column, parts in children.items():
        inner = [part for _, part in parts]
        child = _open(inner, f"{name}_{column}", found, depth + 1)
        own = _free(f"{name}_{table.key}", child.columns)
        child.columns = {own: [keys[at] for at, _ in parts], **child.columns}
        child.parent = (own, name, table.key)
    return table


def _columns(rows: list[Record], depth: int) -> dict[str, list[Any]]:
    """Return the values of each key, objects opened up into columns of their own."""
    columns: dict[str, list[Any]] = {}
    for at, row in enumerate(rows):
        if at % _LOOK == 0:
            raise_if_cancelled()
        for key, value in row.items():
            if key not in columns:
                columns[key] = [None] * len(rows)
            columns[key][at] = value
    opened: dict[str, list[Any]] = {}
    for column, values in columns.items():
        objects = [value for value in values if value is not None]
        keys = {key for value in objects if isinstance(value, dict) for key in value}
        if not objects or not all(isinstance(v, dict) for v in objects) or not keys or depth >= _DEEPEST:
            opened[_free(column, opened)] = values
        elif len(keys) > _MOST_KEYS:
            opened[_free(column, opened)] = [v and json.dumps(v, ensure_ascii=False) for v in values]
        else:
            for inner, parts in _columns([value or {} for value in values], depth + 1).items():
                opened[_free(f"{column}_{inner}", opened)] = parts
    return opened


def _key(columns: Mapping[str, list[Any]]) -> str:
    """Return the column that is called an id and tells records apart, "" where none does."""
    for name in ("id", "_id", "uuid", "key"):
        found = next((column for column in columns if column.casefold() == name), None)
        values = columns[found] if found is not None else []
        if found and all(isinstance(v, str | int) and v != "" for v in values) and len(set(values)) == len(values):
            return found
    return ""


def _free(name: str, taken: Iterable[str]) -> str:
    folded = {each.casefold() for each in taken}
    number, candidate = 2, name
    while candidate.casefold() in folded:
        candidate, number = f"{name}_{number}", number + 1
    return candidate
