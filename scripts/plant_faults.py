"""Plant faults in a copy of the code, one at a time, and run the tests that have to catch each.

    python scripts/plant_faults.py [--only WORD] [--jobs N]

Exit status 1 where a fault is missed, or where the code that it changes is not found exactly once.
A fault is found by its code, not by its file, so that files can move.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
_COPIED = ("src", "bench", "tests", "benchmarks", "scripts", "docs", "examples", "experiments")


@dataclass(frozen=True, slots=True)
class Fault:
    """A mistake that somebody could make.

    Attributes:
        what: what goes wrong for a user.
        right, wrong: the code, and what it is changed to.
        tests: folders or files of tests, the likely ones first; one that fails is enough.
    """

    what: str
    right: str
    wrong: str
    tests: tuple[str, ...]


_COMPILER = ("tests/optimizer", "tests/queries", "tests/laws", "tests/databases")
_MODELS = ("tests/models", "tests/queries")
_RETRIEVAL = ("tests/retrieval",)
_AGENT = ("tests/agent", "tests/contract", "tests/web")
FAULTS = (
    # the compiler
    Fault(
        "AND of TRUE and NULL is TRUE",
        "sum({min(a, b) for",
        "sum({TRUE if {a, b} == {NULL, TRUE} else min(a, b) for",
        _COMPILER,
    ),
    Fault("NOT NULL is TRUE", "sum(TRUE // bit for", "sum((TRUE if bit == NULL else TRUE // bit) for", _COMPILER),
    Fault("OR takes the least of its parts", "sum({max(a, b) for", "sum({min(a, b) for", _COMPILER),
    Fault(
        "OFFSET is forgotten where LIMIT stops",
        "before is None else most + before",
        "before is None else most",
        _COMPILER,
    ),
    Fault(
        "LIMIT stops below an ORDER BY on answers",
        "rows is None or block.order_sites else",
        "rows is None else",
        _COMPILER,
    ),
    Fault("NOT does not turn a bound round", "upper=not upper)", "upper=upper)", _COMPILER),
    Fault(
        "a condition implied by OR is taken for one of AND", "neutral = kind is exp.And", "neutral = True", _COMPILER
    ),
    Fault(
        "an outer join turns inner by one side of OR",
        "return any(sides) if isinstance(node, exp.And) else all(sides)",
        "return any(sides)",
        _COMPILER,
    ),
    Fault("a correlated EXISTS has one row for all", "if not is_correlated(block):", "if block:", _COMPILER),
    Fault(
        "blocks merge under an outer join",
        "if not (narrows and keeps_rows(block, item.alias_or_name)) or",
        "if",
        _COMPILER,
    ),
    Fault("an answer is left out though it is used twice", "any_of(uses[at])", "any_of(uses[at][:1])", _COMPILER),
    Fault(
        "EXISTS under LIMIT stops though another condition drops rows",
        "not has_text(part) and is_of_block(part, block) and not is_by_chance(part) for part in others",
        "True for part in others",
        _COMPILER,
    ),
    Fault(
        "the lineage of a starred output is lost",
        "position is None or starred or i == position",
        "i == position",
        ("tests/security", "tests/catalog", "tests/databases"),
    ),
    # models
    Fault("a budget allows one call more", "in parts]) > self.calls", "in parts]) > self.calls + 1", _MODELS),
    Fault("what was reserved is never given back", "self.reserved -= most", "pass", _MODELS),
    Fault("one attempt more is made", "attempt >= self._most_", "attempt > self._most_", _MODELS),
    Fault("failed attempts cost nothing", "spent += known.usage", "pass", _MODELS),
    Fault(
        "a cached reply outlives its prompt's version",
        "prompt.name, prompt.version, messages",
        "prompt.name, prompt.name, messages",
        _MODELS,
    ),
    Fault(
        "a server's wish to wait is ignored",
        "min(max(0.0, asked), LONGEST_RETRY_AFTER) + jitter",
        "0.0 + jitter",
        _MODELS,
    ),
    Fault(
        "words that no text holds are quotes",
        "if match is None:\n            dropped += 1",
        "if False:\n            dropped += 1",
        _MODELS,
    ),
    # retrieval
    Fault("long tables are not held back", "norm = 1 - options.b + ", "norm = 1 + 0 * ", _RETRIEVAL),
    Fault("equal scores come last first", "np.lexsort((chosen, -scores", "np.lexsort((-chosen, -scores", _RETRIEVAL),
    Fault(
        "a damaged block is believed",
        "!= self._sums[block]:",
        "!= self._sums[block] and False:",
        ("tests/security/test_damaged_index.py",),
    ),
    Fault(
        "the doubtful ranking is the one that fits",
        "chance >= weights.doubt.threshold",
        "chance <= weights.doubt.threshold",
        _RETRIEVAL,
    ),
    Fault("candidates are pruned too early", "_ROUNDING = 1.000_01", "_ROUNDING = 0.5", _RETRIEVAL),
    Fault(
        "a shard takes a table twice",
        'raise SourceError(f"the corpus has the table {table.id} twice")',
        "pass",
        _RETRIEVAL,
    ),
    # the agent
    Fault(
        "a condition is kept though it was to be left out",
        "for k, part in enumerate(self._parts) if k != i]",
        "for k, part in enumerate(self._parts)]",
        _AGENT,
    ),
    Fault("a condition on the name is given up", " if not _identifies(part, relation)", "", _AGENT),
    Fault("rows are said to fulfil all that no row does", "() if passing else held(part)", "()", _AGENT),
    Fault("values of private columns are told", " or private_columns(text(query))", "", _AGENT),
)


_HANGS = 900
"""Seconds after which a folder of tests hangs."""


def main() -> int:
    """Plant every fault and print which were caught."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="plant the faults whose description holds this")
    parser.add_argument("--jobs", type=int, default=2, help="processes that run tests")
    given = parser.parse_args()
    chosen = [fault for fault in FAULTS if given.only in fault.what]
    missed = [fault.what for fault in chosen if not _catch(fault, given.jobs)]
    print(
        f"{len(chosen) - len(missed)} of {len(chosen)} faults caught" + "".join(f"\nMISSED: {what}" for what in missed)
    )
    return bool(missed)


