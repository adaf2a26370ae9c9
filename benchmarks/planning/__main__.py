"""What planning costs, beside an earlier commit: `python -m benchmarks.planning --before DIR [--out FILE]` prints JSON.

DIR is a checkout of the commit to compare with, as `git worktree add DIR COMMIT` makes one. Both run with this
interpreter and its packages, in processes of their own, taking turns; of the processor time that each query took the
least counts, which what else runs on the machine lengthens least. Compared are planning alone, and whole calls of
`con.sql` with a model that answers at once. Exit status 1 where either takes over a tenth longer than before.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
MOST = 1.10
TURNS = 12


class Tree:
    """A process that measures one checkout."""

    def __init__(self, checkout: Path) -> None:
        path = os.pathsep.join((str(checkout / "src"), str(ROOT)))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.planning.measure"],
            env=os.environ | {"PYTHONPATH": path},
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def turn(self, rounds: int) -> dict[str, dict[str, float]]:
        """Return the least milliseconds of each query."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(rounds, file=self._process.stdin, flush=True)
        found: dict[str, dict[str, float]] = json.loads(self._process.stdout.readline())
        return found

    def end(self) -> None:
        """End the process."""
        self._process.communicate()


def main() -> int:
    """Measure both, print JSON, give the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.planning", description=__doc__)
    parser.add_argument("--before", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    trees = {"before": Tree(given.before.resolve()), "now": Tree(ROOT)}
    turns: dict[str, list[dict[str, dict[str, float]]]] = {name: [] for name in trees}
    for tree in trees.values():
        tree.turn(4)  # what the first calls import and compile
    for _ in range(TURNS):
        for name, tree in trees.items():
            turns[name].append(tree.turn(given.rounds))
    for tree in trees.values():
        tree.end()
    report: dict[str, Any] = {
        "command": "python -m benchmarks.planning --before DIR",
        "before": _commit(given.before),
        "python": platform.python_version(),
        "load_average": os.getloadavg()[0],
        "rounds": TURNS * given.rounds,
    }
    for what in ("plan", "call"):
        report[what] = _compare_turns({name: [turn[what] for turn in found] for name, found in turns.items()})
    text = json.dumps(report, indent=1)
    if given.out:
        given.out.write_text(text + "\n", encoding="utf-8")
    print(text)
    return 0 if report["plan"]["within"] and report["call"]["within"] else 1


def _compare_turns(turns: dict[str, list[dict[str, float]]]) -> dict[str, Any]:
    least = {name: {query: min(turn[query] for turn in found) for query in found[0]} for name, found in turns.items()}
    total = {name: sum(times.values()) for name, times in least.items()}
    ratio = total["now"] / total["before"]
    queries = {
        query: {"before_ms": round(least["before"][query], 3), "now_ms": round(least["now"][query], 3)}
        for query in least["now"]
    }
    mean = {f"{name}_ms": round(value / len(queries), 3) for name, value in total.items()}
    return {**mean, "ratio": round(ratio, 3), "bound": MOST, "within": ratio <= MOST, "queries": queries}


def _commit(checkout: Path) -> str:
    done = subprocess.run(
        ["git", "-C", str(checkout), "rev-parse", "--short", "HEAD"], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
