"""Tables of a corpus, streamed, and the text of their declared fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Protocol

from almanaq.errors import SourceError, UsageError, suggest


class TableId(NamedTuple):
    """Identifies a table: its database (or folder), and its name there."""

    database: str
    table: str

    def __str__(self) -> str:
        return f"{self.database}/{self.table}"


@dataclass(frozen=True, slots=True)
class Table:
    """One table as text: what a retriever or a generator sees.

    Attributes:
        header: one name per column.
        rows: cells as text, each row as long as `header`.
        title: page title, caption or table name; "" where there is none.
        section: section title; "" where there is none.
        description: comments on the table and its columns; "" where there are none.
        keys: names of primary and foreign key columns, `column -> table.column` for foreign ones.
        context: all other metadata of the source.
    """

    id: TableId
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""
    section: str = ""
    description: str = ""
    keys: tuple[str, ...] = ()
    context: Mapping[str, object] = field(default_factory=dict)


class Corpus(Protocol):
    """A sized stream of tables; each iteration starts from the beginning."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Table]: ...


def check_distinct(corpus: Iterable[Table]) -> Iterator[Table]:
    """Yield the tables of a corpus. Raises SourceError at a repeated id."""
    seen: set[TableId] = set()
    for table in corpus:
        if table.id in seen:
            raise SourceError(f"table {table.id} occurs more than once in the corpus: ids must differ")
        seen.add(table.id)
        yield table


class Field(StrEnum):
    """A part of a table that can be indexed; the order here is the order in serialized text."""

    DATABASE = "database"
    TITLE = "title"
    SECTION = "section"
    DESCRIPTION = "description"
    HEADER = "header"
    KEYS = "keys"
    CELLS = "cells"


DEFAULT_FIELDS = (Field.TITLE, Field.SECTION, Field.HEADER, Field.CELLS)


def parse_fields(names: str | Sequence[str]) -> tuple[Field, ...]:
    """Return the fields named in a list, or in text between commas, in the order of Field and without repeats.

    Raises:
        UsageError: a name is not a field, or none is named.

    >>> parse_fields("title,header")
    (<Field.TITLE: 'title'>, <Field.HEADER: 'header'>)
    """
    listed = names.split(",") if isinstance(names, str) else names
    chosen = {_parse_field(name) for name in listed if name.strip()}
    if not chosen:
        raise UsageError(f"no fields: name at least one of {', '.join(Field)}")
    return tuple(field for field in Field if field in chosen)


def field_lines(table: Table, field: Field) -> Iterator[str]:
    """Return the text of one field in pieces, without blank ones: cells row by row, other fields as one piece."""
    return (line for line in _LINES[field](table) if line.strip())


def field_text(table: Table, field: Field) -> str:
    """Return the text of one field; "" where the table has none."""
    return "\n".join(field_lines(table, field))


def table_text(table: Table, fields: Sequence[Field], *, max_chars: int | None = None) -> str:
    """Return the text of the declared fields, in order, cut at `max_chars` characters.

    Rows beyond the limit are not read, so a long table costs no more than a short one.
    """
    lines: list[str] = []
    size = 0
    for name in fields:
        for line in field_lines(table, name):
            lines.append(line)
            size += len(line) + 1
            if max_chars is not None and size > max_chars:
                return "\n".join(lines)[:max_chars]
    return "\n".join(lines)


def _parse_field(name: str) -> Field:
    try:
        return Field(name.strip().lower())
    except ValueError:
        raise UsageError(
            f"unknown field {name.strip()!r}{suggest(name.strip(), [field.value for field in Field])}"
        ) from None


def _rows(table: Table) -> Iterator[str]:
    return (" | ".join(cell for cell in row if cell) for row in table.rows)


_LINES: Mapping[Field, Callable[[Table], Iterator[str]]] = {
    # An identifier's underscores are word breaks to a reader and to an embedder's tokenizer.
    Field.DATABASE: lambda table: iter((table.id.database.replace("_", " "),)),
    Field.TITLE: lambda table: iter((table.title,)),
    Field.SECTION: lambda table: iter((table.section,)),
    Field.DESCRIPTION: lambda table: iter((table.description,)),
    Field.HEADER: lambda table: iter((" | ".join(name for name in table.header if name),)),
    Field.KEYS: lambda table: iter((", ".join(table.keys),)),
    Field.CELLS: _rows,
}
