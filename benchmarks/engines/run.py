"""Text predicates over 10 million rows in PostgreSQL: rows that reach the client, and time against plain SQL.

    psql -v rows=10000000 -f benchmarks/engines/make_rows.sql URL
    python benchmarks/engines/run.py URL --out benchmarks/engines/results.json

The server needs pg_stat_statements and auto_explain preloaded (`shared_preload_libraries`) and this user the right to
read the log's folder or none at all: what is counted comes from pg_stat_statements, the server's own book. The model
is a function of the text without latency, so that all time is the database's and ours.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

import almanaq
from almanaq.testing import FunctionModel

ROUNDS = 5


@dataclass(frozen=True)
class Query:
    """A SUQL query and the same query without its text predicate."""

    name: str
    suql: str
    bare: str


FILTER = "r.city = 'city 7' AND r.stars >= 4 AND r.price < 20"
CALM = "answer(r.body, 'is it calm?') = 'Yes'"
JOIN = "FROM reviews r JOIN owners o ON o.id = r.owner"
QUERIES = (
    Query(
        "filter",
        f"SELECT r.id, r.city FROM reviews r WHERE {FILTER} AND {CALM} LIMIT 5",
        f"SELECT r.id, r.city FROM reviews r WHERE {FILTER} LIMIT 5",
    ),
    Query(
        "filter, sort",
        f"SELECT r.id, r.price FROM reviews r WHERE {FILTER} AND {CALM} ORDER BY r.price, r.id LIMIT 5",
        f"SELECT r.id, r.price FROM reviews r WHERE {FILTER} ORDER BY r.price, r.id LIMIT 5",
    ),
    Query(
        "filter, join, sort",
        f"SELECT r.id, o.name {JOIN} WHERE {FILTER} AND o.chain AND {CALM} ORDER BY r.visited DESC, r.id LIMIT 5",
        f"SELECT r.id, o.name {JOIN} WHERE {FILTER} AND o.chain ORDER BY r.visited DESC, r.id LIMIT 5",
    ),
    Query(
        "filter, join, group above",
        f"SELECT o.name, count(*) {JOIN} WHERE {FILTER} AND o.chain AND r.visited > '2024-06-01' AND {CALM} "
        "GROUP BY o.name ORDER BY 2 DESC, 1 LIMIT 5",
        f"SELECT o.name, count(*) {JOIN} WHERE {FILTER} AND o.chain AND r.visited > '2024-06-01' "
        "GROUP BY o.name ORDER BY 2 DESC, 1 LIMIT 5",
    ),
)


def said(text: str, question: str) -> str | None:
    """Read the answer off the text."""
    return "Yes" if "calm=Yes" in text else "No"


def measure(url: str, query: Query) -> dict[str, Any]:
    """Give the medians of both queries in turn, and what the server says reached the client."""
    model = FunctionModel(said)
    con = almanaq.connect(url, model=model, order="table", speculation=1, cache=False)
    con.sql("SELECT 1")
    ours, bare = [], []
    with psycopg.connect(url, autocommit=True) as other:
        for _ in range(ROUNDS):
            started = time.perf_counter()
            other.execute(query.bare).fetchall()
            bare.append(time.perf_counter() - started)
            other.execute("SELECT pg_stat_statements_reset()")
            started = time.perf_counter()
            result = con.sql(query.suql)
            ours.append(time.perf_counter() - started)
            sent = rows_sent(other)
    con.close()
    a, b = statistics.median(ours), statistics.median(bare)
    return {
        "query": query.name,
        "suql": query.suql,
        "rows": len(result.rows),
        "text_calls": result.trace.text_calls,
        "rows_to_client": sent,
        "seconds": round(a, 3),
        "bare_seconds": round(b, 3),
        "ratio": round(a / b, 2),
    }


def rows_sent(other: psycopg.Connection[Any]) -> int:
    """Give the rows that SELECT and FETCH statements sent since the book was reset, ours about the book left out."""
    row = other.execute(
        "SELECT coalesce(sum(rows), 0)::int FROM pg_stat_statements WHERE query ~* '^\\s*(select|fetch|with)' "
        "AND query !~ 'pg_stat_statements'"
    ).fetchone()
    return int(row[0]) if row else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    with psycopg.connect(given.url, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        row = connection.execute(
            "SELECT version(), (SELECT reltuples::bigint FROM pg_class WHERE relname = 'reviews')"
        ).fetchone()
        assert row is not None
        server = {"version": str(row[0]).split(" (")[0], "rows": row[1]}
    results = {"server": server, "rounds": ROUNDS, "queries": [measure(given.url, query) for query in QUERIES]}
    text = json.dumps(results, indent=2)
    print(text)
    if given.out:
        given.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
