"""Nightly entry: `python -m tests.laws.run --count 20000 --jobs 2` compares the compiler with the oracle.

Seeds are numbered from `--seed`; a seed whose query the oracle's database does not run, or that has no rows and is
not one of the share of those kept, is passed over, so that a run has `--count` comparisons. They are made in parts of
`--part` comparisons, each written to `--out` with the commit it was made on: `--resume` goes on after the parts of that
file, `--again` makes those anew that differ, and keeps what they said before. Run it from a clean checkout that nobody
edits: processes read the code when they start.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import itertools
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .check import DISPUTED, Failure, Outcome, RuleSet, open_in_one_instance, outcome, without_threads
from .workers import DIED, outcomes

SHOWN_EVERY = 250
Part = dict[str, Any]


@dataclass
class Report:
    """What a run found.

    Attributes:
        refused: seeds passed over by reason, mostly why the oracle's database does not run them.
        disputed: seeds that the oracle's database gets wrong, told by its rows without its optimizer.
    """

    compared: int = 0
    failures: list[Failure] = field(default_factory=list)
    calls: int = 0
    naive: int = 0
    more_than_naive: list[int] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    disputed: list[int] = field(default_factory=list)
    empty: int = 0
    last_seed: int = 0

    def add(self, found: Outcome) -> None:
        """Count one seed."""
        self.last_seed = found.seed
        if found.passed_over is not None:
            self.empty += found.passed_over == ""
            self.refused.update([found.passed_over] if found.passed_over else [])
            self.disputed += [found.seed] if found.passed_over == DISPUTED else []
            return
        self.compared += 1
        if found.failure is not None:
            self.failures.append(found.failure)
        if found.observed is not None:
            self.calls += found.observed.calls
            self.naive += found.observed.naive
            if found.observed.calls > found.observed.naive:
                self.more_than_naive.append(found.seed)


def run(
    seed: int,
    count: int,
    *,
    last: int | None = None,
    progress: bool = False,
    jobs: int | None = None,
    connect: Callable[..., Any] | None = None,
    **options: object,
) -> Report:
    """Compare `count` cases from a seed on.

    Args:
        last: the seed to stop at, even with fewer cases compared.
        progress: print what differs, and how far the run is.
        jobs: number of processes, which may die; None compares in this one.
        connect: as in `check`.
    """
    report = Report()
    one = functools.partial(outcome, connect=connect, **options)
    start = time.perf_counter()
    found = outcomes(one, seed, jobs) if jobs else (one(number) for number in itertools.count(seed))
    with contextlib.closing(found):
        while report.compared < count and (last is None or report.last_seed < last):
            report.add(latest := next(found))
            if progress and latest.failure is not None:
                print(f"{latest.failure}\n", file=sys.stderr, flush=True)
            if progress and latest.passed_over is None and report.compared % SHOWN_EVERY == 0:
                each = report.compared / (time.perf_counter() - start)
                told = f"{report.compared} of {count} compared (seed {latest.seed}, {each:.1f} a second)"
                print(f"{told}, {len(report.failures)} differ", file=sys.stderr, flush=True)
    return report


# --- parts of a long run ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Nightly:
    """A run in parts, which are kept in a file."""

    given: argparse.Namespace
    parts: list[Part]

    def go_on(self) -> None:
        """Make the parts that are missing."""
        names = ("none", *RuleSet.NAMES) if self.given.rules == "each" else (self.given.rules,)
        for name in names:
            mine = [part for part in self.parts if part["rules"] == name]
            compared = sum(part["compared"] for part in mine)
            seed = mine[-1]["last_seed"] + 1 if mine else self.given.seed
            while compared < self.given.count:
                part = self._made(name, seed, min(self.given.part, self.given.count - compared))
                self.parts.append(part)
                compared, seed = compared + part["compared"], part["last_seed"] + 1
                self._keep()

    def again(self) -> None:
        """Make anew the parts that differ."""
        for place, old in enumerate(self.parts):
            if old["differ"]:
                part = self._made(old["rules"], old["first_seed"], old["compared"], old["last_seed"])
                said = {key: old[key] for key in ("commit", "differ", "seeds_that_differ")}
                self.parts[place] = part | {"before": [*old.get("before", []), said]}
                self._keep()

    def _made(self, rules: str, seed: int, count: int, last: int | None = None) -> Part:
        print(f"rules: {rules}, from seed {seed}", flush=True)
        given = self.given
        connect, thrifty = RuleSet(rules, open_in_one_instance).connect, rules == "all"
        options = {"order": given.order, "speculation": given.speculation, "jobs": given.jobs}
        start = time.perf_counter()
        report = run(seed, count, last=last, progress=True, connect=connect, thrifty=thrifty, **options)
        _tell(report, given.shrink if rules == "all" else 0)
        part = {"commit": _commit(), **_summary(rules, seed, report, time.perf_counter() - start)}
        print(json.dumps(part), flush=True)
        return part

    def _keep(self) -> None:
        if self.given.out:
            found = {"command": "python -m tests.laws.run " + " ".join(sys.argv[1:]), "runs": self.parts}
            self.given.out.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


def main() -> int:
    """Run, print failures by kind with one minimal reproduction each, and give the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.laws.run", description=__doc__)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes")
    parser.add_argument(
        "--shrink", type=int, default=5, metavar="N", help="reduce the first N kinds of a part's failures"
    )
    parser.add_argument("--order", choices=("table", "similarity"), default="table")
    parser.add_argument("--speculation", type=float, default=1)
    parser.add_argument("--rules", default="all", help="each, none, or the name of the only rule of the optimizer")
    parser.add_argument("--part", type=int, default=1000, metavar="N", help="comparisons between two writes of --out")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write what was found as JSON")
    kept = parser.add_mutually_exclusive_group()
    kept.add_argument("--resume", action="store_true", help="go on after the parts in --out")
    kept.add_argument("--again", action="store_true", help="make the parts in --out anew that differ")
    given = parser.parse_args()
    keeps = (given.resume or given.again) and given.out and given.out.exists()
    nightly = Nightly(given, json.loads(given.out.read_text("utf-8"))["runs"] if keeps else [])
    without_threads()
    if given.again:
        nightly.again()
    else:
        nightly.go_on()
    return 1 if any(part["differ"] for part in nightly.parts) else 0


