"""One measurement in a process of its own, so that its peak memory is its own; prints JSON.

`python -m benchmarks.overhead.measure {write | database | ours | turns | calls} FILE ORDER PREDICATE RUNS`
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .worlds import calm, many_texts, statements, write

Run = Callable[[], tuple[int, int]]


def main() -> None:
    """Measure, and print what was found."""
    kind, path, order, predicate, runs = sys.argv[1:6]
    if kind == "write":
        write(Path(path))
        print("{}")
        return
    if kind == "turns":
        print(json.dumps(_turns(path, order, predicate, int(runs))))
        return
    makers: dict[str, Callable[[], Run]] = {
        "database": lambda: _database(path, statements(predicate)[0]),
        "ours": lambda: _ours(path, statements(predicate)[1], order=order),
        "calls": lambda: _ours({"t": many_texts()}, "SELECT id FROM t WHERE answer(body, 'calm?') = 'Yes'"),
    }
    run = makers[kind]()
    started = time.perf_counter()
    rows, calls = run()
    first = time.perf_counter() - started
    taken = [_time_run(run) for _ in range(int(runs))]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 * 1024 if sys.platform == "darwin" else 1024)
    found = {"first": first, "taken": taken, "rows": rows, "calls": calls, "peak_mib": peak}
    print(json.dumps(found))


def _turns(path: str, order: str, predicate: str, rounds: int) -> dict[str, Any]:
    """Return the times of the database, of a query that ran before, and of one in new words, each in its turn."""
    alone, sql = statements(predicate)
    turns = {
        "database": _database(path, alone),
        "again": _ours(path, sql, order=order),
        "new": _ours(path, sql, order=order, new=True),
    }
    found = {name: {"counts": run(), "taken": []} for name, run in turns.items()}
    for _ in range(rounds):
        for name, run in turns.items():
            found[name]["taken"].append(_time_run(run))  # type: ignore[attr-defined]
    return found


def _time_run(run: Run) -> tuple[float, float]:
    """Return the seconds that a run takes, on the clock and of all its threads' work."""
    start, cpu = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - start, time.process_time() - cpu


def _database(path: str, sql: str) -> Run:
    """The database by itself, fetching as Arrow, as we do."""
    import duckdb

    con = duckdb.connect()
    con.execute(f"ATTACH '{path}' AS visits_file (READ_ONLY)")
    con.execute("USE visits_file")
    return lambda: (con.sql(sql).to_arrow_table().num_rows, 0)


def _ours(source: Any, sql: str, *, new: bool = False, **options: Any) -> Run:
    """Our query; `new` words it otherwise each time, by a space, for the plan of a known text is kept."""
    import almanaq
    from almanaq.testing import FunctionModel

    con = almanaq.connect(source, model=FunctionModel(calm), cache=False, **options)
    spaces = [""]

    def run() -> tuple[int, int]:
        if new:
            spaces.append(" ")
        result = con.sql(sql + "".join(spaces))
        return len(result.rows), result.trace.text_calls

    return run


if __name__ == "__main__":
    main()
