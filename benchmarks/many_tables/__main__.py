"""How long `ask` with `local` takes over a source of many tables, once open: `python -m benchmarks.many_tables`.

The tables are made here: things of several trades, each with a table of their own, and tables that refer to them. Every
question is about one of them, in words that others have too (town, price, year). Printed are the milliseconds of the
first question, which makes the source searchable, and of the others, by the clock and by the processor; and how many
were answered from the table that they are about. `--out FILE` keeps it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb

import almanaq

THINGS = """violin tractor lighthouse bakery glacier orchard ferry kiln turbine library beehive quarry harbor tunnel
    telescope sawmill vineyard windmill castle dam""".split()
"""Each has a table of its own, and one of its inspections."""
ROWS = 400
QUESTIONS = (
    "how many {0}s are there",
    "average price of {0}s by town",
    "which {0} has the highest price",
    "how many {0} inspections were there in 2024",
    "{0}s built before 1950",
)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--out", type=Path)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trades.duckdb"
        tables = build(file)
        record = {"command": "python -m benchmarks.many_tables", "tables": tables, **measure(file), **_machine()}
    text = json.dumps(record, indent=2)
    print(text)
    if given.out is not None:
        given.out.write_text(text + "\n", encoding="utf-8")


def build(file: Path) -> int:
    """Write the tables; give how many."""
    with duckdb.connect(str(file)) as made:
        for at, thing in enumerate(THINGS):
            made.sql(
                f"CREATE TABLE {_plural(thing)} AS SELECT i AS {thing}_id, '{thing.title()} ' || i AS name, "
                f"['Ulm', 'Bonn', 'Trier', 'Jena'][1 + (i * {at + 3}) % 4] AS town, 1900 + (i * 7) % 120 AS built, "
                f"round(10 + (i * {at + 11}) % 997 + i / 1000, 3) AS price FROM range({ROWS}) t(i)"
            )
            made.sql(
                f"CREATE TABLE {thing}_inspections AS SELECT i AS inspection_id, i % {ROWS} AS {thing}_id, "
                f"DATE '2023-01-01' + CAST((i * 3) % 900 AS INTEGER) AS inspected, 1 + i % 10 AS score "
                f"FROM range({2 * ROWS}) t(i)"
            )
        return len(made.sql("SHOW TABLES").fetchall())


def measure(file: Path) -> dict[str, Any]:
    """Ask every question once; give what each took."""
    clock, processor, right = [], [], 0
    with almanaq.connect(str(file), model="local", cache=False) as connection:
        for pattern in QUESTIONS:
            for thing in THINGS:
                start, used = time.perf_counter(), time.process_time()
                reply = connection.ask(
                    pattern.format(thing).replace("librarys", "libraries").replace("quarrys", "quarries")
                )
                clock.append(1e3 * (time.perf_counter() - start))
                processor.append(1e3 * (time.process_time() - used))
                right += reply.status == "answered" and thing[:5] in (reply.suql or "")
    first = {"clock": round(clock[0], 1), "processor": round(processor[0], 1)}
    return {
        "questions": len(clock),
        "answered from their table": right,
        "first question, ms": first,
        "others, ms": {"clock": _spread(clock[1:]), "processor": _spread(processor[1:])},
    }


def _plural(thing: str) -> str:
    return thing[:-1] + "ies" if thing.endswith("y") else thing + "s"


def _spread(milliseconds: list[float]) -> dict[str, float]:
    cuts = statistics.quantiles(milliseconds, n=20)
    return {"p50": round(statistics.median(milliseconds), 1), "p95": round(cuts[-1], 1)}


def _machine() -> dict[str, Any]:
    return {"load": [round(x, 1) for x in os.getloadavg()], "python": platform.python_version()}


if __name__ == "__main__":
    main()
