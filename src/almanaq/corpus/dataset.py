"""Dataset folders: their tables as a Corpus, and their questions with the gold tables of each.

A table is `header` and `rows`, or, as the published TARGET datasets have it, `table`: rows with the header first.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from almanaq.corpus.context import description_of, keys_of, section_of, title_of
from almanaq.corpus.schema_places import refuse_private
from almanaq.corpus.table import Corpus, Table, TableId
from almanaq.errors import SourceError, UsageError, suggest

_BATCH = 256  # tables held at once while streaming
_SHARD = re.compile(r"(?P<split>.+)-(?P<number>\d{5})-of-(?P<of>\d{5})(?:-[0-9a-f]{16})?")


@dataclass(frozen=True, slots=True)
class Question:
    """One question of a dataset.

    Attributes:
        id: the dataset's own id, as text.
        gold: the tables that answer it, never empty.
        answer: the gold answer, statement's truth or SQL, as text.
        fields: whatever else the dataset says of the question.
    """

    id: str
    text: str
    gold: tuple[TableId, ...]
    answer: str = ""
    fields: Mapping[str, object] = field(default_factory=dict)


class Dataset(Protocol):
    """Questions with their gold tables, by split, and the tables they are asked of."""

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
        """Return the split whose tables are searched: "all" where the tables are not marked with it."""

    def questions(self, split: str) -> tuple[Question, ...]:
        """Return the questions of a split in file order."""


@dataclass(frozen=True, slots=True)
class DatasetFolder:
    """A folder in one of the two layouts, opened and checked to have a corpus; nothing is read yet.

    Ours: `corpus.parquet`, whose rows may name their split, and `queries_SPLIT.parquet`. That of the hub: `corpus/`
    and `queries/` with shards named `SPLIT-00000-of-00002.parquet`.

    Attributes:
        corpus_folder, queries_folder: where the shards lie; None: in `corpus/` and `queries/`.
    """

    path: Path
    corpus_folder: Path | None = None
    queries_folder: Path | None = None

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits that have questions."""
        own = {file.stem.removeprefix("queries_") for file in self.path.glob("queries_*.parquet")}
        return tuple(sorted(own | set(self._queries())))

    def files(self, split: str) -> tuple[Path, ...]:
        """Return every file that the tables and questions of a split are read from."""
        return (*self._corpus_files(split), *self.queries_files(split))

    @property
    def passages_file(self) -> Path:
        """The texts that cells link; only datasets such as HybridQA have it."""
        return self.path / "passages.parquet"

    def queries_files(self, split: str) -> tuple[Path, ...]:
        """Return the files of a split's questions. Raises UsageError for a split that is not there."""
        if split not in self.splits:
            raise UsageError(f"no split {split!r} in {self.path}{suggest(split, self.splits)}")
        return self._queries().get(split) or (self.path / f"queries_{split}.parquet",)

    def corpus(self, split: str | None = None) -> ParquetCorpus:
        """Return the tables of one split; all of them when `split` is None or the corpus marks no table with it.

        Raises:
            PrivateTablesError: a schema file marks a column as private.
        """
        refuse_private([self.path])
        files = self._corpus_files(split)
        held = _count_splits(files)
        if split is not None and held[split]:
            return ParquetCorpus(files, held[split], split)
        return ParquetCorpus(files, sum(_open(file).metadata.num_rows for file in files))

    def corpus_split(self, split: str) -> str:
        """Return the split whose tables are searched: "all" where the corpus marks no table with it."""
        marked = split in self._corpora() or _count_splits(self._corpus_files(split))[split]
        return split if marked else "all"

    def questions(self, split: str) -> tuple[Question, ...]:
        """Return the questions of a split in file order.

        Raises:
            UsageError: there is no such split.
            SourceError: a question lacks its id, text or gold table, or shares its id with another.
        """
        asked: list[Question] = []
        for file in self.queries_files(split):
            _require(file, ("query_id", "query", "database_id", "table_id"))
            asked.extend(question_of(row, file) for row in _records(file))
        return distinct(asked, self.path)

    def _corpora(self) -> dict[str, tuple[Path, ...]]:
        return shards_in(self.corpus_folder or self.path / "corpus")

    def _queries(self) -> dict[str, tuple[Path, ...]]:
        return shards_in(self.queries_folder or self.path / "queries")

    def _corpus_files(self, split: str | None) -> tuple[Path, ...]:
        """Return the shards of a split, of all splits where it has none, or the one file."""
        one = self.path / "corpus.parquet"
        if one.is_file():
            return (one,)
        shards = self._corpora()
        chosen = shards.get(split) if split is not None else None
        return chosen or tuple(file for files in shards.values() for file in files)


@dataclass(frozen=True, slots=True)
class ParquetCorpus:
    """The tables of Parquet files, streamed; of one split only where `split` is given."""

    files: tuple[Path, ...]
    size: int
    split: str | None = None

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Table]:
        for file in self.files:
            _require(file, ("database_id", "table_id"))
            if "table" not in _open(file).schema_arrow.names:
                _require(file, ("header", "rows"))
            for row in _records(file):
                if self.split is None or row.get("split") == self.split:
                    yield table_of_row(row, file)


def is_dataset_folder(path: Path) -> bool:
    """Tell whether a folder holds a corpus in one of the layouts."""
    return (path / "corpus.parquet").is_file() or bool(shards_in(path / "corpus"))


