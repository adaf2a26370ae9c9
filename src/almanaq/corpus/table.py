"""The values that hold tables: TableId, Table, Corpus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from almanaq.errors import SourceError


class TableId(NamedTuple):
    """Names one table: the database (or folder) it lies in, and its name there."""

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
        context: whatever else the source says of the table.
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
    """A sized stream of tables; iterating again starts anew."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Table]: ...


def distinct(corpus: Iterable[Table]) -> Iterator[Table]:
    """Yield the tables of a corpus, one by one. Raises SourceError at an id that was there before."""
    seen: set[TableId] = set()
    for table in corpus:
        if table.id in seen:
            raise SourceError(f"table {table.id} stands more than once in the corpus: ids must differ")
        seen.add(table.id)
        yield table
