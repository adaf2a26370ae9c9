"""Datasets by their configuration: tables and questions, read when `load` is called."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from almanaq.corpus.table import Table
from almanaq.errors import UsageError
from almanaq.models.private_files import default_cache_folder
from almanaq_bench.cards import DATASETS
from almanaq_bench.data import find_dataset
from almanaq_bench.retrievers.paper_retrievers import NESTED, in_form, table_entry, table_form
from almanaq_bench.target.data_models import (
    DatasetConfigDataModel,
    GenericDatasetConfigDataModel,
    HFDatasetConfigDataModel,
    NeedleInHaystackDatasetConfigDataModel,
    Text2SQLDatasetConfigDataModel,
)

DEFAULT_FETAQA_DATASET_CONFIG = HFDatasetConfigDataModel(
    dataset_name="fetaqa",
    hf_corpus_dataset_path="target-benchmark/fetaqa-corpus",
    hf_queries_dataset_path="target-benchmark/fetaqa-queries",
    query_type="Table Question Answering",
)
DEFAULT_OTTQA_DATASET_CONFIG = HFDatasetConfigDataModel(
    dataset_name="ottqa",
    split="validation",
    hf_corpus_dataset_path="target-benchmark/ottqa-corpus",
    hf_queries_dataset_path="target-benchmark/ottqa-queries",
    query_type="Table Question Answering",
)
DEFAULT_TABFACT_DATASET_CONFIG = HFDatasetConfigDataModel(
    dataset_name="tabfact",
    hf_corpus_dataset_path="target-benchmark/tabfact-corpus",
    hf_queries_dataset_path="target-benchmark/tabfact-queries",
    query_type="Fact Verification",
)
DEFAULT_SPIDER_DATASET_CONFIG = Text2SQLDatasetConfigDataModel(
    dataset_name="spider",
    hf_corpus_dataset_path="target-benchmark/spider-corpus",
    hf_queries_dataset_path="target-benchmark/spider-queries",
)
DEFAULT_BIRD_VALIDATION_DATASET_CONFIG = Text2SQLDatasetConfigDataModel(
    dataset_name="bird-validation",
    split="validation",
    hf_corpus_dataset_path="target-benchmark/bird-corpus-validation",
    hf_queries_dataset_path="target-benchmark/bird-queries-validation",
)
DEFAULT_INFAGENTDA_DATASET_CONFIG = HFDatasetConfigDataModel(
    dataset_name="infiagentda",
    hf_corpus_dataset_path="target-benchmark/infiagentda-corpus",
    hf_queries_dataset_path="target-benchmark/infiagentda-queries",
    query_type="Other",
)
DEFAULT_GITTABLES_DATASET_CONFIG = NeedleInHaystackDatasetConfigDataModel(
    dataset_name="gittables", split="train", hf_corpus_dataset_path="target-benchmark/gittables-corpus"
)

_SPIDER_TEST = DEFAULT_SPIDER_DATASET_CONFIG.model_copy(update={"dataset_name": "spider-test"})


def _by_name(*configs: DatasetConfigDataModel) -> dict[str, DatasetConfigDataModel]:
    return {config.dataset_name: config for config in configs}


FACT_VER_DATASETS = _by_name(DEFAULT_TABFACT_DATASET_CONFIG)
QUESTION_ANSWERING_DATASETS = _by_name(DEFAULT_FETAQA_DATASET_CONFIG, DEFAULT_OTTQA_DATASET_CONFIG)
TEXT_2_SQL_DATASETS = _by_name(DEFAULT_SPIDER_DATASET_CONFIG, DEFAULT_BIRD_VALIDATION_DATASET_CONFIG)
TABLE_RETRIEVAL_DATASETS = FACT_VER_DATASETS | TEXT_2_SQL_DATASETS | QUESTION_ANSWERING_DATASETS
NEEDLE_IN_HAYSTACK_DATASETS = _by_name(DEFAULT_GITTABLES_DATASET_CONFIG)

OTHER_NAMES = {
    "spider-test": _SPIDER_TEST,
    "spider-validation": _SPIDER_TEST.model_copy(update={"dataset_name": "spider-validation", "split": "validation"}),
    "bird": DEFAULT_BIRD_VALIDATION_DATASET_CONFIG.model_copy(update={"dataset_name": "bird"}),
}
"""Names of the same datasets in other releases of the published package, and in ours."""

SPLITS = ("test", "train", "validation")

_NAMES = {"bird-validation": "bird", "spider-test": "spider", "spider-validation": "spider"}
"""Names that releases of the published package gave to datasets, and ours."""


def default_data_folder() -> Path:
    """Return the folder of the datasets: ALMANAQ_DATA, else `datasets` in the cache folder."""
    named = os.environ.get("ALMANAQ_DATA")
    return Path(named) if named else default_cache_folder() / "datasets"


def dataset_path(config: DatasetConfigDataModel, data_dir: Path) -> Path:
    """Return where a dataset lies: the folder that its configuration names, or one in the data folder.

    The name of a repository on the hub stands for the dataset that is published there.
    """
    if isinstance(config, GenericDatasetConfigDataModel):
        return Path(config.dataset_path)
    if isinstance(config, HFDatasetConfigDataModel):
        for card in DATASETS:
            if card.source is not None and card.source.corpus == config.hf_corpus_dataset_path:
                return data_dir / card.name
    name = config.dataset_name
    return data_dir / _NAMES.get(name, name)


class Rows(Sequence[dict[str, Any]]):
    """Rows by their number, and columns by their name."""

    def __init__(self, rows: Iterable[dict[str, Any]]) -> None:
        self._rows = list(rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            return [row[key] for row in self._rows]
        return Rows(self._rows[key]) if isinstance(key, slice) else self._rows[key]

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        return len(self._rows)

    @property
    def column_names(self) -> list[str]:
        """The columns' names."""
        return list(self._rows[0]) if self._rows else []

    def select(self, indices: Iterable[int]) -> Rows:
        """Return the rows of these numbers."""
        return Rows(self._rows[index] for index in indices)

    def iter(self, batch_size: int) -> Iterator[dict[str, list[Any]]]:
        """Yield the rows in batches: a list for each column."""
        for start in range(0, len(self._rows), batch_size):
            rows = self._rows[start : start + batch_size]
            yield {name: [row[name] for row in rows] for name in rows[0]}


