"""Write or check the measured tables in README.md and docs/, made from the committed results under experiments/.

A table stands between `<!-- table: NAME -->` and `<!-- end -->`. `--write` writes them (`make docs`); without it,
exit 1 and a list of the files whose tables differ from the results.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from measured import agent, hybrid, indexes, listed, local, queries, replies, restaurants, retrieval
from measured.results import ROOT

MARKED = re.compile(r"(<!-- table: ([\w-]+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
AREAS = (agent, hybrid, indexes, listed, local, queries, replies, restaurants, retrieval)
TABLES: dict[str, Callable[[], str]] = {name: made for area in AREAS for name, made in area.TABLES.items()}


def documents() -> Iterator[tuple[Path, str, str]]:
    """Yield every file with marked tables: its path, its text, and what its text should be."""
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        text = path.read_text()
        if MARKED.search(text):
            yield path, text, MARKED.sub(_fill, text)


def drifted() -> list[str]:
    """Name the files whose tables are not what the results say."""
    return [str(path.relative_to(ROOT)) for path, text, wanted in documents() if text != wanted]


def _fill(match: re.Match[str]) -> str:
    before, name, _, after = match.groups()
    if name not in TABLES:
        raise SystemExit(f"unknown table {name!r}; known: {', '.join(TABLES)}")
    return before + TABLES[name]() + after


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        for path, text, wanted in documents():
            if text != wanted:
                path.write_text(wanted)
    elif stale := drifted():
        sys.exit(f"drifted: {', '.join(stale)}; run `make docs`")
