"""Processes of the cluster killed at random moments: right rows or an error with a name, never a part.

ALMANAQ_CLUSTER_KILLS says how often each is killed.
"""

from __future__ import annotations

import os
import random
import signal
import threading
from typing import Any

import pyarrow as pa
import pytest

import almanaq
from almanaq.errors import AlmanaqError
from almanaq.suql.databases.spark import SparkDatabase
from almanaq.testing import FunctionModel

from .processes import Cluster
from .tables import Tables

KILLS = int(os.environ.get("ALMANAQ_CLUSTER_KILLS", "2"))
SQL = (
    "SELECT city, count(*) AS n FROM told WHERE answer(body, 'is it calm?') = 'Yes' AND id % 3 = 0 "
    "GROUP BY city ORDER BY city"
)
ROWS = 6000
TEXTS = 400


def told() -> dict[str, pa.Table]:
    ids = range(ROWS)
    columns = {"id": ids, "city": [("Oslo", "Rome", "Kyiv")[i % 7 % 3] for i in ids]}
    return {"told": pa.table({**columns, "body": [f"text {i % TEXTS}" for i in ids]})}


def calm(text: str, question: str) -> str:
    return "Yes" if int(text.split()[1]) % 2 else "No"


def right() -> list[tuple[Any, ...]]:
    with almanaq.connect(told(), model=FunctionModel(calm), cache=False) as con:
        return [tuple(row) for row in con.sql(SQL).rows]


def _kill(cluster: Cluster, what: str) -> None:
    if what == "executor":
        running = cluster.executors()
        if running:
            os.kill(random.choice(running), signal.SIGKILL)
        return
    name = "worker1" if what == "worker" else "connect"
    cluster.kill(name)


@pytest.mark.parametrize("what", ["executor", "worker", "connect"])
def test_right_rows_or_an_error_with_a_name(cluster: Cluster, what: str) -> None:
    expected, said, paid = right(), [], 0
    for number in range(KILLS):
        url = Tables(cluster).source(told())
        model = FunctionModel(calm)
        with almanaq.connect(SparkDatabase(url), model=model, cache=False) as con:
            moment = random.Random(number).uniform(0.1, 4.0)
            killing = threading.Timer(moment, _kill, (cluster, what))
            killing.start()
            try:
                rows = [tuple(row) for row in con.sql(SQL).rows]
                assert rows == expected
                said.append("right rows")
            except AlmanaqError as error:
                said.append(f"{type(error).__name__}: {str(error)[:110]}")
            killing.join()
        paid = model.calls
        if what == "worker":
            cluster.start_worker(1)
        if what == "connect":
            cluster.start_connect()
            url = Tables(cluster).source(told())
        with almanaq.connect(SparkDatabase(url), model=model, cache=False) as con:
            assert [tuple(row) for row in con.sql(SQL).rows] == expected
        assert paid <= TEXTS
        assert model.calls - paid <= TEXTS, f"{paid} before the kill, {model.calls} with the second run"
    print(f"SIGKILL of the {what}, {KILLS} times:", *sorted(said), sep="\n  ")
    assert not list(cluster.sessions.glob("*/*/*.parquet")), "nothing is left in the sessions' folder"