class AbsDatasetLoader:
    """Loads one split of a dataset.

    Attributes:
        corpus: the tables, None before `load`: rows with `database_id`, `table_id`, `table` and `context`.
        queries: the questions, None before `load`: `query_id`, `query`, `answer`, `database_id`, `table_id`.

    Raises:
        UsageError: there is no such split.
    """

    def __init__(
        self, dataset_name: str, split: str = "test", data_directory: str | None = None, query_type: str | None = None,
        num_tables: int | None = None, *, path: Path | None = None, **aux: Any,
    ) -> None:  # fmt: skip
        if split not in SPLITS:
            raise UsageError(f"split {split!r} is none of {', '.join(SPLITS)}")
        self.dataset_name, self.split, self.query_type = dataset_name, split, query_type
        self.data_directory, self.num_tables, self.aux = data_directory, num_tables, aux
        self.corpus: Rows | None = None
        self.queries: Rows | None = None
        self.path = path or default_data_folder() / _NAMES.get(dataset_name, dataset_name)

    def load(self) -> None:
        """Read tables and questions; once read they are kept. Raises UsageError, SourceError where they are not."""
        if self.corpus is None:
            dataset = find_dataset(self.path.parent, self.path.stem if self.path.is_file() else self.path.name)
            tables: Iterable[Table] = dataset.corpus(self.split)
            self.corpus = Rows(table_entry(table, NESTED) for table in islice(tables, self.num_tables))
            self.queries = Rows(
                {
                    "query_id": question.id, "query": question.text, "answer": question.answer,
                    "database_id": question.gold[0].database, "table_id": [gold.table for gold in question.gold],
                }
                for question in dataset.questions(self.split)
            )  # fmt: skip

    def get_corpus_iter(self, output_format: str = NESTED, batch_size: int = 1) -> Iterator[dict[str, list[Any]]]:
        """Yield the tables in batches, in a form: "nested array", "dictionary" or "dataframe"."""
        form = table_form(output_format)
        for batch in self.get_corpus().iter(batch_size):
            yield batch | {"table": [_in_form(rows, form) for rows in batch["table"]]}

    convert_corpus_table_to = get_corpus_iter

    def get_queries_for_task(self, batch_size: int = 64, start_idx: int = 0) -> Iterator[dict[str, list[Any]]]:
        """Return the questions in batches."""
        return self.get_queries()[start_idx:].iter(batch_size)  # type: ignore[no-any-return]

    def get_table_id_to_table(self) -> dict[tuple[str, str], list[list[str]]]:
        """Return each table's rows, the header first, by (database_id, table_id)."""
        return {(row["database_id"], row["table_id"]): row["table"] for row in self.get_corpus()}

    def get_dataset_name(self) -> str:
        """Return the dataset's name."""
        return self.dataset_name

    def get_corpus(self) -> Rows:
        """Return the tables. Raises RuntimeError before `load`."""
        return _require_loaded(self.corpus, "tables", self.dataset_name)

    def get_queries(self) -> Rows:
        """Return the questions. Raises RuntimeError before `load`."""
        return _require_loaded(self.queries, "questions", self.dataset_name)

    def get_corpus_size(self) -> int:
        """Return how many tables there are."""
        return len(self.get_corpus())

    def get_queries_size(self) -> int:
        """Return how many questions there are."""
        return len(self.get_queries())

    def get_corpus_header(self) -> list[str]:
        """Return the names of the tables' columns: `database_id` and so on."""
        return self.get_corpus().column_names

    def get_queries_header(self) -> list[str]:
        """Return the names of the questions' columns."""
        return self.get_queries().column_names

    def persist_corpus_to(self, format: str, path: str | None = None) -> None:
        """Write each table into a file of the folder, under its split: "csv" or "json" (a dictionary for each row)."""
        if format not in ("csv", "json"):
            raise UsageError(f"format {format!r} is neither csv nor json")
        if not (folder := path or self.data_directory):
            raise UsageError("no folder to write to: name one, or data_directory")
        for row in self.get_corpus():
            file = Path(folder, self.split, str(row["table_id"])).with_suffix(f".{format}")
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("w", encoding="utf-8", newline="") as out:
                if format == "csv":
                    csv.writer(out).writerows(row["table"])
                else:
                    json.dump(_in_form(row["table"], "dictionary"), out, ensure_ascii=False, indent=1)


