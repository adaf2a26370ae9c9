"""Counts text calls: `python -m benchmarks.text_calls [--queries FILE] [--out FILE]` prints JSON.

`--queries` is the Parquet file of the `suql_restaurants` queries; they run over the bundled sample, answered by its
ground truth. Exit status 1 when a result is wrong or a bound is passed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import sqlglot
from sqlglot import exp

import almanaq
from almanaq.testing import FunctionModel

from .floors import counts
from .tasks import LATENCY, TASKS, Task, reply, table

RATIO = 1.5
"""Calls for WHERE against the floor, per query and in total."""


def main() -> int:
    """Run all, print JSON, give the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.text_calls", description=__doc__)
    parser.add_argument("--queries", type=Path, help="queries_single_turn.parquet of suql_restaurants")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    report: dict[str, Any] = {"tasks": [_task(t) for t in TASKS]}
    good = all(t["right"] and t["within"] for t in report["tasks"])
    if given.queries:
        report["restaurants"] = _restaurants(given.queries)
        good = good and report["restaurants"]["within"]
    text = json.dumps(report, indent=1)
    if given.out:
        given.out.write_text(text + "\n", encoding="utf-8")
    print(text)
    return 0 if good else 1


def _task(task: Task) -> dict[str, Any]:
    tables = {"t": table(equal_texts=task.equal_texts)}
    bounds = counts(task.sql, tables, reply) if task.floor else None
    most = task.most or (bounds.floor if bounds else 0)
    exact = _run(tables, reply, task.sql, speculation=1)
    default = _run(tables, reply, task.sql)
    checked = [_check(task, run["rows"], tables["t"]) for run in (exact, default)]
    right = all(right for right, _ in checked)
    within = exact["calls"] <= most and (task.most_default is None or default["calls"] <= task.most_default)
    for run, seconds in zip((exact, default), task.seconds, strict=True):
        within = within and (seconds is None or run["seconds"] <= seconds)
    found: dict[str, Any] = {"task": task.name, "sql": task.sql, "right": right, "within": within, "most": most}
    found["naive"] = bounds.naive if bounds else checked[0][1]
    if bounds:
        found |= {"dnf": bounds.dnf, "floor": bounds.floor}
    for name, run in (("speculation_1", exact), ("default", default)):
        found[name] = {"calls": run["calls"], "seconds": round(run["seconds"], 3)}
    return found


def _run(
    tables: Mapping[str, pa.Table] | str, answer: Callable[[str, str], str | None], sql: str, **options: Any
) -> dict[str, Any]:
    latency = options.pop("latency", LATENCY)
    warm = almanaq.connect({"w": pa.table({"b": ["x"]})}, model=FunctionModel(lambda *_: "Yes"), cache=False)
    warm.sql("SELECT b FROM w WHERE answer(b, 'q') = 'Yes' LIMIT 1")
    warm.close()
    model = FunctionModel(answer, latency=latency)
    con = almanaq.connect(tables, model=model, order="table", cache=False, **options)
    try:
        start = time.perf_counter()
        result = con.sql(sql)
        seconds = time.perf_counter() - start
    finally:
        con.close()
    if model.calls != result.trace.text_calls:
        raise AssertionError(f"{model.calls} calls, {result.trace.text_calls} in the trace: {sql}")
    return {"rows": list(result.rows), "calls": model.calls, "seconds": seconds}


def _check(task: Task, rows: list[tuple[Any, ...]], data: pa.Table) -> tuple[bool, int]:
    """Return whether rows are those of the database with Python functions for the text calls, and the calls it made."""
    from tests.laws.compare import difference, expect
    from tests.laws.oracle import Oracle

    oracle = Oracle({"t": data}, reply)
    try:
        expected = expect(oracle, task.sql)
    finally:
        oracle.close()
    names = [c or "" for c in expected.columns]
    return difference(expected, names, rows) is None, len(oracle.asked)


def _restaurants(path: Path) -> dict[str, Any]:
    from almanaq.sample import load
    from almanaq_bench.sample.truth import truth_function

    answer, tables = truth_function(), dict(load("restaurants").tables)
    found, skipped = [], []
    for row in pq.read_table(path, columns=["query_id", "predicted_suql"]).to_pylist():
        sql = row["predicted_suql"].rstrip("; \n")
        where = sqlglot.parse_one(sql, read="postgres").find(exp.Where)
        if where is None or not any(c.name.lower() == "answer" for c in where.find_all(exp.Anonymous)):
            continue
        try:
            found.append({"query_id": row["query_id"], "sql": sql} | _restaurant(sql, tables, answer))
        except Exception as error:  # a query of that set calls a function that no database here has
            skipped.append({"query_id": row["query_id"], "sql": sql, "why": f"{type(error).__name__}: {error}"[:200]})
    totals = {k: sum(f[k] for f in found) for k in ("where_calls", "naive", "dnf", "floor", "select_calls")}
    ratio = totals["where_calls"] / max(1, totals["floor"])
    worst = max((f["ratio"] for f in found), default=0.0)
    within = worst <= RATIO and ratio <= RATIO and all(f["where_calls"] <= f["dnf"] for f in found)
    summary = {"queries": len(found), "ratio": round(ratio, 3), "worst_ratio": worst, "within": within}
    return summary | {"totals": totals, "skipped": skipped, "each": found}


def _restaurant(sql: str, tables: dict[str, pa.Table], answer: Callable[[str, str], str | None]) -> dict[str, Any]:
    bounds = counts(sql, tables, answer)
    tree = sqlglot.parse_one(sql, read="postgres")
    tree.set("expressions", [exp.column("name")])
    options: dict[str, Any] = {"speculation": 1, "latency": 0, "link": False}
    where = _run(tables, answer, tree.sql("postgres"), **options)["calls"]
    whole = _run(tables, answer, sql, **options)["calls"]
    ratio = where / bounds.floor if bounds.floor else float(where > 0)
    return {
        "where_calls": where,
        "naive": bounds.naive,
        "dnf": bounds.dnf,
        "floor": bounds.floor,
        "ratio": round(ratio, 3),
        "select_calls": whole - where,
    }


if __name__ == "__main__":
    sys.exit(main())
