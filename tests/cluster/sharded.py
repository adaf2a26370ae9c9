"""An index that a cluster makes in shards beside one that is made here: time, size, and how long a question takes.

`python -m tests.cluster.sharded --tables 1000000 --out tests/cluster/sharded.json` starts a cluster and records both,
for one size after another where several are named.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from almanaq.corpus.table import Table
from almanaq.retrieval.stored import StoredIndex, build_index, open_index
from almanaq_bench.cluster_index import index_on_cluster
from almanaq_bench.question_sets import DatasetFolder

from .processes import Cluster, running

sys.path.append(str(Path(__file__).parents[2] / "benchmarks" / "retrieval"))
from generate import SyntheticCorpus

SHARDS = 8
FIELDS = "title,section,header,cells"
SAME, TIMED = 100, 500
"""Questions whose best hundred tables are compared, and questions that are timed."""
_PART = 20_000
_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("database_id", "table_id", "context")),
        ("header", pa.list_(pa.string())),
        ("rows", pa.list_(pa.list_(pa.string()))),
    ]
)


def write_corpus(folder: Path, tables: int) -> Path:
    """Write the synthetic corpus of so many tables as a dataset."""
    folder.mkdir(parents=True, exist_ok=True)
    with pq.ParquetWriter(folder / "corpus.parquet", _SCHEMA) as writer:
        for part in _parts(SyntheticCorpus(tables), _PART):
            writer.write_table(pa.Table.from_pylist([_row(table) for table in part], _SCHEMA))
    return folder


def _parts(corpus: SyntheticCorpus, size: int) -> Iterator[Sequence[Table]]:
    tables = iter(corpus)
    while part := list(islice(tables, size)):
        yield part


def _row(table: Table) -> dict[str, Any]:
    context = json.dumps({"title": table.title, "section": table.section})
    named = {"database_id": table.id.database, "table_id": table.id.table, "context": context}
    return named | {"header": table.header, "rows": table.rows}


def questions(tables: int, count: int) -> list[str]:
    """Return questions that are planted in the synthetic corpus."""
    return [question for question, _ in SyntheticCorpus(tables).questions(count)]


def best(index: StoredIndex, question: str) -> list[tuple[float, str]]:
    """Return the score and the name of the hundred best tables."""
    return [(score, f"{named.id.database}/{named.id.table}") for named, score in index.best(question, 100)]


def same(one: Path, other: Path, asked: Sequence[str]) -> int:
    """Return for how many questions two indexes give the same hundred tables in the same order.

    Raises AssertionError where a score differs, or a table whose score is not the last one's: which tables of one
    score come first, and which of them are cut off, is up to the order in which an index holds them.
    """
    first, second = open_index(one), open_index(other)
    identical = 0
    for question in asked:
        here, there = best(first, question), best(second, question)
        assert [score for score, _ in here] == [score for score, _ in there], question
        last = here[-1][0] if len(here) == 100 else -1.0
        assert {pair for pair in here if pair[0] > last} == {pair for pair in there if pair[0] > last}, question
        identical += here == there
    return identical


def measured(cluster: Cluster, folder: Path, tables: int) -> dict[str, Any]:
    """Make both indexes of so many tables; give what they took, and check that they find the same."""
    corpus = DatasetFolder(write_corpus(folder / "corpus", tables)).corpus()
    started, used = time.perf_counter(), time.process_time()
    build_index(corpus, folder / "one", FIELDS.split(","))
    here, cpu = time.perf_counter() - started, time.process_time() - used
    started, used = time.perf_counter(), cluster.cpu_seconds("worker")
    index_on_cluster(corpus, folder / "shards", FIELDS, url=cluster.url, shards=SHARDS)
    there, cluster_cpu = time.perf_counter() - started, cluster.cpu_seconds("worker") - used
    asked = questions(tables, SAME)
    return {
        "tables": tables,
        "corpus_megabytes": _megabytes(folder / "corpus"),
        "load_average": round(os.getloadavg()[0], 1),
        "here": {"seconds": round(here, 1), "cpu_seconds": round(cpu, 1), **_asked(folder / "one", tables)},
        "cluster": {
            "shards": SHARDS,
            "seconds": round(there, 1),
            "cpu_seconds": round(cluster_cpu, 1),
            **_asked(folder / "shards", tables),
        },
        "questions_of_the_same_top_100": len(asked),
        "of_the_same_order_too": same(folder / "one", folder / "shards", asked),
    }


def _asked(folder: Path, tables: int) -> dict[str, float]:
    """Return the size of an index, and how long its questions take when it is open; some are asked before."""
    index, took, worked = open_index(folder), [], []
    for question in questions(tables, 20):
        index.best(question, 10)
    for question in questions(tables, TIMED):
        started, used = time.perf_counter(), time.process_time()
        index.best(question, 10)
        took.append(1000 * (time.perf_counter() - started))
        worked.append(1000 * (time.process_time() - used))
    half, most = np.percentile(took, [50, 95])
    cpu = float(np.percentile(worked, 95))
    timed = {"p50_ms": round(float(half), 2), "p95_ms": round(float(most), 2), "cpu_p95_ms": round(cpu, 2)}
    return {"megabytes": _megabytes(folder), **timed}


def _megabytes(folder: Path) -> float:
    return round(sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6, 1)


def main() -> int:
    """Measure, and write the record."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.sharded", description=__doc__)
    parser.add_argument("--tables", type=int, action="append", help="repeatable; left out: 100,000")
    parser.add_argument("--out", type=Path, metavar="FILE", help="keep each size's record here, in place of its last")
    given = parser.parse_args()
    for tables in given.tables or [100_000]:
        with tempfile.TemporaryDirectory() as folder, running(Path(folder) / "cluster") as cluster:
            found = measured(cluster, Path(folder), tables)
        print(json.dumps(found, indent=1), flush=True)
        if given.out:
            keep(given.out, found)
    return 0


def keep(file: Path, found: dict[str, Any]) -> None:
    """Put a run into a file of records, in place of that of the same size."""
    kept = json.loads(file.read_text("utf-8"))["runs"] if file.exists() else []
    runs = sorted([*(run for run in kept if run["tables"] != found["tables"]), found], key=lambda run: run["tables"])
    command = "python -m tests.cluster.sharded --tables N --out tests/cluster/sharded.json"
    file.write_text(json.dumps({"command": command, "runs": runs}, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    raise SystemExit(main())
