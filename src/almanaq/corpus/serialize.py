"""Tables as text: the fields a retriever may see, and how each becomes words.

What a retriever sees is a declared choice of every index and every run, the same for all retrievers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum

from almanaq.corpus.table import Table
from almanaq.errors import UsageError, suggest


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
    chosen = {_parse(name) for name in listed if name.strip()}
    if not chosen:
        raise UsageError(f"no fields: name at least one of {', '.join(Field)}")
    return tuple(field for field in Field if field in chosen)


def field_lines(table: Table, field: Field) -> Iterator[str]:
    """Return the text of one field piece by piece: cells row by row, everything else as one piece, blanks left out."""
    return (line for line in _LINES[field](table) if line.strip())


def field_text(table: Table, field: Field) -> str:
    """Return the text of one field; "" where the table has none."""
    return "\n".join(field_lines(table, field))


def table_text(table: Table, fields: Sequence[Field], *, max_chars: int | None = None) -> str:
    """Return the text of the declared fields, one field after another, cut off at `max_chars` characters.

    Only as many rows are read as fit, so a table of any length costs the same.
    """
    lines: list[str] = []
    size = 0
    for field in fields:
        for line in field_lines(table, field):
            lines.append(line)
            size += len(line) + 1
            if max_chars is not None and size > max_chars:
                return "\n".join(lines)[:max_chars]
    return "\n".join(lines)


def _parse(name: str) -> Field:
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
