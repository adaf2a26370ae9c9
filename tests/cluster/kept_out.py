"""What does not come to a cluster, and what does not come from it: keys, questions, files elsewhere, and most rows.

ALMANAQ_CLUSTER_ROWS says how many rows the large table has.
"""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa

import almanaq
from almanaq.engines.spark.engine import SparkDatabase
from almanaq.testing import FunctionModel

from .large import check, measured
from .processes import Cluster
from .tables import Tables

ROWS = int(os.environ.get("ALMANAQ_CLUSTER_ROWS", "200000"))
_OWN = ("logs", "work", "local")
"""What Spark itself writes: logs, executors' folders, shuffles."""


def _files(cluster: Cluster) -> set[Path]:
    found = (path for path in cluster.folder.rglob("*") if path.is_file())
    return {path for path in found if path.relative_to(cluster.folder).parts[0] not in _OWN}


def test_nothing_is_written_elsewhere_and_no_secret_is_found(cluster: Cluster, tables: Tables) -> None:
    key, question, private = "sk-KEYMARK7731", "is QUESTIONMARK7732 said?", "PRIVATEMARK7733"
    os.environ["OPENAI_API_KEY"] = key
    rows = 3000
    told = pa.table(
        {"id": range(rows), "city": ["Oslo", "Rome"] * (rows // 2), "body": [f"text {i}" for i in range(rows)]}
    )
    url = tables.source({"told": told})
    before = _files(cluster)
    during: set[Path] = set()

    def said(text: str, asked: str) -> str:
        assert asked == question
        if not during:
            during.update(_files(cluster))
        return f"{private} {text}"

    with almanaq.connect(SparkDatabase(url), model=FunctionModel(said), cache=False) as con:
        sql = f"SELECT city, count(*) FROM told WHERE answer(body, '{question}') ILIKE '%7%' AND id < 300 GROUP BY city"
        assert len(con.sql(sql).rows) == 2
    del os.environ["OPENAI_API_KEY"]
    assert all(cluster.sessions in path.parents for path in during - before)
    assert _files(cluster) == before
    for path in cluster.folder.rglob("*"):
        if path.is_file():
            held = path.read_bytes()
            for mark in (key, question, private):
                assert mark.encode() not in held, f"{mark} stands in {path}"


def test_only_distinct_texts_of_candidates_move(cluster: Cluster, tables: Tables) -> None:
    found = measured(cluster, tables, ROWS)
    print(found)
    check(found)
