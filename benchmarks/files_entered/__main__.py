"""Count our files that one query enters: `python -m benchmarks.files_entered`, written to results.json beside it.

Opening, the first query of each kind and what they import are not counted: a reader follows what runs for a query.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import almanaq
from almanaq.testing import FunctionModel

PACKAGE = str(Path(almanaq.__file__).parent)
QUERIES = {
    "count(*)": "SELECT count(*) FROM stays",
    "sql with answer": "SELECT hotel FROM stays WHERE answer(notes, 'is it quiet?') = 'Yes' AND nights > 1 LIMIT 2",
}


def files_entered(work: Callable[[], object]) -> set[str]:
    """Return the files of the package in which a function begins while work is done, threads included."""
    found: set[str] = set()

    def enter(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            found.add(frame.f_code.co_filename[len(PACKAGE) + 1 :])

    import threading

    threading.setprofile(enter)
    sys.setprofile(enter)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return found


def main() -> None:
    """Count the files, print them and write the record."""
    stays = {"hotel": ["Adler", "Krone"], "nights": [3, 1], "notes": ["Quiet rooms.", "A loud bar."]}
    con = almanaq.connect({"stays": stays}, model=FunctionModel(lambda text, _: "Yes" if "Quiet" in text else "No"))
    counts = {}
    for name, query in QUERIES.items():
        con.sql(query.replace("stays", "stays AS s"))  # what is made once is made
        entered = files_entered(lambda query=query: con.sql(query))  # type: ignore[misc]
        counts[name] = len(entered)
        print(name, len(entered), *sorted(entered), sep="\n  ")
    record = {"command": "python -m benchmarks.files_entered", "files": counts}
    Path(__file__).with_name("results.json").write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
