"""Text predicates over 10 million rows in PostgreSQL: rows that reach the client, and time against plain SQL.

    psql -v rows=10000000 -f benchmarks/engines/make_rows.sql URL
    python -m benchmarks.engines URL --log SERVERS_LOG --out benchmarks/engines/results.json

The user must be a superuser, who may ask for `auto_explain`: what was sent, and what ran in the server, is read from
the server's own log. The model is a function of the text without latency, so that all time is the database's and ours.
Ours is run in the same words each time, for which its plan is kept, and in new ones. Two plain queries stand beside it:
the same without its text predicate, and one that only brings the rows that had to be read, in the same order, to the
client. They take turns.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

import almanaq
from almanaq.testing import FunctionModel

from .server_log import log_statements, statements

ROUNDS = 7
FILTER = "r.city = 'city 7' AND r.stars >= 4 AND r.price < 20"
WIDE = "r.stars >= 2"
CALM = "answer(r.body, 'is it calm?') = 'Yes'"
JOIN = "FROM reviews r JOIN owners o ON o.id = r.owner"
RECENT = f"{FILTER} AND o.chain AND r.visited > '2024-06-01'"


@dataclass(frozen=True)
class Query:
    """A SUQL query, the same without its text predicate, and the rows it has to read (`{n}` of them)."""

    name: str
    suql: str
    bare: str
    read: str


QUERIES = (
    Query(
        "filter",
        f"SELECT r.id, r.city FROM reviews r WHERE {FILTER} AND {CALM} LIMIT 5",
        f"SELECT r.id, r.city FROM reviews r WHERE {FILTER} LIMIT 5",
        f"SELECT r.id, r.city, r.body FROM reviews r WHERE {FILTER} LIMIT {{n}}",
    ),
    Query(
        "wide filter",
        f"SELECT r.id, r.city FROM reviews r WHERE {WIDE} AND {CALM} LIMIT 5",
        f"SELECT r.id, r.city FROM reviews r WHERE {WIDE} LIMIT 5",
        f"SELECT r.id, r.city, r.body FROM reviews r WHERE {WIDE} LIMIT {{n}}",
    ),
    Query(
        "filter, sort",
        f"SELECT r.id, r.price FROM reviews r WHERE {FILTER} AND {CALM} ORDER BY r.price, r.id LIMIT 5",
        f"SELECT r.id, r.price FROM reviews r WHERE {FILTER} ORDER BY r.price, r.id LIMIT 5",
        f"SELECT r.id, r.price, r.body FROM reviews r WHERE {FILTER} ORDER BY r.price, r.id LIMIT {{n}}",
    ),
    Query(
        "filter, join, sort",
        f"SELECT r.id, o.name {JOIN} WHERE {FILTER} AND o.chain AND {CALM} ORDER BY r.visited DESC, r.id LIMIT 5",
        f"SELECT r.id, o.name {JOIN} WHERE {FILTER} AND o.chain ORDER BY r.visited DESC, r.id LIMIT 5",
        f"SELECT r.id, o.name, r.body {JOIN} WHERE {FILTER} AND o.chain ORDER BY r.visited DESC, r.id LIMIT {{n}}",
    ),
    Query(
        "filter, join, group above",
        f"SELECT o.name, count(*) {JOIN} WHERE {RECENT} AND {CALM} GROUP BY o.name ORDER BY 2 DESC, 1 LIMIT 5",
        f"SELECT o.name, count(*) {JOIN} WHERE {RECENT} GROUP BY o.name ORDER BY 2 DESC, 1 LIMIT 5",
        f"SELECT o.name, r.body {JOIN} WHERE {RECENT} LIMIT {{n}}",
    ),
)


def read_answer(text: str, question: str) -> str | None:
    """Read the answer off the text."""
    return "Yes" if "calm=Yes" in text else "No"


def measure(url: str, log: Path, query: Query, order: str) -> dict[str, Any]:
    """Return the medians of three queries in turn, and what the server's log says of ours."""
    result, sent = prove(url, log, query, order)
    read = query.read.format(n=result.trace.candidate_rows)
    taken: dict[str, list[tuple[float, float]]] = {"again": [], "new": [], "bare": [], "read": []}
    con = connect(url, order)
    with psycopg.connect(url, autocommit=True) as other:
        con.sql(query.suql)  # what is imported and learned once
        for number in range(1, ROUNDS + 1):
            taken["bare"].append(time_run(lambda: other.execute(query.bare).fetchall()))
            taken["read"].append(time_run(lambda: other.execute(read).fetchall()))
            taken["again"].append(time_run(lambda: con.sql(query.suql)))
            taken["new"].append(time_run(lambda n=number: con.sql(query.suql + " " * n)))  # type: ignore[misc]
    con.close()
    a, n, b, c = (statistics.median(seconds for seconds, _ in found) for found in taken.values())
    work, new_work = (statistics.median(cpu for _, cpu in taken[name]) for name in ("again", "new"))
    return {
        "query": query.name,
        "order": order,
        "suql": query.suql,
        "rows": len(result.rows),
        "text_calls": result.trace.text_calls,
        "candidate_rows": result.trace.candidate_rows,
        **sent,
        "seconds": round(a, 5),
        "cpu_seconds_of_client": round(work, 5),
        "new_seconds": round(n, 5),
        "new_cpu_seconds_of_client": round(new_work, 5),
        "bare_seconds": round(b, 5),
        "ratio_to_bare": round(a / b, 2),
        "new_ratio_to_bare": round(n / b, 2),
        "read_seconds": round(c, 5),
        "ratio_to_read": round(a / c, 2),
    }


def prove(url: str, log: Path, query: Query, order: str) -> tuple[Any, dict[str, Any]]:
    """Run a query once while the server logs it; give its result, and the rows sent and the work done there."""
    before = log.stat().st_size
    con = connect(log_statements(url), order)
    start = log.stat().st_size if con.engine.catalog else 0
    result = con.sql(query.suql)
    con.close()
    ran = list(statements(log, start))
    everything = sum(statement.rows_sent for statement in statements(log, before))
    sent = sum(statement.rows_sent for statement in ran)
    nodes = sorted({node for statement in ran for node in statement.nodes})
    return result, {
        "rows_to_client": sent,
        "catalog_and_samples": everything - sent,
        "statements": len(ran),
        "in_the_server": nodes,
    }


def connect(url: str, order: str) -> almanaq.Connection:
    """Connect with the model that answers at once."""
    return almanaq.connect(url, model=FunctionModel(read_answer), order=order, speculation=1, cache=False)  # type: ignore[arg-type]


def time_run(run: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds that a call takes, on the clock and of this process's work."""
    started, cpu = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - started, time.process_time() - cpu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    with psycopg.connect(given.url, autocommit=True) as connection:
        row = connection.execute(
            "SELECT version(), (SELECT reltuples::bigint FROM pg_class WHERE relname = 'reviews')"
        ).fetchone()
        assert row is not None
    server = {"version": str(row[0]).split(" (")[0], "rows": row[1], "load_average": round(os.getloadavg()[0], 1)}
    measured = [measure(given.url, given.log, q, order) for q in QUERIES for order in ("table", "similarity")]
    text = json.dumps({"server": server, "rounds": ROUNDS, "queries": measured}, indent=2)
    print(text)
    if given.out:
        given.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
