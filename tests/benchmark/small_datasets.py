"""Small datasets in the contract's layout, and what is compared of run folders."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def no_embedder():
    raise AssertionError("no embedder is needed")


def write_dataset(folder: Path, size: int = 20) -> None:
    folder.mkdir(parents=True)
    tables = [
        {
            "database_id": f"db{number % 2}",
            "table_id": f"t{number}",
            "header": ["name", "value"],
            "rows": [[f"item{number}", str(number)]],
            "context": json.dumps({"title": f"List of item{number}"}),
            "split": "test",
        }
        for number in range(size)
    ]
    questions = [
        {"query_id": f"q{n}", "query": f"what is item{n}?", "database_id": f"db{n % 2}", "table_id": f"t{n}",
         "answer": str(n)}
        for n in range(size)
    ]  # fmt: skip
    pq.write_table(pa.Table.from_pylist(tables), folder / "corpus.parquet")
    pq.write_table(pa.Table.from_pylist(questions), folder / "queries_test.parquet")


def files(folder: Path) -> dict[str, bytes]:
    """The files of a run folder, timings aside."""
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.name != "timings.jsonl"}
