"""How long files take to open: `python -m benchmarks.files [--runs N] [--gigabytes N] [--out FILE]` prints JSON.

- a CSV file of 300,000 × 5 (a number, a day, a word of five, a fraction, prose), opened with its catalog, against what
  DuckDB's own reader takes, with its own guesses and into memory, each in its turn; the first time, the work of keeping
  it, and again;
- Parquet files of so many gigabytes together (one of a gigabyte, under as many names): opening them with their catalog,
  and the time and memory of `almanaq find` over them;
- a CSV file of 2,000 columns, a SQLite file of 400 empty tables, 10,000 documents of 5 kB: the first time and again.

On the clock, and as the work of all threads, which other programs on the machine do not lengthen. Exit status 1 when a
bound is passed: twice DuckDB's work the first time, 0.3 s again; Parquet in 1 s, `find` in 500 MB; the work of many
columns or tables 1 s, of documents 10 s, and 0.3 s again.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from statistics import median
from typing import Any

ROWS, RATIO, AGAIN, PARQUET, MEGABYTES = 300_000, 2.0, 0.3, 1.0, 500
MANY = {"columns": (2_000, 1.0), "tables": (400, 1.0), "documents": (10_000, 10.0)}
"""How many of each, and the seconds of work that opening them may take."""
_PEAK = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""
"""Prints the peak of a command in KiB: of a child of this process it would be at least what this process holds."""
_WORDS = "the of and lamp table oak chair red green light north port river stone glass paper".split()


def main() -> int:
    """Measure all, print JSON, give the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.files", description=__doc__)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--gigabytes", type=int, default=10)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    report: dict[str, Any] = {"versions": _versions(), "load_average": os.getloadavg()[0]}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ALMANAQ_CACHE_DIR"] = str(Path(folder) / "cache")
        report["csv"] = _csv(Path(folder), given.runs)
        report["parquet"] = _parquet(Path(folder), given.gigabytes, given.runs)
        report["many"] = [_many(Path(folder), what, min(given.runs, 3)) for what in MANY]
    text = json.dumps(report, indent=1)
    if given.out:
        given.out.write_text(text + "\n", encoding="utf-8")
    print(text)
    return 0 if all(each["within"] for each in (report["csv"], report["parquet"], *report["many"])) else 1


def _csv(folder: Path, runs: int) -> dict[str, Any]:
    """Open the CSV file in turns with DuckDB."""
    import duckdb

    from almanaq.engines.files.table_cache import default_table_cache
    from almanaq.engines.open_source import open_database

    path = _write_rows(folder / "sales.csv")
    times: dict[str, list[tuple[float, float]]] = {"duckdb": [], "first": [], "keeping": [], "again": []}

    def plain() -> None:
        with duckdb.connect() as connection:
            connection.execute(f"CREATE TABLE t AS FROM read_csv('{path}')")

    opened: Any = None

    def ours() -> None:
        nonlocal opened
        opened = open_database(path)
        opened.catalog()

    for run in range(runs + 1):
        tables = default_table_cache()
        assert tables is not None
        tables.clear()
        for name, work in (("duckdb", plain), ("first", ours), ("keeping", lambda: opened.close()), ("again", ours)):
            took = _time_work(work)
            if run:  # the first run imports
                times[name].append(took)
        opened.close()
    found = {name: _middle(each) for name, each in times.items()}
    work_ratio = found["first"]["work_s"] / found["duckdb"]["work_s"]
    clock_ratio = found["first"]["clock_s"] / found["duckdb"]["clock_s"]
    return {
        "rows": ROWS,
        "megabytes": round(path.stat().st_size / 1e6, 1),
        **found,
        "ratio": round(work_ratio, 2),
        "clock_ratio": round(clock_ratio, 2),
        "within": work_ratio <= RATIO and found["again"]["clock_s"] <= AGAIN,
    }


