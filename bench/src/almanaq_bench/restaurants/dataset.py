"""The restaurants task's data as a Dataset: the bundled sample with our questions, or a folder in the same layout."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from almanaq.corpus.table import Table, TableId
from almanaq.engines.files.load import open_files
from almanaq.engines.protocols import Database
from almanaq.errors import UsageError, suggest
from almanaq.suql.catalog.schema_file import RelationSchema, Schema
from almanaq_bench.question_sets import Question
from almanaq_bench.restaurants.gold import Attributes, Restaurants, read_attributes
from almanaq_bench.restaurants.wanted import Conversation, half_of, read_conversations

TABLE = TableId("restaurants", "restaurants")
HALVES = ("dev", "held-out")
_BUNDLED = Path(__file__).parent / "data"
_NAMES = ("single-turn", "conversations")
_ROWS = tuple(f"restaurants{suffix}" for suffix in (".parquet", ".jsonl", ".csv"))
_PUBLISHED = "restaurants_single_turn_SUQL.csv"
"""The questions of the paper, as its authors published them."""


@dataclass(frozen=True, slots=True)
class OneTable:
    """The corpus of the task: there is nothing to find."""

    table: Table

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[Table]:
        yield self.table


@dataclass(frozen=True)
class RestaurantsData:
    """Restaurants, what is true of them, and conversations about them.

    Splits are `single-turn` and `conversations`, each also as its halves `-dev` and `-held-out`: every second one by
    the SHA-256 of a question, or of a conversation's name.

    Attributes:
        path: the folder of `single-turn.jsonl` (or the paper's own table of questions) and `conversations.jsonl`,
            either or both.
        restaurants_file: a file of rows with a column `id`, beside which a schema file may lie; `truth_file` is
            JSON Lines, of the sample a Parquet file.
        sample: whether the restaurants are those of the bundled sample.
    """

    path: Path
    restaurants_file: Path
    truth_file: Path
    sample: bool = False

    def source(self) -> str | Database:
        """Return what `almanaq.connect` opens; without a schema file, the column that identifies a row is its key."""
        if self.sample:
            return "sample:restaurants"
        if self._schema_file.is_file():
            return str(self.restaurants_file)
        key = RelationSchema(key=(self.restaurants.key,))
        return open_files(self.restaurants_file, schema=Schema({"restaurants": key}))

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits whose file is here."""
        here = [name for name in _NAMES if _turns_file(self.path, name) is not None]
        return tuple(split for name in here for split in (name, *(f"{name}-{half}" for half in HALVES)))

    def files(self, split: str) -> tuple[Path, ...]:
        """Return every file that a split is read from."""
        beside = (self._schema_file, self.truth_file)
        return (self.restaurants_file, *(file for file in beside if file.is_file()), self._file(split))

    def corpus(self, split: str | None = None) -> OneTable:  # noqa: ARG002
        """Return the one table, cells as text."""
        table = self.restaurants.table
        rows = tuple(tuple(cell_text(value) for value in row.values()) for row in table.to_pylist())
        return OneTable(Table(TABLE, tuple(table.column_names), rows, title="restaurants"))

    def corpus_split(self, split: str) -> str:  # noqa: ARG002
        """Return "all": every split asks the same table."""
        return "all"

    def questions(self, split: str) -> tuple[Question, ...]:
        """Return a question for each conversation: what its turns say, and for a single turn what it needs."""
        return tuple(
            Question(
                each.id,
                "\n".join(turn.say for turn in each.turns),
                (TABLE,),
                fields={"difficulty": each.turns[0].needs} if len(each.turns) == 1 else {},
            )
            for each in self.conversations(split)
        )

    def conversations(self, split: str) -> tuple[Conversation, ...]:
        """Return the conversations of a split. Raises UsageError for a split that is not there."""
        found = read_conversations(self._file(split))
        half = next((half for half in HALVES if split.endswith(f"-{half}")), "")
        return half_of(found, half == "held-out") if half else found

    @cached_property
    def restaurants(self) -> Restaurants:
        """The rows with what is true of them."""
        if self.sample:
            from almanaq_bench.sample.truth import load_truth

            attributes: Attributes = dict(load_truth().values.items())
            return Restaurants(self.restaurants_file, attributes)
        return Restaurants(self.restaurants_file, read_attributes(self.truth_file))

    @property
    def _schema_file(self) -> Path:
        return Path(f"{self.restaurants_file}.almanaq.toml")

    def _file(self, split: str) -> Path:
        if split not in self.splits:
            raise UsageError(f"no split {split!r} in {self.path}{suggest(split, self.splits)}")
        file = _turns_file(self.path, next(name for name in _NAMES if split.startswith(name)))
        assert file is not None
        return file


def load_bundled_restaurants() -> RestaurantsData:
    """Return the bundled sample with our questions and conversations."""
    from almanaq.sample import path
    from almanaq_bench.sample.truth import TRUTH

    return RestaurantsData(_BUNDLED, path("restaurants"), TRUTH, sample=True)


def is_restaurants_folder(folder: Path) -> bool:
    """Tell whether a folder holds restaurants and turns about them."""
    return _rows_file(folder) is not None and any(_turns_file(folder, name) is not None for name in _NAMES)


def open_restaurants(folder: Path) -> RestaurantsData:
    """Open a folder of `restaurants.parquet` (or .jsonl, .csv), files of turns, and `truth.jsonl`."""
    return RestaurantsData(folder, _rows_file(folder) or folder / _ROWS[0], folder / "truth.jsonl")


def _rows_file(folder: Path) -> Path | None:
    return next((folder / name for name in _ROWS if (folder / name).is_file()), None)


def _turns_file(folder: Path, name: str) -> Path | None:
    """Return the file of the turns of a name; None where there is none."""
    names = (f"{name}.jsonl", *((_PUBLISHED,) if name == "single-turn" else ()))
    return next((folder / each for each in names if (folder / each).is_file()), None)


def cell_text(value: object) -> str:
    """Return a cell as text: the values of a list, or of a mapping, between commas; "" for NULL."""
    if value is None:
        return ""
    if isinstance(value, dict):
        return ", ".join(f"{name}: {cell_text(each)}" for name, each in value.items())
    return ", ".join(map(cell_text, value)) if isinstance(value, list | tuple) else str(value)
