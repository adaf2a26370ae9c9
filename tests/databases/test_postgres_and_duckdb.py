"""The restaurants and a 200-row task: the same rows from PostgreSQL as from DuckDB, for the same calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pytest

import almanaq
from almanaq import sample
from almanaq.testing import FunctionModel
from engines import PostgresServer

ROMANTIC = "answer(reviews, 'is it romantic?') = 'Yes'"
RESTAURANTS = (
    f"SELECT name FROM restaurants WHERE {ROMANTIC} LIMIT 3",
    f"SELECT name, rating FROM restaurants WHERE {ROMANTIC} AND rating >= 4 ORDER BY rating DESC, name LIMIT 5",
    f"SELECT count(*) FROM restaurants WHERE NOT ({ROMANTIC} OR rating > 4.5)",
    "SELECT name, answer(reviews, 'what to drink?') FROM restaurants ORDER BY name LIMIT 4",
    f"SELECT price, count(*), avg(rating) FROM restaurants WHERE {ROMANTIC} GROUP BY price ORDER BY price",
    "SELECT name FROM restaurants, unnest(reviews) AS t WHERE answer(t, 'is it loud?') = 'Yes' ORDER BY 1, t LIMIT 5",
)
TASK = (
    "SELECT id FROM task WHERE answer(body, 'is it calm?') = 'Yes' LIMIT 5",
    "SELECT id FROM task WHERE city = 'Oslo' AND answer(body, 'is it calm?') = 'Yes' ORDER BY id DESC LIMIT 5",
    "SELECT city, count(*) FROM task WHERE answer(body, 'is it calm?') = 'No' GROUP BY city ORDER BY 2 DESC, 1",
    "SELECT max(answer(body, 'which number?')::int) FROM task WHERE stars > 2",
    "SELECT id FROM task WHERE stars = 5 OR answer(body, 'is it calm?') = 'Yes' AND city = 'Rome' ORDER BY id",
)


def task() -> dict[str, pa.Table]:
    """Return 200 rows, every third text repeated, every eleventh NULL."""
    ids = range(1, 201)
    bodies = [None if i % 11 == 0 else f"text {i - i % 3} about nothing" for i in ids]
    cities = [("Oslo", "Rome", None, "Kyiv")[i % 4] for i in ids]
    return {"task": pa.table({"id": ids, "city": cities, "stars": [i % 6 for i in ids], "body": bodies})}


def said(text: str, question: str) -> str | None:
    """Answer from the length of text and question."""
    if "number" in question:
        return text.split()[1]
    return (None, "Yes", "No", "No", "Yes")[(len(text) + sum(map(ord, text + question))) % 5]


def connect(source: Any) -> tuple[almanaq.Connection, FunctionModel]:
    model = FunctionModel(said)
    return almanaq.connect(source, model=model, order="table", speculation=1, cache=False, link=False), model


@pytest.fixture(scope="module")
def both(postgres_server: PostgresServer) -> Iterator[tuple[Any, Any]]:
    tables: Mapping[str, pa.Table] = {**sample.load("restaurants").tables, **task()}
    first, second = connect(dict(tables)), connect(postgres_server.source(tables))
    yield first, second
    first[0].close()
    second[0].close()


@pytest.mark.parametrize("sql", [*RESTAURANTS, *TASK])
def test_same_rows_and_calls(both: tuple[Any, Any], sql: str) -> None:
    results = [con.sql(sql) for con, _ in both]
    rows = [[tuple(float(v) if hasattr(v, "as_tuple") else v for v in row) for row in r.rows] for r in results]
    assert rows[0]
    assert rows[1] == rows[0]
    assert results[0].trace.text_calls == results[1].trace.text_calls > 0
