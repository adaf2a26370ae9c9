"""Statements in Spark's own SQL give what Spark gives: rows, types and names of columns.

The referee is Spark itself, in another session: there `answer` is a function of the session, which says what the model
says.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import almanaq
from almanaq.engines.spark.driver import Remote, read_spark_url
from almanaq.engines.spark.engine import SparkDatabase
from almanaq.testing import FunctionModel

from .tables import Tables

STATEMENTS = [
    line for line in Path(__file__).with_suffix(".sql").read_text("utf-8").splitlines() if not line.startswith("--")
]


def reply(text: str, question: str) -> str | None:
    """Return what the model says of a text."""
    if question == "mood?":
        return next(
            (mood for mood, word in (("happy", "good"), ("sad", "bad"), ("calm", "fine")) if word in text), None
        )
    return str(text.count("!"))


ANSWER = """
CREATE TEMPORARY FUNCTION answer(d STRING, q STRING) RETURNS STRING RETURN CASE
  WHEN d IS NULL OR trim(d) = '' THEN NULL
  WHEN q = 'mood?' THEN CASE WHEN d LIKE '%good%' THEN 'happy' WHEN d LIKE '%bad%' THEN 'sad'
                             WHEN d LIKE '%fine%' THEN 'calm' END
  ELSE CAST(length(d) - length(replace(d, '!', '')) AS STRING) END
"""


def made() -> dict[str, pa.Table]:
    """Return the tables that the statements are about."""
    day, moment = datetime.date, datetime.datetime
    people = pa.table(
        {
            "id": pa.array([1, 2, 3, 4, 5, 6], pa.int32()),
            "name": ["Ann", "Bea", "Cid", "Dan", "Eva", "Fay"],
            "age": pa.array([34, 41, 29, 63, None, 29], pa.int32()),
            "dept": ["dev", "dev", "ops", "ops", "law", None],
            "salary": pa.array([Decimal("10.50"), Decimal("20.25"), Decimal("7.00"), None, Decimal("9.75"), Decimal(1)],
                               pa.decimal128(10, 2)),
            "hired": [day(2020, 2, 29), day(2019, 12, 31), day(2021, 7, 1), day(2020, 5, 5), None, day(2022, 1, 31)],
            "tags": pa.array([["go", "sql"], ["sql"], [], None, ["java", "go", "go"], ["c"]], pa.list_(pa.string())),
            "scores": pa.array([[("a", 1), ("b", 2)], [("a", 0)], [], None, [("c", 5)], [("a", 7)]],
                               pa.map_(pa.string(), pa.int32())),
            "address": pa.array([{"city": "Oslo", "zip": 1}, {"city": "Rome", "zip": 2}, {"city": "Oslo", "zip": 3},
                                 None, {"city": None, "zip": 5}, {"city": "Rome", "zip": 6}],
                                pa.struct([("city", pa.string()), ("zip", pa.int32())])),
            "note": ["good work!", "bad day!!!", "it's fine", "good but late!!!!", None, "no word"],
            "j": ['{"a": 1, "b": "good"}', '{"a": 2, "b": "bad"}', "{}", None, '{"a": null, "b": "fine"}', '{"a": 6}'],
        }
    )  # fmt: skip
    sales = pa.table(
        {
            "id": pa.array(range(1, 9), pa.int32()),
            "person": pa.array([1, 1, 2, 3, 3, 3, 6, None], pa.int32()),
            "day": [day(2023, 1, 1 + i) for i in range(8)],
            "at": pa.array([moment(2023, 1, 1 + i, 10 + i, 30) for i in range(8)], pa.timestamp("us", "UTC")),
            "amount": [1.5, 2.5, 4.0, 0.5, 8.0, 2.0, 3.0, None],
            "product": ["pen", "ink", "pen", "ink", "pad", "pen", "ink", "pad"],
        }
    )
    return {"people": people, "sales": sales}


@pytest.fixture(scope="module")
def both(tables: Tables) -> Iterator[tuple[Any, Remote]]:
    """A connection of ours, and Spark's own client, over the same tables."""
    source = tables.source(made())
    referee = Remote(read_spark_url(source))
    referee.command(f"USE {source.rpartition('=')[2]}", "tests")
    referee.command(ANSWER, "tests")
    with almanaq.connect(SparkDatabase(source), model=FunctionModel(reply), cache=False, link=False) as con:
        yield con, referee
    referee.close()


def plain(value: Any) -> Any:
    """Return a value in which maps are dictionaries, and rows of structs tuples of pairs."""
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, list) and value and all(isinstance(part, tuple) and len(part) == 2 for part in value):
        return {key: plain(part) for key, part in value}
    return [plain(part) for part in value] if isinstance(value, list) else value


@pytest.mark.sampled(3)
@pytest.mark.parametrize("sql", STATEMENTS)
def test_as_spark_gives_them(both: tuple[Any, Remote], sql: str) -> None:
    con, referee = both
    expected, found = referee.table(sql, "tests"), con.sql(sql)
    assert list(found.columns) == expected.column_names
    rows = [
        tuple(plain(value) for value in row) for row in zip(*(c.to_pylist() for c in expected.columns), strict=True)
    ]
    assert [tuple(plain(value) for value in row) for row in found.rows] == rows


def test_parameters_are_bound_by_the_server(both: tuple[Any, Remote]) -> None:
    con, _ = both
    sql = "SELECT id FROM people WHERE name = ? AND hired > ? ORDER BY id"
    assert con.sql(sql, ["Ann", datetime.date(2020, 1, 1)]).rows == [(1,)]
    assert con.sql("SELECT :word AS w, :n + 1 AS n", {"word": 'it\'s \\ "q" ${x}', "n": 2}).rows == [
        ('it\'s \\ "q" ${x}', 3)
    ]
    asked = "SELECT id FROM people WHERE answer(note, 'mood?') = ? AND age > ? ORDER BY id"
    assert con.sql(asked, ["happy", 40]).rows == [(4,)]
