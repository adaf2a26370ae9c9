"""Tables of a corpus, streamed, and the text of their declared fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

from almanaq.corpus.read_cancellation import raise_if_cancelled
from almanaq.errors import MissingExtraError, SourceError, UsageError, suggest

_MOST_BYTES = 2_000_000_000  # the most memory that the cells of one table may take as text


class TableId(NamedTuple):
    """Identifies a table: its database (or folder), and its name there."""

    database: str
    table: str

    def __str__(self) -> str:
        return f"{self.database}/{self.table}"


@dataclass(frozen=True, slots=True)
class Table:
    """One table as text: what a retriever or a generator sees."""

    id: TableId
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]  # each as long as `header`
    title: str = ""  # page title, caption or table name
    section: str = ""
    description: str = ""  # comments on the table and its columns
    keys: tuple[str, ...] = ()  # names of primary and foreign key columns, `column -> table.column` for foreign ones
    context: Mapping[str, object] = field(default_factory=dict)  # all other metadata of the source


class Corpus(Protocol):
    """A sized stream of tables; each iteration starts from the beginning."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Table]: ...


def check_distinct(corpus: Iterable[Table]) -> Iterator[Table]:
    """Yield the tables of a corpus; raises SourceError at a repeated id, and where there is no table."""
    seen: set[TableId] = set()
    for table in corpus:
        if table.id in seen:
            raise SourceError(f"table {table.id} occurs more than once in the corpus: ids must differ")
        seen.add(table.id)
        yield table
    if not seen:
        raise SourceError("the corpus holds no table")


@dataclass(frozen=True, slots=True)
class SourceTables:
    """A Corpus: the ids of its tables, and how to read each; a table is read when the iteration reaches it."""

    ids: tuple[TableId, ...]
    read: Callable[[TableId], Table] = field(repr=False)
    faults: list[str] = field(default_factory=list, repr=False)  # what could not be read; the iteration adds to it
    held: object = field(default=None, repr=False)  # the folder of files that were fetched, which goes with its holder

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[Table]:
        read = 0
        for table_id in self.ids:
            try:
                table = self.read(table_id)
            except (SourceError, MissingExtraError) as error:
                self._blame(f"{table_id} was left out: {error}")
                continue
            for warning in table.context.get("warnings", ()):  # type: ignore[attr-defined]
                self._blame(str(warning))
            read += 1
            yield table
        if self.ids and not read:
            raise SourceError("; ".join(self.faults))

    def _blame(self, message: str) -> None:
        if message not in self.faults:
            self.faults.append(message)


def tables_corpus(tables: Mapping[str, Any], database: str, *, rows: int | None = None) -> SourceTables:
    """Return Arrow tables by name as a corpus of one database, at most `rows` of each."""

    def read(table_id: TableId) -> Table:
        arrow = tables[table_id.table]
        cells = tuple(_convert_rows(arrow if rows is None else arrow.slice(0, rows)))
        return Table(table_id, tuple(arrow.column_names), cells, title=table_id.table)

    return SourceTables(tuple(TableId(database, name) for name in tables), read)


def read_cells(batches: Iterable[Any], where: str) -> Iterator[tuple[str, ...]]:
    """Yield the rows of Arrow batches as text. Raises SourceError where they take more memory than a table may."""
    held = 0
    for batch in batches:
        raise_if_cancelled()
        held += batch.nbytes
        if held > _MOST_BYTES:
            raise SourceError(
                f"{where} holds more than {_MOST_BYTES // 10**6:,} MB when it is unpacked: leave out columns, or query "
                "it with --db"
            )
        yield from _convert_rows(batch)


def _convert_rows(batch: Any) -> Iterator[tuple[str, ...]]:
    return zip(*(map(cell_text, column.to_pylist()) for column in batch.columns), strict=True)


def cell_text(value: object) -> str:
    """Return a value as the text of a cell: "" for NULL, the elements of an array joined by "; "."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return "; ".join(cell_text(element) for element in value)
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    return str(value)


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
    """Return the fields named in a list, or in text between commas, in the order of Field and without repeats."""
    listed = names.split(",") if isinstance(names, str) else names
    chosen = {name.strip().lower(): name.strip() for name in listed if name.strip()}
    for name, written in chosen.items():
        if name not in tuple(Field):
            raise UsageError(f"unknown field {written!r}{suggest(written, [field.value for field in Field])}")
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
    """Return the text of the declared fields, in order, cut at `max_chars` characters; rows beyond are not read."""
    lines: list[str] = []
    size = 0
    for name in fields:
        for line in field_lines(table, name):
            lines.append(line)
            size += len(line) + 1
            if max_chars is not None and size > max_chars:
                return "\n".join(lines)[:max_chars]
    return "\n".join(lines)


_LINES: Mapping[Field, Callable[[Table], Iterable[str]]] = {
    # An identifier's underscores are word breaks to a reader and to an embedder's tokenizer.
    Field.DATABASE: lambda table: (table.id.database.replace("_", " "),),
    Field.TITLE: lambda table: (table.title,),
    Field.SECTION: lambda table: (table.section,),
    Field.DESCRIPTION: lambda table: (table.description,),
    Field.HEADER: lambda table: (" | ".join(name for name in table.header if name),),
    Field.KEYS: lambda table: (", ".join(table.keys),),
    Field.CELLS: lambda table: (" | ".join(cell for cell in row if cell) for row in table.rows),
}
