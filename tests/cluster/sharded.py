"""An index that a cluster makes in shards beside one that is made here: time, size, and how long a question takes.

`python -m tests.cluster.sharded --tables 100000 --out tests/cluster/sharded.json` starts a cluster and records both.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from almanaq.cluster_index import index_on_cluster
from almanaq.corpus.dataset import DatasetFolder
from almanaq.retrieval.stored import build_index, open_index

from .processes import Cluster, running

SHARDS = 8
FIELDS = "title,section,header,cells"
WORDS = "ferry island harbour price season year winner team city river bridge length opened owner goals rank".split()
QUESTIONS = (
    "ferry prices by season",
    "bridge length 17",
    "winner team year 5",
    "harbour owner",
    "goals rank 1008 city",
)
_TIMES = 20


def write_corpus(folder: Path, tables: int) -> Path:
    """Write a dataset of small tables whose words follow a skewed draw."""
    folder.mkdir(parents=True, exist_ok=True)
    rows: dict[str, list[Any]] = {"database_id": [], "table_id": [], "header": [], "rows": [], "context": []}
    for i in range(tables):
        words = [WORDS[(i * k + k * k) % (3 + (i + k) % 14)] for k in range(1, 9)]
        rows["database_id"].append(f"db{i % 50}")
        rows["table_id"].append(f"t{i}")
        rows["header"].append(words[:2])
        rows["rows"].append([[f"{words[2]} {i % 97}", words[3]], [words[4], f"{words[5]} {i % 1009}"]])
        rows["context"].append(json.dumps({"title": f"{words[6]} {words[7]} {i % 31}"}))
    pq.write_table(pa.table(rows), folder / "corpus.parquet", row_group_size=max(1, tables // 8))
    return folder


def best(folder: Path, question: str) -> list[tuple[float, str]]:
    """Return the score and the name of the hundred best tables."""
    found = open_index(folder).best(question, 100)
    return [(score, f"{named.id.database}/{named.id.table}") for named, score in found]


def same(one: Path, other: Path) -> None:
    """Raise AssertionError unless two indexes give the same hundred tables with the same scores."""
    for question in QUESTIONS:
        here, there = best(one, question), best(other, question)
        assert [score for score, _ in here] == [score for score, _ in there]
        last = here[-1][0]  # tables of equal score come in the order of the index, and some of the last are cut off
        assert {pair for pair in here if pair[0] > last} == {pair for pair in there if pair[0] > last}


def measured(cluster: Cluster, folder: Path, tables: int) -> dict[str, Any]:
    """Make both indexes of so many tables; give what they took, and check that they find the same."""
    corpus = DatasetFolder(write_corpus(folder / "corpus", tables)).corpus()
    started, used = time.perf_counter(), os.times()
    build_index(corpus, folder / "one", FIELDS.split(","))
    here, cpu = time.perf_counter() - started, sum(os.times()[:2]) - sum(used[:2])
    started = time.perf_counter()
    index_on_cluster(corpus, folder / "shards", FIELDS, url=cluster.url, shards=SHARDS)
    there = time.perf_counter() - started
    same(folder / "one", folder / "shards")
    return {
        "tables": tables,
        "load_average": round(os.getloadavg()[0], 1),
        "here": {"seconds": round(here, 1), "cpu_seconds": round(cpu, 1), **_asked(folder / "one")},
        "cluster": {"shards": SHARDS, "seconds": round(there, 1), **_asked(folder / "shards")},
        "top_100_identical_for": len(QUESTIONS),
    }


def _asked(folder: Path) -> dict[str, float]:
    """Return the size of an index, and how long its questions take when it is open."""
    index, took = open_index(folder), []
    for _ in range(_TIMES):
        for question in QUESTIONS:
            started = time.perf_counter()
            index.best(question, 10)
            took.append(1000 * (time.perf_counter() - started))
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    half, most = np.percentile(took, [50, 95])
    return {"megabytes": round(size / 1e6, 1), "p50_ms": round(float(half), 2), "p95_ms": round(float(most), 2)}


def main() -> int:
    """Measure, and write the record."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.sharded", description=__doc__)
    parser.add_argument("--tables", type=int, default=100_000)
    parser.add_argument("--out", type=Path, metavar="FILE")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, running(Path(folder) / "cluster") as cluster:
        found = measured(cluster, Path(folder), given.tables)
    print(json.dumps(found, indent=1))
    if given.out:
        given.out.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
