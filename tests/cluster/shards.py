"""An index that a cluster makes in shards finds what one that is made here finds."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from almanaq.errors import AlmanaqError, UsageError
from almanaq.models.embedders.vector_store import VectorStore
from almanaq.models.model_names import open_embedder
from almanaq.retrieval.segments import Precision
from almanaq.retrieval.stored import build_index, open_index
from almanaq.retrieval.stored_search import StoredHybrid, recall_of_codes
from almanaq_bench.cluster_index import index_on_cluster
from almanaq_bench.question_sets import DatasetFolder

from .processes import Cluster
from .sharded import FIELDS, best, questions, same, write_corpus

TABLES = int(os.environ.get("ALMANAQ_CLUSTER_INDEXED", "1000"))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("corpus"), TABLES)


def test_eight_shards_find_what_one_index_finds(cluster: Cluster, corpus: Path, tmp_path: Path) -> None:
    tables = DatasetFolder(corpus).corpus()
    build_index(tables, tmp_path / "one", FIELDS.split(","))
    made = index_on_cluster(tables, tmp_path / "eight", FIELDS, url=cluster.url, shards=8)
    assert len(made) == TABLES
    assert len(made.segments) == 8
    same(tmp_path / "one", tmp_path / "eight", questions(TABLES, 50))


def test_vectors_and_their_codes_are_made_on_the_cluster(cluster: Cluster, corpus: Path, tmp_path: Path) -> None:
    tables, embedder = DatasetFolder(corpus).corpus(), open_embedder("lexical")
    one = build_index(tables, tmp_path / "one", FIELDS.split(","), store=VectorStore(None, embedder))
    made = index_on_cluster(
        tables, tmp_path / "four", FIELDS, url=cluster.url, shards=4, embedder="lexical", vectors=Precision.INT8
    )
    assert recall_of_codes(made) > 0.95
    asked = questions(TABLES, 20)
    found = [[ranking[0].id for ranking in StoredHybrid(index, embedder).search(asked, 1)] for index in (one, made)]
    assert sum(a == b for a, b in zip(*found, strict=True)) >= 19
    with pytest.raises(UsageError, match="no keys"):
        index_on_cluster(tables, tmp_path / "x", FIELDS, url=cluster.url, shards=4, embedder="openai:m")


def test_a_worker_that_is_killed_while_it_writes_changes_nothing(
    cluster: Cluster, corpus: Path, tmp_path: Path
) -> None:
    tables, out = DatasetFolder(corpus).corpus(), tmp_path / "worker"
    build_index(tables, tmp_path / "one", FIELDS.split(","))
    killed = []

    def kill() -> None:
        until = time.monotonic() + 240
        while time.monotonic() < until and not list(out.glob(".writing-*")):
            time.sleep(0.005)
        killed.extend(cluster.executors()[:1])
        for pid in killed:
            os.kill(pid, signal.SIGKILL)

    killing = threading.Thread(target=kill)
    killing.start()
    made = index_on_cluster(tables, out, FIELDS, url=cluster.url, shards=8)
    killing.join()
    assert killed
    assert len(made) == TABLES
    assert len(list(out.glob("segment-*"))) == 8
    assert not list(out.glob(".writing-*"))
    same(tmp_path / "one", out, questions(TABLES, 20))


def test_a_build_that_is_killed_leaves_no_visible_segment(cluster: Cluster, corpus: Path, tmp_path: Path) -> None:
    tables = DatasetFolder(corpus).corpus()
    out = tmp_path / "killed"
    build_index(tables, out, FIELDS.split(","))
    question = questions(TABLES, 1)[0]
    before = best(open_index(out), question)
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
    assert best(open_index(out), question) == before
    assert {entry["name"] for entry in json.loads((out / "manifest.json").read_text("utf-8"))["segments"]} == kept
    made = index_on_cluster(tables, out, FIELDS, url=cluster.url, shards=8)
    assert len(list(out.glob("segment-*"))) == len(made.segments) == 8
    assert not list(out.glob(".writing-*"))
