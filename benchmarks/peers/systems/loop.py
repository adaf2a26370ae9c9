"""The other end of the benchmark's pipe: a task a line, its rows and seconds a line."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

Run = Callable[[str, str, dict[str, list[dict[str, Any]]]], list[Any]]
"""A task's name, its SUQL and its tables to the rows."""


def serve(run: Run) -> None:
    """Run each task that comes in; what a system prints goes to stderr."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        with open(json.loads(line), encoding="utf-8") as file:
            task = json.load(file)
        started = time.perf_counter()
        try:
            found = {"rows": [list(row) for row in run(task["name"], task["sql"], task["tables"])]}
        except Exception as error:  # a system's failure is a result
            found = {"error": f"{type(error).__name__}: {error}"[:300]}
        found["seconds"] = time.perf_counter() - started
        print(json.dumps(found, default=str), file=out, flush=True)
