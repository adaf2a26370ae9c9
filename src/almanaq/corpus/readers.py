"""Corpora of a source: the ids of its tables, each read as text when an iteration reaches it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from almanaq.corpus.files.listing import FetchedFolder
from almanaq.corpus.read_cancellation import raise_if_cancelled
from almanaq.corpus.table import Table, TableId
from almanaq.errors import MissingExtraError, SourceError

_MOST_BYTES = 2_000_000_000
"""The most memory that the cells of one table may take as text."""


@dataclass(frozen=True, slots=True)
class SourceTables:
    """A Corpus: the ids of its tables, and how to read each; a table is read when the iteration reaches it.

    Attributes:
        held: the folder of files that were fetched.
        faults: what could not be read, in words for people; it grows as the iteration comes upon more.
    """

    ids: tuple[TableId, ...]
    read: Callable[[TableId], Table] = field(repr=False)
    faults: list[str] = field(default_factory=list, repr=False)
    held: FetchedFolder | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[Table]:
        """Yield the tables that can be read; raises SourceError where none can."""
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


def table_from_arrow(table_id: TableId, arrow: Any, *, rows: int | None = None) -> Table:
    """Return an Arrow table as text."""
    part = arrow if rows is None else arrow.slice(0, rows)
    cells = zip(*(map(cell_text, column.to_pylist()) for column in part.columns), strict=True)
    return Table(table_id, tuple(arrow.column_names), tuple(cells), title=table_id.table)


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


def read_cells(batches: Iterable[Any], where: str) -> Iterator[tuple[str, ...]]:
    """Yield the rows of Arrow batches as text.

    Raises:
        SourceError: they take more memory than a table of a corpus may: a few bytes may unpack to any number of rows.
    """
    held = 0
    for batch in batches:
        raise_if_cancelled()
        held += batch.nbytes
        if held > _MOST_BYTES:
            raise SourceError(
                f"{where} holds more than {_MOST_BYTES // 10**6:,} MB when it is unpacked: leave out columns, or query "
                "it with --db"
            )
        yield from zip(*(map(cell_text, column.to_pylist()) for column in batch.columns), strict=True)


def tables_corpus(tables: Mapping[str, Any], database: str, *, rows: int | None = None) -> SourceTables:
    """Return Arrow tables by name as a corpus of one database."""
    ids = tuple(TableId(database, name) for name in tables)
    return SourceTables(ids, lambda table_id: table_from_arrow(table_id, tables[table_id.table], rows=rows))
