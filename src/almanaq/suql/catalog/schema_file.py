"""`SOURCE.almanaq.toml`: what a person says of a source's relations and columns, as it is read.

[restaurants]
description = "Places to eat in the Bay Area"
key = ["id"]
named_by = "name"           # the column that names a row, as people speak of it
[restaurants.file]          # how the file is written, where it was guessed wrong: header, separator, encoding,
days = "DMY"                # days (DMY, MDY), decimal ("," or ".")
[restaurants.columns.zip]
type = "text"               # the type that the file's cells are read as
[restaurants.columns.reviews]
kind = "free_text"          # structured | free_text | enum
description = "what guests wrote"
private = false             # true: never sent to a remote model
vectors = "reviews_vector"  # a column of pgvector's type with the vector of each text: the database orders by them
[restaurants.columns.price]
kind = "enum"
values = ["cheap", "moderate"]    # in their order; left out: the values that the column holds, without an order
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from almanaq.corpus.files.marks import ORDERS, Marks
from almanaq.corpus.files.sniff import TYPES, Hints, ReadOptions
from almanaq.corpus.schema_places import schema_files
from almanaq.errors import SourceError, suggest
from almanaq.suql.catalog.relations import ColumnKind

ForeignKey = tuple[tuple[str, ...], str, tuple[str, ...]]


TABLE_KEYS = ("description", "key", "foreign_keys", "columns", "named_by", "file")
FILE_KEYS = ("header", "names", "separator", "encoding", "days", "decimal")
COLUMN_KEYS = ("kind", "description", "private", "values", "vectors", "type")
"""What may be said of a table, of its file and of a column."""


@dataclass(frozen=True, slots=True)
class ColumnSchema:
    """What is said of a column; None or empty: nothing. `written` is a cell as its file writes it."""

    kind: ColumnKind | None = None
    description: str | None = None
    private: bool | None = None
    values: tuple[str, ...] = ()
    vectors: str | None = None
    type: str = ""
    written: str = ""


@dataclass(frozen=True, slots=True)
class RelationSchema:
    """What is said of a relation; None or empty: nothing. `hints` and `marks` say how its file is written."""

    description: str | None = None
    key: tuple[str, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    columns: Mapping[str, ColumnSchema] = field(default_factory=dict)
    named_by: str = ""
    hints: Hints = field(default_factory=Hints)
    marks: Marks = field(default_factory=Marks)

    def as_read_options(self) -> ReadOptions:
        """Return what is said of how the file is to be read."""
        types = {name.casefold(): column.type for name, column in self.columns.items() if column.type}
        return ReadOptions(self.hints, self.marks, types)


@dataclass(frozen=True, slots=True)
class Schema:
    """What is said of a source, by relation; `name` is that of the file, for messages."""

    relations: Mapping[str, RelationSchema] = field(default_factory=dict)
    name: str = "schema"


def schema_beside(sources: Iterable[Path]) -> Schema | None:
    """Return what the schema files of files and folders say together, None where there is none.

    Of a folder, also those of what lies in it count: what is private stays so, whatever way its file is named. Beside
    `patients.csv` lies `patients.csv.almanaq.toml`, or `patients.almanaq.toml`. Where two speak of one table, the first
    counts (the folder's before those in it), and a column that either calls private is.

    Raises:
        SourceError: there are two schema files of one source, or one cannot be read.
    """
    found: dict[Path, None] = {}
    for source in sources:
        found |= dict.fromkeys(schema_files(source))
    schemas = [read_schema(path) for path in found]
    relations: dict[str, RelationSchema] = {}
    written: dict[str, str] = {}
    for schema in schemas:
        for given, entry in schema.relations.items():
            name = written.setdefault(given.casefold(), given)
            relations[name] = _joined(relations[name], entry) if name in relations else entry
    return Schema(relations, ", ".join(schema.name for schema in schemas)) if schemas else None


def _joined(first: RelationSchema, other: RelationSchema) -> RelationSchema:
    """Return what is said first of a table, with the columns that only the other names, and every private one."""
    columns = dict(first.columns)
    written = {name.casefold(): name for name in columns}
    for given, column in other.columns.items():
        name = written.setdefault(given.casefold(), given)
        known = columns.get(name, column)
        columns[name] = replace(known, private=True) if column.private else known
    return replace(first, columns=columns)


def read_schema(path: str | Path) -> Schema:
    """Return what a schema file says; raises SourceError with the name of the faulty entry."""
    path = Path(path)
    try:
        return parse_schema(path.read_text(encoding="utf-8"), path.name)
    except OSError as error:
        raise SourceError(f"cannot read the schema file {str(path)!r}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SourceError(f"the schema file {path.name} is not UTF-8") from error


def parse_schema(text: str, name: str = "schema") -> Schema:
    """Return what the text of a schema file says; raises SourceError."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SourceError(f"{name} is not TOML: {error}") from error
    return Schema({key: _relation(entry, f"{name}, [{key}]") for key, entry in document.items()}, name)


def _relation(entry: Any, where: str) -> RelationSchema:
    _check_entry(entry, TABLE_KEYS, where)
    columns = entry.get("columns", {})
    _check_entry(columns, None, f"{where}, columns")
    hints, marks = _file(entry.get("file", {}), f"{where}, file")
    return RelationSchema(
        _get(entry, "description", str, where),
        _strings(entry, "key", where),
        tuple(_foreign_key(item, where) for item in entry.get("foreign_keys", [])),
        {name: _column(column, f"{where}, column {name!r}") for name, column in columns.items()},
        _get(entry, "named_by", str, where) or "",
        hints,
        marks,
    )


def _file(entry: Any, where: str) -> tuple[Hints, Marks]:
    """Return how a file is said to be written."""
    _check_entry(entry, FILE_KEYS, where)
    for name, known in (("days", list(ORDERS)), ("decimal", [",", "."])):
        if entry.get(name, known[0]) not in known:
            raise SourceError(f"{where}: {name} must be one of {', '.join(known)}, not {entry[name]!r}")
    separator = _get(entry, "separator", str, where) or ""
    if len(separator) > 1:
        raise SourceError(f"{where}: separator must be one character, not {separator!r}")
    names = _strings(entry, "names", where)
    if len({name.strip().casefold() for name in names} - {""}) < len(names):
        raise SourceError(f"{where}: names must be different from one another, and none empty")
    hints = Hints(_get(entry, "encoding", str, where) or "", separator, _get(entry, "header", bool, where), names)
    return hints, Marks(entry.get("decimal"), entry.get("days"))


def _column(entry: Any, where: str) -> ColumnSchema:
    _check_entry(entry, COLUMN_KEYS, where)
    kind = _get(entry, "kind", str, where)
    kinds = [k.value for k in ColumnKind]
    if kind is not None and kind.lower() not in kinds:
        raise SourceError(f"{where}: no kind {kind!r}{suggest(kind, kinds)}")
    values = _strings(entry, "values", where)
    if values and kind is not None and kind.lower() != "enum":
        raise SourceError(f'{where}: only kind = "enum" has values')
    type_ = _get(entry, "type", str, where) or ""
    if type_ and type_ not in TYPES:
        raise SourceError(f"{where}: no type {type_!r}{suggest(type_, TYPES)}")
    found = ColumnKind(kind.lower()) if kind else (ColumnKind.ENUM if values else None)
    return ColumnSchema(
        found,
        _get(entry, "description", str, where),
        _get(entry, "private", bool, where),
        values,
        _get(entry, "vectors", str, where),
        type_,
    )


def _foreign_key(item: Any, where: str) -> ForeignKey:
    _check_entry(item, ("columns", "table", "references"), f"{where}, foreign_keys")
    table = _get(item, "table", str, where)
    own, theirs = _strings(item, "columns", where), _strings(item, "references", where)
    if not table or not own or len(own) != len(theirs):
        raise SourceError(f'{where}: a foreign key is {{columns = ["a"], table = "other", references = ["id"]}}')
    return own, table, theirs


def _check_entry(entry: Any, known: tuple[str, ...] | None, where: str) -> None:
    if not isinstance(entry, dict):
        raise SourceError(f"{where}: a table of settings is expected, not {entry!r}")
    for name in entry:
        if known is not None and name not in known:
            raise SourceError(f"{where}: no setting {name!r}{suggest(name, known)}")


def _get(entry: Mapping[str, Any], name: str, type_: type, where: str) -> Any:
    value = entry.get(name)
    if value is not None and not isinstance(value, type_):
        expected = {str: "a string", bool: "true or false"}[type_]
        raise SourceError(f"{where}: {name} must be {expected}, not {value!r}")
    return value


def _strings(entry: Mapping[str, Any], name: str, where: str) -> tuple[str, ...]:
    value = entry.get(name, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise SourceError(f"{where}: {name} must be a list of strings, not {value!r}")
    return tuple(value)
