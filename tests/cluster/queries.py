"""A cluster gives DuckDB's rows for as many calls: two samples, generated queries.

ALMANAQ_CLUSTER_LAWS says how many generated queries, each DuckDB's as sqlglot writes it in Spark's words.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from test_postgres_and_duckdb import RESTAURANTS, TASK, connect, task

import almanaq
from almanaq import sample
from almanaq.engines.spark.engine import SparkDatabase
from almanaq.testing import FunctionModel

from .laws import Record, compared, in_spark
from .tables import Tables

LAWS = int(os.environ.get("ALMANAQ_CLUSTER_LAWS", "2"))
FIRST = int(os.environ.get("ALMANAQ_CLUSTER_FIRST_LAW", "0"))


@pytest.fixture(scope="module")
def places(tables: Tables) -> str:
    return tables.source({**sample.load("restaurants").tables, **task()})


@pytest.fixture(scope="module")
def both(places: str) -> Iterator[tuple[Any, Any]]:
    first = connect({**sample.load("restaurants").tables, **task()})[0]
    second = connect(SparkDatabase(places))[0]
    yield first, second
    first.close()
    second.close()


def _fractional(value: object) -> bool:
    return isinstance(value, float) or hasattr(value, "as_tuple")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("sql", [*RESTAURANTS, *TASK])
def test_same_rows_and_calls(both: tuple[Any, Any], sql: str) -> None:
    own = sql.replace(", unnest(reviews) AS t", " LATERAL VIEW explode(reviews) made AS t")
    results = [con.sql(written) for con, written in zip(both, (sql, own if own != sql else in_spark(sql)), strict=True)]
    # Sums of doubles hang on their order in the last digit, which a cluster does not keep; averages of decimals have
    # four decimals more than these on Spark.
    rows = [[tuple(float(f"{v:.5g}") if _fractional(v) else v for v in row) for row in r.rows] for r in results]
    assert rows[0]
    assert rows[1] == rows[0]
    assert results[0].trace.text_calls == results[1].trace.text_calls > 0


def test_a_limit_stops_the_job_and_the_calls(places: str) -> None:
    model = FunctionModel(lambda text, question: "Yes")
    with almanaq.connect(SparkDatabase(places), model=model, cache=False, speculation=2) as con:
        assert len(con.sql("SELECT id FROM task WHERE answer(body, 'is it calm?') = 'Yes' LIMIT 3").rows) == 3
    assert model.calls <= 2 * 3


def test_generated_queries(tables: Tables) -> None:
    record = Record(FIRST)
    for found in compared(tables, FIRST, LAWS):
        record.add(found)
    print(record)
    assert not record.failures, "\n".join(map(str, record.failures))
