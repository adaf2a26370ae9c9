"""120 files with a fault each, and the truth of every cell: `python -m benchmarks.files.faults [--out FILE]`.

Twenty faults in six kinds of files. A cell is right, or what was read of its file is reported, or it is wrong without a
word: of these there must be none, and the exit status is 1 where there are.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import io
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.messy import write_workbook

from almanaq.engines.files.load import open_files

Rows = list[list[Any]]
HEADER = ["day", "product", "amount"]
PRODUCTS = ["Apple", "Pear", "Fig", "Plum", "Kiwi", "Lime"]
AMOUNTS = [5, 16, 7, 28, 9, 11]
TRUTH = [
    (datetime.date(2024, 1, at), product, amount)
    for at, (product, amount) in enumerate(zip(PRODUCTS, AMOUNTS, strict=True), 1)
]
ROWS: Rows = [[day.isoformat(), product, amount] for day, product, amount in TRUTH]
SUM = sum(AMOUNTS)


def _column(cells: list[Any], values: list[Any] | None = None) -> tuple[Rows, list[Any]]:
    """Return the rows of a file whose last column holds some cells, and the truth."""
    rows = [[day, product, cell] for (day, product, _), cell in zip(ROWS, cells, strict=True)]
    truth = [(*row[:2], value) for row, value in zip(TRUTH, values or cells, strict=True)]
    return [HEADER, *rows], truth


FAULTS: dict[str, tuple[Rows, list[Any]]] = {
    "none": ([HEADER, *ROWS], TRUTH),
    "title": ([["Sales report"], HEADER, *ROWS], TRUTH),
    "padded titles": ([["Sales report", None, None], ["Made by X", None, None], HEADER, *ROWS], TRUTH),
    "settings above": ([["Report", "Sales"], ["Period", "2024"], [None] * 3, HEADER, *ROWS], TRUTH),
    "blank rows": ([HEADER, *ROWS[:3], [None] * 3, *ROWS[3:], [None] * 3], TRUTH),
    "note below": ([HEADER, *ROWS, [None] * 3, ["Source: finance", None, None]], TRUTH),
    "comment at the end": ([HEADER, *ROWS, ["# exported by the till"]], TRUTH),
    "total": ([HEADER, *ROWS, ["Total", None, SUM]], TRUTH),
    "total and footnote": ([HEADER, *ROWS, ["Total", None, SUM], ["* provisional", None, None]], TRUTH),
    "total without a label": ([HEADER, *ROWS, [None, None, SUM]], TRUTH),
    "subtotals": (
        [HEADER, *ROWS[:3], ["Subtotal", None, 28], *ROWS[3:], ["Subtotal", None, 48], ["Total", None, SUM]],
        TRUTH,
    ),
    "two header rows": (
        [[None, "2023", None], ["city", "men", "women"], ["Bern", 1, 2], ["Chur", 5, 6], ["Basel", 7, 9]],
        [("Bern", 1, 2), ("Chur", 5, 6), ("Basel", 7, 9)],
    ),
    "row of units": ([HEADER, [None, None, "(kg)"], *ROWS], TRUTH),
    "leading zeros": _column(["01002", "10001", "00501", "20020", "30000", "00007"]),
    "versions": _column(["1.1", "1.10", "1.2", "1.9", "1.11", "2.10"]),
    "rooms": _column(["101", "1E5", "102", "2E3", "103", "104"]),
    "trailing minus": _column(
        ["5.25", "16.50", "7.25-", "28.75", "9.25", "11.75-"], [5.25, 16.5, -7.25, 28.75, 9.25, -11.75]
    ),
    "accounts": _column(
        ["$5.25", "$16.50", "$(7.25)", "$28.75", "($9.25)", "$11.75"], [5.25, 16.5, -7.25, 28.75, -9.25, 11.75]
    ),
    "offsets": _column(
        [f"2024-06-0{at}T00:30:00+02:00" for at in range(1, 7)],
        [datetime.datetime(2024, 6, at, 0, 30) for at in range(1, 7)],
    ),
    "placeholders": _column([5, "n/a", 7, "NaN", "-", 11], [5, None, 7, None, None, 11]),
}


def _delimited(separator: str, encoding: str = "utf-8") -> Callable[[Path, Rows], None]:
    def write(path: Path, rows: Rows) -> None:
        text = io.StringIO(newline="")
        csv.writer(text, delimiter=separator).writerows(rows)
        path.write_bytes(text.getvalue().encode(encoding))

    return write


KINDS: dict[str, tuple[str, Callable[[Path, Rows], Any]]] = {
    "commas": ("csv", _delimited(",")),
    "semicolons": ("csv", _delimited(";")),
    "tabs": ("tsv", _delimited("\t")),
    "bars": ("csv", _delimited("|")),
    "UTF-16": ("csv", _delimited(",", "utf-16")),
    "workbook": ("xlsx", lambda path, rows: write_workbook(path, {"Sales": rows})),
}


def judge(folder: Path) -> dict[str, Any]:
    """Return how many cells are right, reported and wrong without a word, and the files of the last."""
    counts: Counter[str] = Counter()
    silent = []
    for number, (fault, (rows, truth)) in enumerate(FAULTS.items()):
        for kind, (ending, write) in KINDS.items():
            path = folder / f"sales {number} {kind}.{ending}"
            write(path, rows)
            read, messages = _read(path)
            wanted = [cell for row in truth for cell in row]
            found = [cell for row in read for cell in row]
            right = sum(own == cell and type(own) is type(cell) for own, cell in zip(found, wanted, strict=False))
            wrong = max(len(wanted), len(found)) - right
            counts.update(right=right, reported=wrong if messages else 0, silent=0 if messages else wrong)
            silent += [f"{fault}, {kind}"] if wrong and not messages else []
    files = len(FAULTS) * len(KINDS)
    return {"files": files, "cells": counts.total(), **counts, "silent_files": silent}


def _read(path: Path) -> tuple[list[tuple[Any, ...]], list[str]]:
    with closing(open_files(path)) as database:
        table = next(iter(database.catalog().relations))
        with database.session() as session:
            rows = session.fetch("SELECT * FROM " + ".".join(f'"{part}"' for part in table.location)).to_pylist()
        return [tuple(row.values()) for row in rows], [m for report in database.reports for m in report.messages]


def main() -> int:
    """Judge the files, print JSON, give the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.files.faults", description=__doc__)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = {"command": "python -m benchmarks.files.faults", **judge(Path(folder))}
    text = json.dumps(report, indent=1)
    if given.out:
        given.out.write_text(text + "\n", encoding="utf-8")
    print(text)
    return 1 if report["silent"] else 0


if __name__ == "__main__":
    sys.exit(main())
