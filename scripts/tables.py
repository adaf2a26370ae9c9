"""Write or check the tables in README.md and docs/: measured ones (`tables.toml`), and lists from the code.

A table stands between `<!-- table: NAME -->` and `<!-- end -->`. `--write` writes them (`make docs`); without it,
exit 1 and a list of the files whose tables differ from the results.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import listed_tables
import measured_tables
from measured_tables import ROOT

MARKED = re.compile(r"(<!-- table: ([\w-]+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def documents() -> Iterator[tuple[Path, str, str]]:
    """Yield every file with marked tables: its path, its text, and what its text should be."""
    made = measured_tables.tables() | listed_tables.tables()
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        text = path.read_text()
        if MARKED.search(text):
            yield path, text, MARKED.sub(lambda found: _fill(found, made), text)


def find_drift() -> list[str]:
    """Name the files whose tables are not what the results say."""
    return [str(path.relative_to(ROOT)) for path, text, wanted in documents() if text != wanted]


def _fill(match: re.Match[str], made: Mapping[str, str]) -> str:
    before, name, _, after = match.groups()
    if name not in made:
        raise SystemExit(f"unknown table {name!r}; known: {', '.join(made)}")
    return before + made[name] + after


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        for path, text, wanted in documents():
            if text != wanted:
                path.write_text(wanted)
    elif stale := find_drift():
        sys.exit(f"drifted: {', '.join(stale)}; run `make docs`")