def _catch(fault: Fault, jobs: int) -> bool:
    """Return whether a test fails of a copy of the project with the fault."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        _copy_project(copy)
        if (number := _plant(fault, copy)) != 1:
            print(f"NOT PLANTED ({number} places): {fault.what}", flush=True)
            return False
        paths = os.pathsep.join([str(copy / "src"), str(copy / "bench/src")])
        for tests in fault.tests:
            started = time.monotonic()
            try:
                run = subprocess.run(
                    [sys.executable, "-m", "pytest", "-x", "--numprocesses", str(jobs), "--maxfail=1", tests],
                    cwd=copy,
                    env={**os.environ, "PYTHONPATH": paths},
                    capture_output=True,
                    text=True,
                    timeout=_HANGS,
                )
            except subprocess.TimeoutExpired:
                print(f"caught, as the tests hang: {fault.what}", flush=True)
                return True
            if run.returncode:
                found = [line for line in run.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
                print(
                    f"caught in {time.monotonic() - started:.0f} s: {fault.what}: {found[0][:150] if found else '?'}",
                    flush=True,
                )
                return True
    print(f"MISSED: {fault.what}", flush=True)
    return False


def _copy_project(copy: Path) -> None:
    for name in _COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ROOT.iterdir():
        if file.is_file():
            shutil.copy(file, copy / file.name)


def _plant(fault: Fault, copy: Path) -> int:
    """Change the code of a copy; return in how many places it stands."""
    places = 0
    for file in (*(copy / "src").rglob("*.py"), *(copy / "bench/src").rglob("*.py")):
        code = file.read_text("utf-8")
        if fault.right in code:
            places += code.count(fault.right)
            file.write_text(code.replace(fault.right, fault.wrong), "utf-8")
    return places


if __name__ == "__main__":
    sys.exit(main())
