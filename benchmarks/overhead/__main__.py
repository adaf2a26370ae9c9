"""What the compiler itself costs: `python -m benchmarks.overhead [--runs N] [--out FILE]` prints JSON.

- (a) a million rows, a structured predicate that keeps a thousandth, a text predicate, LIMIT 3, against the database's
  own time and memory for the structured part (the model answers at once), each in its turn: where the query ran before,
  and where it is a new one, which is planned first; on the clock, and as the work of all threads, which other
  programs on the machine do not lengthen;
  and likewise a filter of columns with LIMIT 5, in which nothing is asked; at most 1.5 times the database's own time
  where a query ran before, at most 3 times where it is new;
- (b) our time per text call, over 10,000 calls at no latency;
- (c) compiling the longest query of docs/language.md.

Exit status 1 when a bound is passed.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from .worlds import CALLS, FILTER, PREDICATES, ROWS, statements

ROOT = Path(__file__).parents[2]
RATIO, RATIO_OF_NEW, MS_PER_CALL, MS_TO_COMPILE = 1.5, 3.0, 0.2, 50.0


def main() -> int:
    """Measure all, print JSON, give the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overhead", description=__doc__)
    parser.add_argument("--runs", type=int, default=25)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    report: dict[str, Any] = {"versions": _versions(), "load_average": os.getloadavg()[0]}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "visits.duckdb"
        _measure("write", str(path), "-", "-", 0)
        report["a_million_rows"] = {
            "rows": ROWS,
            "bound": RATIO,
            "bound_of_new": RATIO_OF_NEW,
            **{name: _against_database(path, name, given.runs) for name in PREDICATES},
            "filter": _filter(path, given.runs),
        }
    report["calls_at_no_latency"] = _calls(given.runs)
    if (ROOT / "docs" / "language.md").is_file():
        report["compiling"] = _compiling()
    text = json.dumps(report, indent=1)
    if given.out:
        given.out.write_text(text + "\n", encoding="utf-8")
    print(text)
    return 0 if all(_within(report)) else 1


def _within(report: Any) -> list[bool]:
    """Return every verdict in a report."""
    if not isinstance(report, dict):
        return []
    own = [report["within"]] if "within" in report else []
    return own + [found for value in report.values() for found in _within(value)]


def _against_database(path: Path, predicate: str, runs: int) -> dict[str, Any]:
    base = _measure("database", str(path), "-", predicate, 3)
    found: dict[str, Any] = {"predicate": PREDICATES[predicate], "database": _memory(base)}
    for order in ("table", "similarity"):
        turns = _measure("turns", str(path), order, predicate, runs)
        ours = _measure("ours", str(path), order, predicate, 3)
        memory = round(ours["peak_mib"] / base["peak_mib"], 2)
        times = {name: _times(turn["taken"]) for name, turn in turns.items()}
        rows, calls = turns["again"]["counts"]
        found[order] = {
            **_memory(ours),
            "memory_ratio": memory,
            "memory_within": {"within": memory <= RATIO},
            "rows": rows,
            "calls": calls,
            "database": times["database"],
            **_beside(times),
        }
    return found


def _filter(path: Path, runs: int) -> dict[str, Any]:
    """A filter of columns with ORDER BY and LIMIT 5, in which nothing is asked: the same statement, run by us."""
    turns = _measure("turns", str(path), "table", FILTER, runs)
    times = {name: _times(turn["taken"]) for name, turn in turns.items()}
    return {"query": statements(FILTER)[0], "database": times["database"], **_beside(times)}


def _beside(times: dict[str, dict[str, float]]) -> dict[str, Any]:
    bounds = {"again": RATIO, "new": RATIO_OF_NEW}
    return {name: _compare_times(times[name], times["database"], bound) for name, bound in bounds.items()}


def _compare_times(ours: dict[str, float], base: dict[str, float], bound: float) -> dict[str, Any]:
    ratio = round(ours["median_ms"] / base["median_ms"], 2)
    cpu = round(ours["cpu_ms"] / base["cpu_ms"], 2)
    return {**ours, "time_ratio": ratio, "cpu_ratio": cpu, "within": ratio <= bound}


def _calls(runs: int) -> dict[str, Any]:
    measured = _measure("calls", "-", "-", "-", max(3, runs // 3))
    times = _times(measured["taken"])
    each = times["median_ms"] / CALLS
    bound = {"ms_per_call": round(each, 4), "bound": MS_PER_CALL, "within": each <= MS_PER_CALL}
    return {**times, **_memory(measured), "rows": measured["rows"], "calls": measured["calls"], **bound}


def _compiling() -> dict[str, Any]:
    sys.path.insert(0, str(ROOT / "src"))
    import almanaq
    from almanaq.testing import FunctionModel

    text = (ROOT / "docs" / "language.md").read_text(encoding="utf-8")
    sql = max(re.findall(r"```sql\n(.*?)```", text, re.S), key=len)
    sql = re.sub(r"^--.*\n", "", sql, flags=re.M)
    con = almanaq.connect("sample:restaurants", model=FunctionModel(lambda *_: None), cache=False)
    con.engine.plan("SELECT answer(reviews, 'a?') FROM restaurants")
    taken = []
    for number in range(15):
        start = time.perf_counter()
        con.engine.plan(sql + " " * number)  # another text each time: the plan of a known one is kept
        taken.append((time.perf_counter() - start) * 1000)
    con.close()
    ms = median(taken)
    first = {"first_ms": round(taken[0], 1), "median_ms": round(ms, 1)}
    return {"characters": len(sql), **first, "bound": MS_TO_COMPILE, "within": ms <= MS_TO_COMPILE}


def _measure(kind: str, path: str, order: str, predicate: str, runs: int) -> dict[str, Any]:
    """Measure in a process of its own; this one stays small, since a process begins with its parent's peak memory."""
    command = [sys.executable, "-m", "benchmarks.overhead.measure", kind, path, order, predicate, str(runs)]
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    done = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _times(taken: list[list[float]]) -> dict[str, float]:
    """Return the milliseconds on the clock, and the median of those of all threads' work."""
    clock = sorted(seconds * 1000 for seconds, _ in taken)
    cpu = median(seconds * 1000 for _, seconds in taken)
    shown = {"median_ms": median(clock), "least_ms": clock[0], "most_ms": clock[-1], "cpu_ms": cpu}
    return {name: round(value, 2) for name, value in shown.items()}


def _memory(measured: dict[str, Any]) -> dict[str, float]:
    """Return the peak memory of a process, and what its first query took, imports included."""
    return {"peak_mib": round(measured["peak_mib"], 1), "first_ms": round(measured["first"] * 1000, 1)}


def _versions() -> dict[str, str]:
    packages = ("duckdb", "pyarrow", "sqlglot", "numpy")
    found = {name: importlib.metadata.version(name) for name in packages}
    return {"python": platform.python_version(), "system": platform.machine(), **found}


if __name__ == "__main__":
    sys.exit(main())
