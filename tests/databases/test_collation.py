"""A PostgreSQL database that orders text as English does gives the rows that every other engine gives."""

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
        ("SELECT name FROM t ORDER BY name", ["Zoe", "a b", "ab", "anna", "émile", None]),
        ("SELECT name AS n FROM t ORDER BY n DESC LIMIT 2", ["émile", "anna"]),
        ("SELECT DISTINCT name FROM t ORDER BY 1 LIMIT 2", ["Zoe", "a b"]),
        ("SELECT name FROM t UNION SELECT 'B' ORDER BY 1 LIMIT 2", ["B", "Zoe"]),
        ("SELECT min(name) FROM t", ["Zoe"]),
        ("SELECT name FROM t WHERE name < 'a'", ["Zoe"]),
        ("SELECT name FROM t WHERE name BETWEEN 'A' AND 'a c' ORDER BY name", ["Zoe", "a b"]),
        ("SELECT answer(body, 'who?') FROM t ORDER BY answer(body, 'who?') LIMIT 2", ["None", "Zoe"]),
        ("SELECT name FROM t WHERE answer(body, 'who?') < 'a' ORDER BY name", ["Zoe", None]),
        ("SELECT max(answer(body, 'who?')) FROM t WHERE id < 5 GROUP BY id > 9", ["émile"]),
        (
            "SELECT a.name FROM t a JOIN (SELECT name FROM t ORDER BY name LIMIT 2) b ON a.name = b.name ORDER BY 1",
            ["Zoe", "a b"],
        ),
        ("SELECT string_agg(name, ',' ORDER BY name) FROM t", ["Zoe,a b,ab,anna,émile"]),
        ("SELECT name FROM t ORDER BY row_number() OVER (ORDER BY name) LIMIT 1", ["Zoe"]),
    ],
)
def test_rows_are_in_the_order_of_bytes(con: almanaq.Connection, sql: str, rows: list[str | None]) -> None:
    assert [row[0] for row in con.sql(sql).rows] == rows
