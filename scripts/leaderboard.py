"""The leaderboard of the benchmark: every committed record, with what is needed to make it again."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
GROUPS = ("table-retrieval", "table-retrieval-published", "generation", "hybridqa", "sembench", "restaurants")
LEADING = ("quality", "turn_accuracy", "all_right", "execution_accuracy", "f1", "exact_match", "recall@10")
"""The measure that a table is ordered by: the first of these that its records have."""

HEAD = """# Leaderboard

Every row is a record that is kept in the repository, made by `almanaq bench run` with the arguments that the record
holds. `make figures` says whether a re-run agrees. The commit is the one that last wrote the record; the data
are named by the first digits of their SHA-256. To add a row, see [the benchmark](../benchmark.md).

"""
UNKNOWN = "not recorded"
OLD = """Of {unknown} of the {every} records it is not known on which machine they were made: they are older than the
column, and it cannot be found out any more. Records that are made now say it. No measure on this page is a time. On
another processor, vectors may differ in the third digit, and with them a figure of a retriever that uses them.

"""


@dataclass(frozen=True)
class Row:
    """A record as a row; `place` says which table it stands in."""

    place: tuple[str, str, str]
    system: str
    value: float
    cells: tuple[str, ...]


def page() -> str:
    """Return the page: a table for each task, dataset and split, the best first."""
    tables: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows():
        tables.setdefault(row.place, []).append(row)
    every = [row for found in tables.values() for row in found]
    unknown = sum(row.cells[4] == UNKNOWN for row in every)
    text = HEAD + (OLD.format(unknown=unknown, every=len(every)) if unknown else "")
    for place, found in sorted(tables.items()):
        text += f"## {place[0]}: {place[1]}, {place[2]}\n\n"
        text += "| system | measure | 95 % interval | questions | made with | machine | data | commit | record |\n"
        text += "| --- " * 9 + "|\n"
        for row in sorted(found, key=lambda row: -row.value):
            text += f"| {' | '.join((row.system, *row.cells))} |\n"
        text += "\n"
    return text


def rows() -> Iterator[Row]:
    """Yield the records of runs."""
    commits = _commits()
    for group in GROUPS:
        for file in sorted((ROOT / "experiments" / group).glob("*.json")):
            record = json.loads(file.read_text(encoding="utf-8"))
            result = record.get("result") if isinstance(record, dict) else None
            if isinstance(result, dict) and {"task", "dataset", "metrics"} <= result.keys():
                yield _row(file, record, result, commits)


def _row(file: Path, record: dict[str, Any], result: dict[str, Any], commits: dict[str, str]) -> Row:
    metrics, told = result["metrics"], result.get("provenance", {})
    name = next((each for each in LEADING if each in metrics), next(iter(metrics)))
    path = file.relative_to(ROOT).as_posix()
    low, high = result.get("intervals", {}).get(name, (None, None))
    versions = told.get("versions", {})
    data = ", ".join(sorted({digest[:8] for digest in told.get("data", {}).values()}))
    generator = told.get("generator")
    system = result["retriever"] + (f", {generator}" if generator else "")
    cells = (
        f"{name} {metrics[name]:.3f}",
        f"{low:.3f} to {high:.3f}" if low is not None else "",
        f"{result['queries']:,}",
        ", ".join(f"{each} {versions[each]}" for each in ("almanaq", "python", "numpy") if each in versions),
        str(record.get("machine") or UNKNOWN),
        data,
        commits.get(path, ""),
        f"`{path}`",
    )
    fields = " ".join(result.get("fields", []))
    return Row((result["task"], result["dataset"], result["split"]), f"{system} ({fields})", metrics[name], cells)


def _commits() -> dict[str, str]:
    """Return the commit that last wrote each record; {} outside of a checkout."""
    listed = subprocess.run(
        ["git", "log", "--format=commit %h", "--name-only", "--", "experiments"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    ).stdout  # fmt: skip
    found: dict[str, str] = {}
    commit = ""
    for line in listed.splitlines():
        if line.startswith("commit "):
            commit = line.removeprefix("commit ")
        elif line:
            found.setdefault(line, commit)
    return found
