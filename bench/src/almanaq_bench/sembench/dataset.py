"""The Movie scenario's data as a Dataset: `Movies.csv` and `Reviews.csv`, the labels kept apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from almanaq.corpus.dataset import Question
from almanaq.corpus.readers import cell_text
from almanaq.corpus.table import Table, TableId
from almanaq.errors import UsageError, suggest
from almanaq_bench.sembench.queries import QUERIES, SembenchQuery

FILES = ("Movies.csv", "Reviews.csv")
LABELS = ("scoreSentiment", "originalScore", "reviewState")
"""Columns that tell what the queries ask for."""
SPLIT = "movie"


@dataclass(frozen=True, slots=True)
class TwoTables:
    """The corpus of the task: there is nothing to find."""

    tables: tuple[Table, ...]

    def __len__(self) -> int:
        return len(self.tables)

    def __iter__(self) -> Iterator[Table]:
        yield from self.tables


@dataclass(frozen=True)
class SembenchData:
    """The folder with both files."""

    path: Path

    @property
    def splits(self) -> tuple[str, ...]:
        """The one split."""
        return (SPLIT,)

    def files(self, split: str) -> tuple[Path, ...]:
        """Return both files."""
        self._check(split)
        return tuple(self.path / name for name in FILES)

    def corpus(self, split: str | None = None) -> TwoTables:  # noqa: ARG002
        """Return the tables as a system sees them, cells as text."""
        return TwoTables(tuple(_as_table(name, table) for name, table in self.tables.items()))

    def corpus_split(self, split: str) -> str:  # noqa: ARG002
        """Return "all": there is one split."""
        return "all"

    def questions(self, split: str) -> tuple[Question, ...]:
        """Return the ten queries in words."""
        self._check(split)
        gold = tuple(TableId("movie", name) for name in ("movies", "reviews"))
        return tuple(Question(query.id, query.asks, gold, fields={"difficulty": query.id}) for query in QUERIES)

    @cached_property
    def tables(self) -> dict[str, pa.Table]:
        """The tables by name, without the columns that hold labels."""
        return {name: table.drop_columns([c for c in LABELS if c in table.column_names]) for name, table in self._all}

    @cached_property
    def labels(self) -> dict[str, tuple[str, str | None]]:
        """The sentiment and the reviewer's own score of each text; of the first review where several have one text."""
        found: dict[str, tuple[str, str | None]] = {}
        for row in dict(self._all)["reviews"].select(["reviewText", *LABELS[:2]]).to_pylist():
            found.setdefault(row["reviewText"], (row["scoreSentiment"], row["originalScore"]))
        return found

    def gold(self, query: SembenchQuery) -> list[tuple[Any, ...]]:
        """Return every right row of a query, by the labels."""
        with duckdb.connect() as connection:
            for name, table in self._all:
                connection.register(name, table)
            return connection.execute(query.gold).fetchall()

    @cached_property
    def _all(self) -> tuple[tuple[str, pa.Table], ...]:
        with duckdb.connect() as connection:
            return tuple(
                (name.partition(".")[0].lower(), connection.read_csv(str(self.path / name)).to_arrow_table())
                for name in FILES
            )

    def _check(self, split: str) -> None:
        if split != SPLIT:
            raise UsageError(f"no split {split!r} in {self.path}{suggest(split, self.splits)}")


def is_sembench_folder(folder: Path) -> bool:
    """Tell whether a folder holds the Movie scenario."""
    return all((folder / name).is_file() for name in FILES)


def _as_table(name: str, table: pa.Table) -> Table:
    rows = tuple(tuple(cell_text(value) for value in row.values()) for row in table.to_pylist())
    return Table(TableId("movie", name), tuple(table.column_names), rows, title=name)