def open_dataset(path: Path) -> DatasetFolder:
    """Open a folder in one of the layouts.

    Raises:
        SourceError: there is no such folder, or it holds neither `corpus.parquet` nor shards in `corpus/`.
    """
    if not path.is_dir():
        raise SourceError(f"no such folder: {path}")
    if not is_dataset_folder(path):
        raise SourceError(f"{path} is not a dataset folder: it holds no corpus.parquet, and no shards in corpus/")
    return DatasetFolder(path)


def question_of(row: Mapping[str, Any], file: Path) -> Question:
    """Return the question of a record. Raises SourceError when it lacks its id, its text or its gold table."""
    gold = row["table_id"]
    tables = tuple(gold) if isinstance(gold, list | tuple) else (gold,)
    if row["query_id"] is None or not str(row["query"] or "").strip() or not tables or None in tables or "" in tables:
        raise SourceError(f"{file}: question {row['query_id']!r} lacks its id, its text or its gold table")
    rest = {key: value for key, value in row.items() if key not in _QUESTION_COLUMNS}
    ids = dict.fromkeys(TableId(str(row["database_id"]), str(name)) for name in tables)
    answer = row.get("answer")
    return Question(str(row["query_id"]), str(row["query"]), tuple(ids), "" if answer is None else str(answer), rest)


def distinct(questions: Sequence[Question], where: Path) -> tuple[Question, ...]:
    """Return the questions, checked to have an id each of its own; raises SourceError when they do not."""
    repeated = [name for name, times in Counter(question.id for question in questions).items() if times > 1]
    if repeated:
        raise SourceError(f"{where}: {len(repeated)} query ids stand more than once, the first is {repeated[0]!r}")
    return tuple(questions)


def shards_in(folder: Path) -> dict[str, tuple[Path, ...]]:
    """Return the shards of each split, in order of their numbers; raises SourceError where one of them is missing."""
    found: dict[str, dict[int, Path]] = {}
    wanted: dict[str, int] = {}
    for file in sorted(folder.glob("*.parquet")):
        if name := _SHARD.fullmatch(file.stem):
            found.setdefault(name["split"], {})[int(name["number"])] = file
            wanted[name["split"]] = int(name["of"])
    for split, shards in found.items():
        missing = set(range(wanted[split])) - set(shards)
        if missing:
            raise SourceError(f"{folder}: shard {min(missing)} of the {wanted[split]} of {split!r} is not there")
    return {split: tuple(shards[number] for number in sorted(shards)) for split, shards in found.items()}


def _count_splits(files: Sequence[Path]) -> Counter[str]:
    return Counter(name for file in files for name in _columns(file, ("split",)).get("split") or ())


_QUESTION_COLUMNS = frozenset({"query_id", "query", "database_id", "table_id", "answer"})


def table_of_row(row: Mapping[str, Any], file: Path) -> Table:
    """Return the table that a row of a corpus is. Raises SourceError where it is none; `file` is for the message."""
    table_id = TableId(str(row["database_id"]), str(row["table_id"]))
    header, rows = _grid(row)
    ragged = next((number for number, cells in enumerate(rows, 1) if len(cells) != len(header)), None)
    if ragged is not None:
        wide = len(rows[ragged - 1])
        raise SourceError(f"{file}: row {ragged} of table {table_id} has {wide} cells under {len(header)} columns")
    context = _context(row.get("context"), table_id, file)
    return Table(
        table_id,
        header,
        rows,
        title=title_of(context, table_id.table),
        section=section_of(context),
        description=description_of(context, header),
        keys=keys_of(context),
        context=context,
    )


def _grid(row: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Return header and rows; a table without a header gets empty names."""
    header, rows = row.get("header"), row.get("rows")
    if header is None and rows is None:
        grid = row.get("table") or [[]]
        header, rows = grid[0], grid[1:]
    rows = tuple(tuple(map(_cell, cells or ())) for cells in rows or ())
    names = tuple(map(_cell, header or ()))
    return names or ("",) * (len(rows[0]) if rows else 0), rows


def _cell(value: object) -> str:
    return "" if value is None else str(value)


def _context(value: object, table_id: TableId, file: Path) -> Mapping[str, object]:
    if isinstance(value, str) and value.strip():
        try:
            value = json.loads(value)
        except ValueError as error:
            raise SourceError(f"{file}: the context of table {table_id} is not JSON: {error}") from error
    return value if isinstance(value, dict) else {}


def _open(file: Path) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(file)
    except (OSError, pa.ArrowException) as error:
        raise SourceError(f"cannot read {file}: {error}") from error


def _require(file: Path, columns: Sequence[str]) -> None:
    names = _open(file).schema_arrow.names
    missing = [name for name in columns if name not in names]
    if missing:
        raise SourceError(f"{file} lacks the column {missing[0]!r}; it has: {', '.join(names)}")


def read_columns(file: Path, names: Sequence[str]) -> dict[str, list[Any]]:
    """Return columns of a Parquet file; raises SourceError when it cannot be read or lacks one."""
    _require(file, names)
    return _columns(file, names)


def _columns(file: Path, names: Sequence[str]) -> dict[str, list[Any]]:
    parquet = _open(file)
    present = [name for name in names if name in parquet.schema_arrow.names]
    return dict(parquet.read(columns=present).to_pydict()) if present else {}


def _records(file: Path) -> Iterator[dict[str, Any]]:
    parquet = _open(file)
    unused = {"links"}  # per-cell links are large, and no table's text
    columns = [name for name in parquet.schema_arrow.names if name not in unused]
    for batch in parquet.iter_batches(batch_size=_BATCH, columns=columns):
        yield from batch.to_pylist()