class HFDatasetLoader(AbsDatasetLoader):
    """Loads a dataset of the Hugging Face hub from the data folder that it was fetched into."""


class GenericDatasetLoader(AbsDatasetLoader):
    """Loads a dataset from a folder, or by a card's file."""


class Text2SQLDatasetLoader(HFDatasetLoader):
    """Loads a dataset whose answers are SQL queries."""


class NeedleInHaystackDataLoader(HFDatasetLoader):
    """Loads tables that nobody asks about."""

    def load(self) -> None:
        """Read the tables."""
        if self.corpus is None:
            dataset = find_dataset(self.path.parent, self.path.name)
            self.corpus = Rows(table_entry(table, NESTED) for table in dataset.corpus())
            self.queries = Rows([])


def make_loader(config: DatasetConfigDataModel, split: str, data_dir: Path) -> AbsDatasetLoader:
    """Return the loader for a configuration."""
    kinds: list[tuple[type[DatasetConfigDataModel], type[AbsDatasetLoader]]] = [
        (NeedleInHaystackDatasetConfigDataModel, NeedleInHaystackDataLoader),
        (Text2SQLDatasetConfigDataModel, Text2SQLDatasetLoader),
        (HFDatasetConfigDataModel, HFDatasetLoader),
        (DatasetConfigDataModel, GenericDatasetLoader),
    ]
    kind = next(loader for model, loader in kinds if isinstance(config, model))
    settings = config.model_dump(include={"dataset_name", "data_directory", "query_type"})
    return kind(**settings, split=split, path=dataset_path(config, data_dir), **(config.aux or {}))


def _in_form(rows: list[list[str]], form: str) -> Any:
    return in_form(rows[0], rows[1:], form)


def _require_loaded(rows: Rows | None, what: str, dataset: str) -> Rows:
    if rows is None:
        raise RuntimeError(f"the {what} of {dataset!r} have not been loaded: call load() first")
    return rows