def _commit() -> str:
    """Return the commit of the working tree; "" where git does not know one."""
    done = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _summary(rules: str, seed: int, report: Report, seconds: float) -> Part:
    return {
        "rules": rules,
        "first_seed": seed,
        "last_seed": report.last_seed,
        "compared": report.compared,
        "differ": len(report.failures),
        "seeds_that_differ": [failure.seed for failure in report.failures],
        "without_rows": report.empty,
        "refused_by_the_oracle": sum(report.refused.values()) - len(report.disputed),
        "seeds_that_the_oracle_gets_wrong": report.disputed,
        "text_calls": report.calls,
        "naive_text_calls": report.naive,
        "more_than_naive": len(report.more_than_naive),
        "seconds": round(seconds),
    }


def _tell(report: Report, shrunk: int) -> None:
    """Print the failures by kind, the first few kinds with a minimal reproduction."""
    kinds: dict[str, list[Failure]] = {}
    for failure in report.failures:
        kinds.setdefault(failure.kind, []).append(failure)
    for number, (kind, failures) in enumerate(sorted(kinds.items(), key=lambda k: -len(k[1]))):
        failures.sort(key=lambda f: len(f.sql))
        print(f"\n== {len(failures)} of {kind}; seeds {[f.seed for f in failures[:20]]}\n{failures[0]}", flush=True)
        if number < shrunk and kind != DIED:
            from .shrink import shrink

            for failure in failures[: 6 if kind in ("wrong rows", "calls") else 1]:
                print(shrink(failure), flush=True)
    print(f"more calls than a naive evaluation: {report.more_than_naive[:20]}; refused: {dict(report.refused)}")


if __name__ == "__main__":
    raise SystemExit(main())
