"""How long the agent takes for a turn without a model: `python -m benchmarks.agent [--write]`.

A conversation of twelve turns over sources of 20 and of 2,000 tables, with the local parser and a reader that replies
at once; opening the source is no part of a turn. `first` is the first time a conversation is held, when the values of
the tables that it speaks of are read; `again` the median of later ones; `processor` the time of processors that a turn
takes, which other work on the machine does not lengthen as much.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from pathlib import Path
from typing import Any

import almanaq
from almanaq.testing import FunctionModel

from .worlds import CONVERSATION, SMALL, tables

SIZES = (20, 2000)
BOUNDS = {20: 50.0, 2000: 150.0}
"""Milliseconds per turn that the project sets itself."""
REPEATS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the result to results.json")
    arguments = parser.parse_args()
    load = os.getloadavg()[0]
    measured = {"command": "python -m benchmarks.agent", "load_before": round(load, 2)}
    measured["sizes"] = [measure(size) for size in SIZES]  # type: ignore[assignment]
    text = json.dumps(measured, indent=2)
    print(text)
    if arguments.write:
        Path(__file__).with_name("results.json").write_text(text + "\n", encoding="utf-8")


def measure(size: int) -> dict[str, Any]:
    """Return the milliseconds per turn over a source of so many tables."""
    start = time.perf_counter()
    reader = FunctionModel(lambda text, question: "Yes" if "quiet here" in text else "No")
    with almanaq.connect(tables(size), model=reader, cache=False) as connection:
        opened = time.perf_counter() - start
        turns = CONVERSATION if size >= 200 else SMALL
        connection.ask("thanks")
        first, statuses = _hold(connection, turns)
        busy = time.process_time()
        again = [_hold(connection, turns)[0] for _ in range(REPEATS)]
        busy = (time.process_time() - busy) * 1000 / (REPEATS * len(turns))
    middle = [statistics.median(run[i] for run in again) for i in range(len(turns))]
    return {
        "tables": size,
        "bound_ms": BOUNDS[size],
        "open_seconds": round(opened, 2),
        "statuses": statuses,
        "first_median_ms": round(statistics.median(first), 1),
        "first_worst_ms": round(max(first), 1),
        "again_median_ms": round(statistics.median(middle), 1),
        "again_worst_ms": round(max(middle), 1),
        "again_processor_ms": round(busy, 1),
    }


def _hold(connection: almanaq.Connection, turns: tuple[str, ...]) -> tuple[list[float], list[str]]:
    """Hold a conversation; give the milliseconds of each turn, and how each was replied to."""
    chat = connection.chat()
    taken, statuses = [], []
    for question in turns:
        start = time.perf_counter()
        reply = chat.ask(question)
        taken.append((time.perf_counter() - start) * 1000)
        statuses.append(f"{reply.kind}: {reply.status}")
    return taken, statuses


if __name__ == "__main__":
    main()
