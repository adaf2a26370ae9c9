"""Processes killed by SIGKILL at random moments of a query: right rows or an error with a name, and nothing paid twice.

`python -m tests.cluster.kills --moments 10 --out tests/cluster/kills.json` starts a cluster and records, for the kinds
of process that are named, what each moment came to. The client is a process of its own, without Java; the model is a
server of its own, which counts what it was asked. A moment is a task that the cluster starts or a call that the model
gets, drawn from those of an undisturbed run: each kill falls into work that is under way.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

import almanaq
from almanaq.testing import FunctionModel
from almanaq_bench.testing import Faults, StandInServer

from .processes import Cluster, running
from .tables import Tables

KINDS = ("executor", "worker", "connect", "client")
SQL = (
    "SELECT city, count(*) AS n FROM told WHERE answer(body, 'is it calm?') = 'Yes' AND id % 3 = 0 "
    "GROUP BY city ORDER BY city"
)
ROWS, TEXTS, FILES = 6000, 250, 8  # texts that three does not divide: each is that of a candidate
CONCURRENCY = 8
LATENCY = 0.1
_PATIENCE = 600


@dataclass(frozen=True)
class Moment:
    """What one kill came to.

    Attributes:
        at: the task or the call that it fell on.
        calls_before: calls that the model had got at that moment.
        tasks_lost: tasks that ran on what was killed, which Spark then ran again.
        said: "right rows", the message of a named error, or "" of a client that was killed itself.
        asked: texts that the model was asked about in the first run.
        again: calls of the second run.
        twice: texts that the model was asked about twice.
    """

    at: str
    calls_before: int
    tasks_lost: int
    said: str
    asked: int
    again: int
    twice: int


@dataclass(frozen=True)
class Undisturbed:
    """How many tasks a run takes; its calls are one for each text."""

    tasks: int


def told() -> dict[str, pa.Table]:
    """Return the table that is asked about."""
    ids = range(ROWS)
    columns = {"id": ids, "city": [("Oslo", "Rome", "Kyiv")[i % 7 % 3] for i in ids]}
    return {"told": pa.table({**columns, "body": [f"text {i % TEXTS}" for i in ids]})}


def right() -> list[tuple[Any, ...]]:
    """Return the rows of the query, by DuckDB."""
    with almanaq.connect(told(), model=FunctionModel(lambda text, _: _calm(text)), cache=False) as con:
        return [tuple(row) for row in con.sql(SQL).rows]


def _calm(text: str) -> str:
    return "Yes" if int(text.split()[1]) % 2 else "No"


def _asked(request: Mapping[str, Any]) -> str:
    said = next(message["content"] for message in request["messages"] if message["role"] == "user")
    found = re.search(r"^(text \d+)$", said, re.MULTILINE)
    assert found is not None, said
    return found[1]


def _reply(request: Mapping[str, Any]) -> dict[str, object]:
    text = _asked(request)
    return {"value": _calm(text), "quotes": [text]}


class Client:
    """Runs the query in processes, which share a cache of replies and a model."""

    def __init__(self, url: str, model: StandInServer, cache: Path) -> None:
        self.url, self._model, self._cache = url, model, cache
        self._before = len(model.ledger.requests)

    @property
    def asked(self) -> Counter[str]:
        """How often the model was asked about each text."""
        return Counter(map(_asked, self._model.ledger.requests[self._before :]))

    def start(self) -> subprocess.Popen[str]:
        """Start a run."""
        own = {
            "OPENAI_BASE_URL": self._model.url, "OPENAI_API_KEY": "k", "ALMANAQ_CACHE_DIR": str(self._cache),
            "ALMANAQ_CONCURRENCY": str(CONCURRENCY), "PYTHONWARNINGS": "ignore",
        }  # fmt: skip
        command = [sys.executable, "-m", "almanaq", "sql", SQL, "--db", self.url, "--model", "openai:m", "--batch", "1"]
        return subprocess.Popen(
            [*command, "--format", "json"], env={**os.environ, **own}, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def ended(self, process: subprocess.Popen[str]) -> str:
        """Wait for a run; say "right rows", what error it named, or "" where it was killed."""
        out, said = process.communicate(timeout=_PATIENCE)
        if process.returncode == -signal.SIGKILL:
            return ""
        if process.returncode == 0:
            rows = [tuple(row.values()) if isinstance(row, dict) else tuple(row) for row in json.loads(out)["rows"]]
            assert rows == right(), f"not the right rows: {rows}"
            return "right rows"
        assert process.returncode == 1, f"exit {process.returncode}: {said[-2000:]}"
        assert not out, f"an error, and rows: {out[:300]}"
        assert "Traceback" not in said, said[-2000:]
        return said.strip().splitlines()[-1][:160]


def moments(cluster: Cluster, kind: str, count: int, seed: int = 0, whole: Undisturbed | None = None) -> list[Moment]:
    """Kill a kind of process so many times, each in a query of its own that is run again afterwards."""
    chance = random.Random(f"{kind} {seed}")
    found = []
    with model_server() as model, tempfile.TemporaryDirectory() as folder:
        whole = whole or undisturbed(cluster)
        for number in range(count):
            # What runs on the workers is tasks; what a server or a client loses is calls as well.
            tasks = number % 2 == 0 or kind in ("executor", "worker")
            moment = chance.randint(1, whole.tasks if tasks else TEXTS)
            found.append(_moment(cluster, kind, "task" if tasks else "call", moment, model, Path(folder) / str(number)))
            print(f"SIGKILL of the {kind}: {found[-1]}", flush=True)
    return found


def model_server() -> StandInServer:
    """Return the model: slow, and counting."""
    return StandInServer(_reply, faults=Faults(latency=LATENCY))


def undisturbed(cluster: Cluster, runs: int = 2) -> Undisturbed:
    """Return what the last of some runs takes; a server that has done nothing yet needs one to get warm."""
    with model_server() as model, tempfile.TemporaryDirectory() as folder:
        for number in range(runs):
            client = Client(_source(cluster), model, Path(folder) / str(number))
            log = Log(cluster)
            assert client.ended(client.start()) == "right rows"
            assert client.asked == Counter(dict.fromkeys(client.asked, 1))
            assert len(client.asked) == TEXTS
        return Undisturbed(log.count(STARTED))


STARTED, LOST = "Starting task ", "ExecutorLostFailure"


class Log:
    """What the server has logged since this was made: the server is the one that starts tasks."""

    def __init__(self, cluster: Cluster) -> None:
        self._file = cluster.folder / "logs" / "connect.log"
        self._from = self._file.stat().st_size

    def count(self, words: str) -> int:
        """Return in how many lines some words stand."""
        with self._file.open("rb") as log:
            log.seek(self._from)
            return log.read().count(words.encode())


def _source(cluster: Cluster) -> str:
    return Tables(cluster).source(told(), files=FILES)


def _moment(cluster: Cluster, kind: str, unit: str, number: int, model: StandInServer, cache: Path) -> Moment:
    client, log = Client(_source(cluster), model, cache), Log(cluster)
    process = client.start()
    while process.poll() is None and (log.count(STARTED) if unit == "task" else client.asked.total()) < number:
        time.sleep(0.01)
    before = client.asked.total()
    _kill(cluster, kind, process)
    said = client.ended(process)
    once, lost = client.asked, log.count(LOST)
    if kind == "worker":
        cluster.start_worker(1)
    if kind == "connect":
        cluster.start_connect()
        client.url = _source(cluster)  # it kept its catalog in memory
    assert client.ended(client.start()) == "right rows"
    again = client.asked
    twice = sum(times > 1 for times in again.values())
    found = Moment(f"{unit} {number}", before, lost, said, len(once), again.total() - once.total(), twice)
    assert set(again.values()) <= {1, 2}
    assert twice <= (CONCURRENCY if said != "right rows" else 0), found
    return found


def _kill(cluster: Cluster, kind: str, client: subprocess.Popen[str]) -> None:
    if kind == "client":
        client.send_signal(signal.SIGKILL)
    elif kind == "executor":
        os.kill(random.choice(_executors(cluster)), signal.SIGKILL)
    else:
        cluster.kill("worker1" if kind == "worker" else "connect")


def _executors(cluster: Cluster) -> list[int]:
    """Return the executors, when there is one: another is started for each that was killed."""
    until = time.monotonic() + _PATIENCE
    while not (found := cluster.executors()):
        assert time.monotonic() < until, "no executor came up"
        time.sleep(0.1)
    return found


def record(found: Mapping[str, list[Moment]]) -> dict[str, Any]:
    """Return what the kills came to as JSON can hold it."""
    return {
        kind: {
            "kills": len(each),
            "outcomes": dict(Counter("killed" if not m.said else _kind(m.said) for m in each)),
            "most_asked_twice": max(m.twice for m in each),
            "fell_on_tasks_that_ran_again": sum(m.tasks_lost > 0 for m in each),
            "fell_between_the_first_and_the_last_call": sum(0 < m.calls_before < TEXTS for m in each),
            "moments": [asdict(m) for m in each],
        }
        for kind, each in found.items()
    }


def _kind(said: str) -> str:
    return said if said == "right rows" else "a named error"


def main() -> int:
    """Kill, and write the record; kinds that are not named keep what the file says of them."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.kills", description=__doc__)
    parser.add_argument("--moments", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", choices=KINDS, action="append", help="repeatable; left out: all")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write what was found as JSON")
    given = parser.parse_args()
    kept = json.loads(given.out.read_text("utf-8")) if given.out and given.out.exists() else {}
    with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as cluster:
        whole = undisturbed(cluster)
        for kind in given.kind or KINDS:
            kept |= record({kind: moments(cluster, kind, given.moments, given.seed, whole)})
            if given.out:
                load = round(os.getloadavg()[0], 1)
                told_of = {"rows": ROWS, "texts": TEXTS, "concurrency": CONCURRENCY, "query": SQL, "load_average": load}
                given.out.write_text(json.dumps(kept | told_of | asdict(whole), indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
