"""One measurement in a process of its own, so that its peak memory is its own; prints JSON.

`python -m benchmarks.overhead.measure {write | database | ours | calls} FILE ORDER PREDICATE RUNS`
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .worlds import PREDICATES, calm, many_texts, query, structured, write

Run = Callable[[], tuple[int, int]]


def main() -> None:
    """Measure; print the seconds of each run after a first one, its rows and calls, and the peak memory in MiB."""
    kind, path, order, predicate, runs = sys.argv[1:6]
    if kind == "write":
        write(Path(path))
        print("{}")
        return
    makers: dict[str, Callable[[], Run]] = {
        "database": lambda: _database(path, structured(PREDICATES[predicate])),
        "ours": lambda: _ours(path, query(PREDICATES[predicate]), order=order),
        "calls": lambda: _ours({"t": many_texts()}, "SELECT id FROM t WHERE answer(body, 'calm?') = 'Yes'"),
    }
    run = makers[kind]()
    first, rows, calls = _timed(run)
    seconds = [_timed(run)[0] for _ in range(int(runs))]
    cpu = time.process_time()
    run()
    cpu = time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 * 1024 if sys.platform == "darwin" else 1024)
    found = {"first": first, "seconds": seconds, "cpu": cpu, "rows": rows, "calls": calls, "peak_mib": peak}
    print(json.dumps(found))


def _timed(run: Run) -> tuple[float, int, int]:
    start = time.perf_counter()
    rows, calls = run()
    return time.perf_counter() - start, rows, calls


def _database(path: str, sql: str) -> Run:
    """The database by itself, fetching as Arrow, as we do."""
    import duckdb

    con = duckdb.connect(path, read_only=True)
    return lambda: (con.sql(sql).to_arrow_table().num_rows, 0)


def _ours(source: Any, sql: str, **options: Any) -> Run:
    import almanaq
    from almanaq.testing import FunctionModel

    con = almanaq.connect(source, model=FunctionModel(calm), cache=False, **options)

    def run() -> tuple[int, int]:
        result = con.sql(sql)
        return len(result.rows), result.trace.text_calls

    return run


if __name__ == "__main__":
    main()
