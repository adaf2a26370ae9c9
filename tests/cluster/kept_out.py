"""What does not come to a cluster, and what does not come from it: keys, questions, files elsewhere, and most rows.

ALMANAQ_CLUSTER_ROWS says how many rows the large table has.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import almanaq
from almanaq.suql.databases.spark import SparkDatabase
from almanaq.testing import FunctionModel

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


CLIENT = """
import json, resource, sys
import almanaq
from almanaq.suql.databases import spark_driver
from almanaq.suql.databases.spark import SparkDatabase
from almanaq.testing import FunctionModel

moved = 0
batches = spark_driver.Remote.batches
def counted(self, sql, tag):
    global moved
    for batch in batches(self, sql, tag):
        moved += batch.num_rows if "d0" in batch.schema.names else 0
        yield batch
spark_driver.Remote.batches = counted
model = FunctionModel(lambda text, question: "Yes" if text[-1] in "02468" else "No")
with almanaq.connect(SparkDatabase(sys.argv[1]), model=model, cache=False) as con:
    rows = con.sql("SELECT count(*) FROM big WHERE city = 'Kyiv' AND answer(body, 'is it even?') = 'Yes'").rows
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"count": rows[0][0], "moved": moved, "calls": model.calls, "megabytes": peak // 1024}))
"""


def test_only_texts_of_candidates_move(cluster: Cluster, tables: Tables) -> None:
    schema = tables.source({}).rpartition("=")[2]
    folder = cluster.folder / "tables" / schema / "big"
    folder.mkdir(parents=True)
    part, candidates = 1_000_000, 0
    fields = pa.schema([("id", pa.int64()), ("city", pa.string()), ("body", pa.string())])
    for number, start in enumerate(range(0, ROWS, part)):
        ids = range(start, min(start + part, ROWS))
        cities = ["Kyiv" if i % 100 == 7 else "Oslo" for i in ids]
        bodies = [f"a text of some length that nobody has to read, number {i // 100}" for i in ids]
        candidates += cities.count("Kyiv")
        pq.write_table(pa.table([list(ids), cities, bodies], schema=fields), folder / f"part-{number:03}.parquet")
    tables.remote.command(
        f"CREATE TABLE {schema}.big (id bigint, city string, body string) USING parquet LOCATION '{folder}'", "tests"
    )
    command = [sys.executable, "-W", "ignore", "-c", CLIENT, f"{cluster.url};schema={schema}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    print(f"{ROWS} rows, {candidates} candidates: {found}")
    assert found["moved"] == found["calls"] == candidates
    assert found["count"] == candidates // 2
    assert found["megabytes"] < 1024
