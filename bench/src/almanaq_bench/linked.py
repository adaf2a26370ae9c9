"""Tables whose cells link passages (HybridQA, OTT-QA): the table, the links of each cell, and the passages' texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from almanaq.corpus.table import Table, TableId
from almanaq.errors import SourceError
from almanaq_bench.question_sets import DatasetFolder, read_columns

CellLinks = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LinkedTable:
    """A table with what its cells link.

    Attributes:
        links: for each row, for each cell, the names of its passages; of the shape of `table.rows`.
        passages: texts by name; a link whose passage is not here has none.
    """

    table: Table
    links: tuple[tuple[CellLinks, ...], ...]
    passages: Mapping[str, str]


class LinkedTables:
    """The linked tables of a dataset folder, by id, in the order of the corpus; texts are held in memory once."""

    def __init__(self, folder: DatasetFolder, split: str | None = None) -> None:
        self._corpus = folder.corpus(split)
        self._links = {table: links for file in self._corpus.files for table, links in _links(file).items()}
        self._path = folder.path
        self._passages = _passages(folder.passages_file)
        self._tables = {table.id: table for table in self._corpus}

    def __len__(self) -> int:
        return len(self._tables)

    def __iter__(self) -> Iterator[LinkedTable]:
        return map(self.get, self._tables)

    def get(self, table_id: TableId) -> LinkedTable:
        """Return one table; raises SourceError when it is not in the corpus or its links do not fit its cells."""
        table = self._tables.get(table_id)
        if table is None:
            raise SourceError(f"{self._path}: no table {table_id}")
        shape = [len(row) for row in table.rows]
        # A table of which nothing is said links nothing.
        links = self._links.get(table_id) or tuple(((),) * width for width in shape)
        if [len(row) for row in links] != shape:
            raise SourceError(f"{self._path}: the links of table {table_id} do not have the shape of its cells")
        return LinkedTable(table, links, self._passages.get(table_id.table, {}))


@dataclass(frozen=True, slots=True)
class DescribedByPassages:
    """A Corpus of linked tables, described by what their cells link: retrievers can declare to see that."""

    tables: LinkedTables

    def __len__(self) -> int:
        return len(self.tables)

    def __iter__(self) -> Iterator[Table]:
        return (replace(each.table, description="\n".join(each.passages.values())) for each in self.tables)


def _links(file: Path) -> dict[TableId, tuple[tuple[CellLinks, ...], ...]]:
    columns = read_columns(file, ("database_id", "table_id", "links"))
    ids = map(TableId, map(str, columns["database_id"]), map(str, columns["table_id"]))
    return {key: tuple(map(_row, rows or ())) for key, rows in zip(ids, columns["links"], strict=True)}


def _row(cells: Sequence[Sequence[str] | None] | None) -> tuple[CellLinks, ...]:
    return tuple(tuple(dict.fromkeys(links or ())) for links in cells or ())


def _passages(file: Path) -> dict[str, dict[str, str]]:
    columns: dict[str, list[Any]] = read_columns(file, ("table_id", "link", "text"))
    found: dict[str, dict[str, str]] = {}
    for table, link, text in zip(columns["table_id"], columns["link"], columns["text"], strict=True):
        if (text or "").strip():
            found.setdefault(str(table), {})[link] = text
    return found
