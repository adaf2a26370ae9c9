"""A large table of which few rows are candidates: what moves to the client, and what the client holds.

`python -m tests.cluster.large --rows 10000000 --out tests/cluster/large.json` starts a cluster and records it. One row
in a hundred is a candidate, and four candidates have the same text. The client is a process without Java.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from .processes import Cluster, running
from .tables import Tables

SHARED = 4
"""Candidates that have one text."""
_PART = 1_000_000
_CLIENT = """
import json, resource, shutil, sys
import almanaq
from almanaq.engines.spark import driver as spark_driver
from almanaq.engines.spark.engine import SparkDatabase
from almanaq.testing import FunctionModel

assert shutil.which("java") is None
moved = 0
batches = spark_driver.Remote.batches
def counted(self, sql, tag, parameters=()):
    global moved
    for batch in batches(self, sql, tag, parameters):
        moved += batch.num_rows if "d0" in batch.schema.names else 0
        yield batch
spark_driver.Remote.batches = counted
model = FunctionModel(lambda text, question: "Yes" if int(text.split()[-1]) % 2 else "No")
with almanaq.connect(SparkDatabase(sys.argv[1]), model=model, cache=False) as con:
    rows = con.sql("SELECT count(*) FROM big WHERE city = 'Kyiv' AND answer(body, 'is it odd?') = 'Yes'").rows
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"count": rows[0][0], "moved": moved, "calls": model.calls, "client_megabytes": peak // 1024}))
"""


def measured(cluster: Cluster, tables: Tables, rows: int) -> dict[str, Any]:
    """Ask about a table of so many rows; give what moved, what it took, and what it should have."""
    schema = tables.source({}).rpartition("=")[2]
    candidates, texts, odd = _write(cluster.folder / "tables" / schema / "big", rows)
    place = cluster.folder / "tables" / schema / "big"
    tables.remote.command(
        f"CREATE TABLE {schema}.big (id bigint, city string, body string) USING parquet LOCATION '{place}'", "tests"
    )
    command = [sys.executable, "-W", "ignore", "-c", _CLIENT, f"{cluster.url};schema={schema}"]
    started = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    told = {"rows": rows, "candidates": candidates, "distinct_texts": texts, "right_count": odd}
    return told | found | {"seconds": round(time.monotonic() - started, 1)}


def check(found: dict[str, Any]) -> None:
    """Raise AssertionError unless just the candidates moved, each text was asked about once, and memory is bounded."""
    assert found["moved"] == found["candidates"]
    assert found["calls"] == found["distinct_texts"]
    assert found["count"] == found["right_count"]
    assert found["client_megabytes"] < 1024


def _write(folder: Path, rows: int) -> tuple[int, int, int]:
    """Write the table; give its candidates, their distinct texts, and the candidates whose text is odd."""
    folder.mkdir(parents=True)
    fields = pa.schema([("id", pa.int64()), ("city", pa.string()), ("body", pa.string())])
    numbers: list[int] = []
    for number, start in enumerate(range(0, rows, _PART)):
        ids = range(start, min(start + _PART, rows))
        cities = ["Kyiv" if i % 100 == 7 else "Oslo" for i in ids]
        bodies = [f"a text of some length that nobody has to read, number {i // 100 // SHARED}" for i in ids]
        numbers += [i // 100 // SHARED for i in ids if i % 100 == 7]
        pq.write_table(pa.table([list(ids), cities, bodies], schema=fields), folder / f"part-{number:03}.parquet")
    return len(numbers), len(set(numbers)), sum(number % 2 for number in numbers)


def main() -> int:
    """Measure, write the record, and check it."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.large", description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--out", type=Path, metavar="FILE")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as cluster:
        found = measured(cluster, Tables(cluster), given.rows)
    print(found)
    if given.out:
        given.out.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    check(found)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
