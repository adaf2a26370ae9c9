"""A PostgreSQL database that orders text as English does orders it so here, answers too."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

import almanaq
from almanaq.testing import FunctionModel
from engines import PostgresServer

ICU = "TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en-US'"


@pytest.fixture(scope="module")
def con(postgres_server: PostgresServer) -> Iterator[almanaq.Connection]:
    names = ["anna", "Zoe", "a b", "ab", "émile", None]
    table = pa.table({"id": range(6), "name": names, "body": [f"who={n}" for n in names]})
    url = postgres_server.source({"t": table}, ICU)
    model = FunctionModel(lambda text, question: text.removeprefix("who="))
    with almanaq.connect(url, model=model, order="table", speculation=1, cache=False) as connection:
        yield connection


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT name FROM t ORDER BY name", ["a b", "ab", "anna", "émile", "Zoe", None]),
        ("SELECT min(name) FROM t", ["a b"]),
        ("SELECT name FROM t WHERE name < 'b' ORDER BY name DESC", ["anna", "ab", "a b"]),
        ("SELECT answer(body, 'who?') FROM t ORDER BY answer(body, 'who?') DESC LIMIT 2", ["Zoe", "None"]),
        ("SELECT name FROM t WHERE answer(body, 'who?') < 'b' ORDER BY name", ["a b", "ab", "anna"]),
        ("SELECT max(answer(body, 'who?')) FROM t WHERE id < 5 GROUP BY id > 9", ["Zoe"]),
        ("SELECT name FROM t WHERE answer(body, 'who?') <> '' ORDER BY name COLLATE \"C\" LIMIT 1", ["Zoe"]),
    ],
)
def test_text_is_in_the_order_of_the_database(con: almanaq.Connection, sql: str, rows: list[str | None]) -> None:
    assert [row[0] for row in con.sql(sql).rows] == rows


def test_values_of_an_enum_keep_their_order_beside_an_answer(postgres_server: PostgresServer) -> None:
    """As texts, 'high' comes before 'low'."""
    grades = pa.DictionaryArray.from_arrays(pa.array([2, 0, 1, 2], pa.int8()), pa.array(["low", "mid", "high"]))
    table = pa.table({"id": range(4), "grade": grades, "body": ["yes", "no", "yes", "no"]})
    model = FunctionModel(lambda text, question: text)
    with almanaq.connect(postgres_server.source({"t": table}), model=model, cache=False) as con:
        asked = "CASE WHEN grade < 'mid' THEN TRUE WHEN answer(body, 'open?') = 'yes' THEN grade > 'mid' END"
        assert con.sql(f"SELECT id FROM t WHERE {asked} ORDER BY id").rows == [(0,), (1,)]
