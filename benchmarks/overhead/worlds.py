"""The data of the overhead benchmark, and the queries that are compared over it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

ROWS = 1_000_000
CALLS = 10_000

PREDICATES = {
    "equality": "district = 'district 7'",
    "pattern": "body ILIKE '%visit 777%'",
}
"""Structured predicates that keep one row in a thousand: one is decided in no time, one reads every text."""


def structured(predicate: str) -> str:
    """Return what the database does by itself: fetch the key and the text of every row that the predicate keeps."""
    return f"SELECT id, body FROM visits WHERE {predicate}"


def query(predicate: str) -> str:
    """Return the query whose overhead is measured."""
    return f"SELECT id FROM visits WHERE {predicate} AND answer(body, 'is it calm?') = 'Yes' LIMIT 3"


FILTER = "filter"


def statements(name: str) -> tuple[str, str]:
    """Return what the database does by itself, and our query that is set beside it: the same where nothing is asked."""
    if name == FILTER:
        sql = f"SELECT id, body FROM visits WHERE {PREDICATES['equality']} ORDER BY id LIMIT 5"
        return sql, sql
    return structured(PREDICATES[name]), query(PREDICATES[name])


def write(path: Path) -> None:
    """Write a database with a million visits, each with a text of 30 words."""
    import duckdb

    words = "['soup','patio','candle','queue','bright','late','warm','corner','window','garden','calm','loud']"
    with duckdb.connect(str(path)) as con:
        con.execute(
            f"""
            CREATE TABLE visits AS
            SELECT i AS id,
                   'district ' || hash(i) % 1000 AS district,
                   'visit ' || i || ': ' || array_to_string(
                       list_transform(range(30), lambda x: {words}[1 + (hash(i * 31 + x) % 12)::INT]), ' ') AS body
            FROM range({ROWS}) AS r(i)
            """
        )


def calm(text: str, question: str) -> str:
    """Answer by a word of the text, at no latency."""
    return "Yes" if text.count("calm") >= 4 else "No"


def many_texts() -> Any:
    """Return a table of as many different texts as calls are to be made."""
    import pyarrow as pa

    return pa.table({"id": range(CALLS), "body": [f"visit {i}: {'calm ' * (i % 6)}" for i in range(CALLS)]})
