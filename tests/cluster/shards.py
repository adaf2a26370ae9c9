"""An index that a cluster makes in shards finds what one that is made here finds."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from almanaq.cluster_index import index_on_cluster
from almanaq.corpus.dataset import DatasetFolder
from almanaq.errors import AlmanaqError
from almanaq.retrieval.stored import build_index, open_index

from .processes import Cluster

TABLES = int(os.environ.get("ALMANAQ_CLUSTER_INDEXED", "2000"))
FIELDS = "title,section,header,cells"
WORDS = "ferry island harbour price season year winner team city river bridge length opened owner goals rank".split()


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


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("corpus"), TABLES)


QUESTIONS = (
    "ferry prices by season",
    "bridge length 17",
    "winner team year 5",
    "harbour owner",
    "goals rank 1008 city",
)


def best(folder: Path, question: str) -> list[tuple[float, str]]:
    found = open_index(folder).best(question, 100)
    return [(score, f"{named.id.database}/{named.id.table}") for named, score in found]


def test_eight_shards_find_what_one_index_finds(cluster: Cluster, corpus: Path, tmp_path: Path) -> None:
    tables = DatasetFolder(corpus).corpus()
    started = time.perf_counter()
    build_index(tables, tmp_path / "one", FIELDS.split(","))
    here = time.perf_counter() - started
    made = index_on_cluster(tables, tmp_path / "eight", FIELDS, url=cluster.url, shards=8)
    there = time.perf_counter() - started - here
    assert len(made) == TABLES
    assert len(made.segments) == 8
    print(f"{TABLES} tables: {here:.1f} s here, {there:.1f} s on the cluster")
    for question in QUESTIONS:
        one, eight = best(tmp_path / "one", question), best(tmp_path / "eight", question)
        assert [score for score, _ in one] == [score for score, _ in eight]
        last = one[-1][0]  # tables of equal score come in the order of the index, and some of the last are cut off
        assert {pair for pair in one if pair[0] > last} == {pair for pair in eight if pair[0] > last}


def test_a_build_that_is_killed_leaves_no_visible_segment(cluster: Cluster, corpus: Path, tmp_path: Path) -> None:
    tables = DatasetFolder(corpus).corpus()
    out = tmp_path / "killed"
    build_index(tables, out, FIELDS.split(","))
    before = best(out, QUESTIONS[0])
    kept = {path.name for path in out.glob("segment-*")}

    def kill() -> None:
        until = time.monotonic() + 120
        while time.monotonic() < until and not list(out.glob(".writing-*")):
            time.sleep(0.005)
        cluster.kill("connect")

    killing = threading.Thread(target=kill)
    killing.start()
    try:
        with pytest.raises(AlmanaqError):
            index_on_cluster(tables, out, FIELDS, url=cluster.url, shards=8)
        killing.join()
    finally:
        cluster.start_connect()
    assert best(out, QUESTIONS[0]) == before
    assert {entry["name"] for entry in json.loads((out / "manifest.json").read_text("utf-8"))["segments"]} == kept
    made = index_on_cluster(tables, out, FIELDS, url=cluster.url, shards=8)
    assert len(list(out.glob("segment-*"))) == len(made.segments) == 8
    assert not list(out.glob(".writing-*"))