def _parquet(folder: Path, gigabytes: int, runs: int) -> dict[str, Any]:
    """Open Parquet files of so many gigabytes, and search them."""
    from almanaq.engines.open_source import open_database

    data = folder / "data"
    data.mkdir()
    first = data / "visits_0.parquet"
    rows = _write_parquet(first)
    for number in range(1, gigabytes):
        os.link(first, data / f"visits_{number}.parquet")

    def ours() -> None:
        database = open_database(data)
        database.catalog()
        database.close()

    took = _middle([_time_work(ours) for _ in range(runs + 1)][1:])
    command = [sys.executable, "-m", "almanaq", "find", "visits of north port", "--corpus", str(data), "--nearest"]
    environment = os.environ | {"ALMANAQ_EMBEDDER": "lexical"}
    started = time.perf_counter()
    told = subprocess.run([sys.executable, "-c", _PEAK, *command], check=True, capture_output=True, env=environment)
    seconds = time.perf_counter() - started
    peak = int(told.stdout) / 1024
    return {
        "files": gigabytes,
        "gigabytes": round(first.stat().st_size * gigabytes / 1e9, 1),
        "rows": rows * gigabytes,
        "open": took,
        "find_s": round(seconds, 2),
        "find_mib": round(peak),
        "within": took["clock_s"] <= PARQUET and peak <= MEGABYTES,
    }


def _many(folder: Path, what: str, runs: int) -> dict[str, Any]:
    """Open a source of many columns, tables or documents, for the first time and again."""
    from almanaq.engines.files.table_cache import default_table_cache
    from almanaq.engines.open_source import open_database

    count, most = MANY[what]
    path = folder / {"columns": "wide.csv", "tables": "many.sqlite", "documents": "texts"}[what]
    dice = random.Random(1)
    if what == "columns":
        rows = [[str(dice.randrange(1000)) for _ in range(count)] for _ in range(50)]
        path.write_text("\n".join(",".join(row) for row in [[f"c{at}" for at in range(count)], *rows]) + "\n")
    elif what == "tables":
        with sqlite3.connect(path) as made:
            for at in range(count):
                made.execute(f"CREATE TABLE t{at} (id INTEGER PRIMARY KEY, name TEXT, price REAL, day DATE)")
        made.close()
    else:
        path.mkdir()
        for at in range(count):
            (path / f"{at}.txt").write_text("\n\n".join(" ".join(dice.choices(_WORDS, k=100)) for _ in range(10)))
    times: dict[str, list[tuple[float, float]]] = {"first": [], "again": []}
    opened: Any = None

    def work() -> None:
        nonlocal opened
        opened = open_database(path)
        opened.catalog()

    for _ in range(runs):
        tables = default_table_cache()
        assert tables is not None
        tables.clear()
        for each in times.values():
            each.append(_time_work(work))
            opened.close()  # which keeps the tables
    found = {name: _middle(each) for name, each in times.items()}
    within = found["first"]["work_s"] <= most and (what != "documents" or found["again"]["work_s"] <= AGAIN)
    return {"what": what, "count": count, **found, "within": within}


def _time_work(work: Callable[[], Any]) -> tuple[float, float]:
    """Return the seconds on the clock, and those that all threads worked."""
    clock, used = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - clock, time.process_time() - used


def _middle(times: list[tuple[float, float]]) -> dict[str, float]:
    clock, used = zip(*times, strict=True)
    return {"clock_s": round(median(clock), 3), "work_s": round(median(used), 3)}


def _write_rows(path: Path) -> Path:
    dice, start = random.Random(1), date(2015, 1, 1)
    with path.open("w", encoding="utf-8") as file:
        file.write("id,day,city,amount,note\n")
        for number in range(1, ROWS + 1):
            day = start + timedelta(days=dice.randrange(3000))
            city, note = dice.choice(("Rome", "Oslo", "Paris", "Lyon", "Bern")), " ".join(dice.choices(_WORDS, k=14))
            file.write(f"{number},{day},{city},{dice.random() * 1000:.2f},{note}\n")
    return path


def _write_parquet(path: Path) -> int:
    """Write a Parquet file of about a gigabyte, in row groups as DuckDB writes them; give its number of rows."""
    import duckdb

    rows = 16_000_000
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT range AS id, random() AS x, random() AS y, random() AS z, random() AS u, random() AS v,"
            f" random() AS w, random() AS q, ['Rome', 'Oslo', 'Paris'][1 + range % 3] AS city,"
            f" 'visit ' || range || ' of north port' AS note FROM range({rows})) TO '{path}' (FORMAT parquet)"
        )
    return rows


def _versions() -> dict[str, str]:
    return {
        "python": platform.python_version(),
        "system": platform.machine(),
        **{name: importlib.metadata.version(name) for name in ("duckdb", "pyarrow")},
    }


if __name__ == "__main__":
    sys.exit(main())
