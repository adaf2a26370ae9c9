"""Questions of datasets, with their gold tables, beside the tables that almanaq reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from almanaq.corpus.table import Corpus, TableId
from almanaq.errors import SourceError, UsageError, suggest
from almanaq_bench.corpus_folder import (
    CorpusFolder,
    find_shards,
    open_corpus_folder,
    read_present_columns,
    read_records,
    require_columns,
)

_QUESTION_COLUMNS = frozenset({"query_id", "query", "database_id", "table_id", "answer"})


@dataclass(frozen=True, slots=True)
class Question:
    """One question of a dataset.

    Attributes:
        id: the dataset's own id, as text.
        gold: the tables that answer it, never empty.
        answer: the gold answer, statement's truth or SQL, as text.
        fields: all other columns of the record.
    """

    id: str
    text: str
    gold: tuple[TableId, ...]
    answer: str = ""
    fields: Mapping[str, object] = field(default_factory=dict)


class Dataset(Protocol):
    """Questions with their gold tables, by split, and the tables to search."""

    @property
    def path(self) -> Path:
        """The folder, or the card's file."""

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits that have questions."""

    def files(self, split: str) -> tuple[Path, ...]:
        """Return every file that the tables and questions of a split are read from."""

    def corpus(self, split: str | None = None) -> Corpus:
        """Return the tables of a split; all of them when `split` is None or no table is marked with it."""

    def corpus_split(self, split: str) -> str:
        """Return the split whose tables are searched: "all" where the tables name no split."""

    def questions(self, split: str) -> tuple[Question, ...]:
        """Return the questions of a split in file order."""


@dataclass(frozen=True, slots=True)
class DatasetFolder(CorpusFolder):
    """A folder with a corpus, and the questions asked of it; nothing is read yet.

    Ours: `queries_SPLIT.parquet`. The hub's: `queries/` with shards named `SPLIT-00000-of-00002.parquet`.

    Attributes:
        queries_folder: the folder of shards; None: `queries/`.
    """

    queries_folder: Path | None = None

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits that have questions."""
        own = {file.stem.removeprefix("queries_") for file in self.path.glob("queries_*.parquet")}
        return tuple(sorted(own | set(self._queries())))

    def files(self, split: str) -> tuple[Path, ...]:
        """Return every file that the tables and questions of a split are read from."""
        return (*self.corpus_files(split), *self.queries_files(split))

    @property
    def passages_file(self) -> Path:
        """The texts that cells link to; only datasets such as HybridQA have them."""
        return self.path / "passages.parquet"

    def queries_files(self, split: str) -> tuple[Path, ...]:
        """Return the files of a split's questions. Raises UsageError for an unknown split."""
        if split not in self.splits:
            raise UsageError(f"no split {split!r} in {self.path}{suggest(split, self.splits)}")
        return self._queries().get(split) or (self.path / f"queries_{split}.parquet",)

    def questions(self, split: str) -> tuple[Question, ...]:
        """Return the questions of a split in file order.

        Raises:
            UsageError: there is no such split.
            SourceError: a question lacks its id, text or gold table, or shares its id with another.
        """
        asked: list[Question] = []
        for file in self.queries_files(split):
            require_columns(file, ("query_id", "query", "database_id", "table_id"))
            asked.extend(parse_question(row, file) for row in read_records(file))
        return check_unique_ids(asked, self.path)

    def _queries(self) -> dict[str, tuple[Path, ...]]:
        return find_shards(self.queries_folder or self.path / "queries")


def open_dataset(path: Path) -> DatasetFolder:
    """Open a folder in one of the layouts. Raises SourceError as `open_corpus_folder`."""
    return DatasetFolder(open_corpus_folder(path).path)


def parse_question(row: Mapping[str, Any], file: Path) -> Question:
    """Parse the question in a record. Raises SourceError when its id, text or gold table is missing."""
    gold = row["table_id"]
    tables = tuple(gold) if isinstance(gold, list | tuple) else (gold,)
    if row["query_id"] is None or not str(row["query"] or "").strip() or not tables or None in tables or "" in tables:
        raise SourceError(f"{file}: question {row['query_id']!r} lacks its id, its text or its gold table")
    rest = {key: value for key, value in row.items() if key not in _QUESTION_COLUMNS}
    ids = dict.fromkeys(TableId(str(row["database_id"]), str(name)) for name in tables)
    answer = row.get("answer")
    return Question(str(row["query_id"]), str(row["query"]), tuple(ids), "" if answer is None else str(answer), rest)


def check_unique_ids(questions: Sequence[Question], where: Path) -> tuple[Question, ...]:
    """Return the questions, after checking that ids are unique; raises SourceError when they are not."""
    repeated = [name for name, times in Counter(question.id for question in questions).items() if times > 1]
    if repeated:
        raise SourceError(f"{where}: {len(repeated)} query ids are not unique, the first is {repeated[0]!r}")
    return tuple(questions)


def read_columns(file: Path, names: Sequence[str]) -> dict[str, list[Any]]:
    """Return columns of a Parquet file; raises SourceError when it cannot be read or lacks one."""
    require_columns(file, names)
    return read_present_columns(file, names)
