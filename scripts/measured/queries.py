"""Queries with text functions: laws, calls, time."""

from __future__ import annotations

import json
from itertools import groupby

from measured.results import ROOT, markdown


def laws() -> str:
    """Generated queries compared with the database itself, with text functions as plain functions called per row."""
    found = json.loads((ROOT / "tests" / "laws" / "results.json").read_text())
    rows = []
    for commit, group in groupby(found["runs"], key=lambda run: run["commit"]):
        runs = list(group)
        summed = ("compared", "differ", "text_calls", "naive_text_calls", "more_than_naive")
        totals = [f"{sum(run[name] for run in runs):,}" for name in summed]
        rows.append((f"{runs[0]['first_seed']:,} – {runs[-1]['last_seed']:,}", f"`{commit}`", *totals))
    head = ("seeds", "commit", "queries compared", "differ", "text calls", "naive text calls", "queries with more")
    return markdown(head, rows)


def calls() -> str:
    """Model calls of the benchmark's tasks, beside those of other plans for the same rows."""
    tasks = json.loads((ROOT / "benchmarks" / "text_calls" / "results.json").read_text())["tasks"]
    rows = [
        (
            task["task"],
            *(str(task.get(key, "–")) for key in ("naive", "dnf", "floor")),
            str(task["speculation_1"]["calls"]),
            str(task["default"]["calls"]),
        )
        for task in tasks
    ]
    return markdown(("task", "naive", "DNF (the paper's)", "floor", "ours, speculation 1", "ours, default"), rows)


def accuracy() -> str:
    """Rows asked and targets missed by filters under targets, beside other methods over the same scores."""
    found = json.loads((ROOT / "benchmarks" / "accuracy" / "results.json").read_text())
    rows = [
        (row["task"], row["method"], f"{row['target']:g}", f"{row['asked']:.3f}", f"{row['missed']:.2f}")
        for row in found["rows"]
    ]
    return markdown(("rows", "method", "target of both", "share asked", f"missed in {found['seeds']} seeds"), rows)


def sembench() -> str:
    """Quality and calls of SemBench's ten Movie queries, by what answers."""
    runs = [
        json.loads((ROOT / "experiments" / "sembench" / f"movie-{name}.json").read_text())["result"]["metrics"]
        for name in ("labels", "local")
    ]
    names = [f"Q{number}" for number in range(1, 11)]
    rows = [
        (name, *(cell for run in runs for cell in (f"{run[f'calls_{name}']:,.0f}", f"{run[f'quality_{name}']:.2f}")))
        for name in names
    ]
    return markdown(("query", "calls, by the labels", "quality", "calls, `local`", "quality"), rows)


def overhead() -> str:
    """Our time and memory without the model over the database's own, on a million rows."""
    measured = json.loads((ROOT / "benchmarks" / "overhead" / "results.json").read_text())["a_million_rows"]
    rows = []
    for case in (value for value in measured.values() if isinstance(value, dict)):
        orders = [order for order in ("table", "similarity") if order in case]
        for order, found in [(order, case[order]) for order in orders] or [("–", case)]:
            ours = [
                (
                    f"{found[name]['median_ms']:.1f} ms",
                    f"{found[name]['time_ratio']:.2f}",
                    f"{found[name]['cpu_ratio']:.2f}",
                )
                for name in ("again", "new")
            ]
            own = f"{found['database']['median_ms']:.1f} ms"
            memory = f"{found['memory_ratio']:.2f}" if "memory_ratio" in found else "–"
            asked = case["predicate"] if orders else "the first, without a question, ORDER BY id LIMIT 5"
            rows.append((f"`{asked}`" if orders else asked, order, own, *ours[0], *ours[1], memory))
    times = ("asked again", "ratio", "of CPU time", "new", "ratio", "of CPU time")
    return markdown(("structured predicate", "order", "database", *times, "memory ratio"), rows)


def engines() -> str:
    """Text predicates over 10 million rows in PostgreSQL: rows that leave it, and seconds beside plain SQL."""
    measured = json.loads((ROOT / "benchmarks" / "engines" / "results.json").read_text())
    rows = [
        (
            query["query"],
            query["order"],
            str(query["rows_to_client"]),
            str(query["text_calls"]),
            _ms(query["seconds"]),
            _ms(query["new_seconds"]) if "new_seconds" in query else "–",
            _ms(query["bare_seconds"]),
            f"{query['ratio_to_bare']:.2f}",
            _ms(query["read_seconds"]),
        )
        for query in measured["queries"]
    ]
    head = ("query", "order", "rows to the client", "text calls", "asked again", "new", "without the text predicate")
    return markdown((*head, "ratio", "only reading the same rows"), rows)


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:,.1f} ms"


TABLES = {
    "laws": laws,
    "accuracy": accuracy,
    "calls": calls,
    "sembench": sembench,
    "overhead": overhead,
    "engines": engines,
}
