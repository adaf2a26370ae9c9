"""Dataset folders: `corpus.parquet` as a Corpus, `queries_SPLIT.parquet` as questions with their gold tables.

The layout stands in `docs/`; the published TARGET layout (`table` = rows with the header first) is read as well.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from almanaq.corpus.context import description_of, keys_of, section_of, title_of
from almanaq.corpus.table import Table, TableId
from almanaq.errors import SourceError, UsageError, suggest

_BATCH = 256  # tables held at once while streaming


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


@dataclass(frozen=True, slots=True)
class DatasetFolder:
    """A folder in the dataset layout, opened and checked to have a corpus; nothing is read yet."""

    path: Path

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits that have questions."""
        return tuple(sorted(file.stem.removeprefix("queries_") for file in self.path.glob("queries_*.parquet")))

    @property
    def corpus_file(self) -> Path:
        return self.path / "corpus.parquet"

    def queries_file(self, split: str) -> Path:
        """Give the file of a split's questions. Raises UsageError for a split that is not there."""
        if split not in self.splits:
            raise UsageError(f"no split {split!r} in {self.path}{suggest(split, self.splits)}")
        return self.path / f"queries_{split}.parquet"

    def corpus(self, split: str | None = None) -> ParquetCorpus:
        """Give the tables of one split; all of them when `split` is None or the corpus marks no table with it."""
        splits = Counter(_columns(self.corpus_file, ("split",)).get("split") or ())
        if split is not None and splits[split]:
            return ParquetCorpus(self.corpus_file, splits[split], split)
        return ParquetCorpus(self.corpus_file, _open(self.corpus_file).metadata.num_rows)

    def questions(self, split: str) -> tuple[Question, ...]:
        """Give the questions of a split in file order.

        Raises:
            UsageError: there is no such split.
            SourceError: a question lacks its id, text or gold table, or shares its id with another.
        """
        file = self.queries_file(split)
        _require(file, ("query_id", "query", "database_id", "table_id"))
        asked = tuple(_question(row, file) for row in _records(file))
        repeated = [name for name, times in Counter(question.id for question in asked).items() if times > 1]
        if repeated:
            raise SourceError(f"{file}: {len(repeated)} query ids stand more than once, the first is {repeated[0]!r}")
        return asked


@dataclass(frozen=True, slots=True)
class ParquetCorpus:
    """The tables of one Parquet file, streamed; of one split only where `split` is given."""

    file: Path
    size: int
    split: str | None = None

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Table]:
        _require(self.file, ("database_id", "table_id"))
        if "table" not in _open(self.file).schema_arrow.names:
            _require(self.file, ("header", "rows"))
        for row in _records(self.file):
            if self.split is None or row.get("split") == self.split:
                yield _table(row, self.file)


def open_dataset(path: Path) -> DatasetFolder:
    """Open a folder in the dataset layout.

    Raises:
        SourceError: there is no such folder, or it holds no `corpus.parquet`.
    """
    if not path.is_dir():
        raise SourceError(f"no such folder: {path}")
    folder = DatasetFolder(path)
    if not folder.corpus_file.is_file():
        raise SourceError(f"{path} is not a dataset folder: it holds no corpus.parquet")
    return folder


def _question(row: Mapping[str, Any], file: Path) -> Question:
    gold = row["table_id"]
    tables = tuple(gold) if isinstance(gold, list) else (gold,)
    if row["query_id"] is None or not (row["query"] or "").strip() or not tables or None in tables:
        raise SourceError(f"{file}: question {row['query_id']!r} lacks its id, its text or its gold table")
    rest = {key: value for key, value in row.items() if key not in _QUESTION_COLUMNS}
    ids = dict.fromkeys(TableId(str(row["database_id"]), str(name)) for name in tables)
    answer = row.get("answer")
    return Question(str(row["query_id"]), row["query"], tuple(ids), "" if answer is None else str(answer), rest)


_QUESTION_COLUMNS = frozenset({"query_id", "query", "database_id", "table_id", "answer"})


def _table(row: Mapping[str, Any], file: Path) -> Table:
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
    """Give header and rows; a table without a header gets empty names."""
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
    """Give columns of a Parquet file; raises SourceError when it cannot be read or lacks one."""
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
