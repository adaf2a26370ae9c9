"""Say of every published number where it is printed, the command that makes it, and the record it comes from.

Without arguments the measured tables of README and docs are listed with the committed records that they are made of,
and the cheap ones are run again: of each measure it is said whether the re-run lies within the recorded interval, or
equals the record where it has none. `--all` runs every experiment again whose data are at hand (hours), `--list` none.
Arguments: parts of names; only records with one of them in their path are looked at. Exit 1 when a re-run disagrees.

The datasets are read from the folder that ALMANAQ_DATA names, else from ../shared/data.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import experiments as runs
import measured_tables
from tables import MARKED

ROOT = Path(__file__).parents[1]
CHEAP = ("none", "random", "oracle", "bm25", "target-bm25", "target-bm25-notitle", "target-tfidf-notitle")
_TIMES = re.compile(r"seconds|bytes|latency|calls|tokens|money")
NOT_PRINTED = {
    "experiments/published.json": "figures of others",
    **{
        f"experiments/scripted/{name}.json": "runs against a scripted server, which tests read"
        for name in ("bird", "fetaqa", "ottqa", "spider", "tabfact")
    },
}
"""Committed results that no page prints, and what they are."""
_ALIKE = "experiments/alike/spider.json"
_MADE_ELSEWHERE = {
    _ALIKE: f"python benchmarks/retrieval/alike.py DATA_DIR/spider --out {_ALIKE}",
    "experiments/calls/agreement-replies.json": "python experiments/calls/agreement.py --pairs 72 --replies FILE",
}
_KEPT = re.compile(r"(benchmarks|experiments|tests/(cluster|laws|security))/.*\.json")
_SAME = 2e-6  # records have six digits


@dataclass(frozen=True)
class Record:
    """A committed record.

    Attributes:
        command: what makes it again; "" where a person made it.
        pages: the tables that print it, as `page#table`.
    """

    path: str
    command: str
    pages: tuple[str, ...]

    @property
    def arguments(self) -> list[str]:
        """The arguments of `almanaq` that make it; [] where something else does."""
        if not self.path.endswith(".json"):
            return []
        content = json.loads((ROOT / self.path).read_text(encoding="utf-8"))
        found = content.get("command") if isinstance(content, dict) else None
        return found if isinstance(found, list) else []

    @property
    def is_cheap(self) -> bool:
        """Whether it takes seconds: retrieval without vectors."""
        words = self.arguments
        return "table-retrieval" in words and words[words.index("--retriever") + 1] in CHEAP


def records() -> list[Record]:
    """Return every committed record that a page prints: in a measured table, or in its text."""
    printed: dict[str, list[str]] = {}
    where = dict(_places())
    for name, read in _read_by_tables():
        for path in read:
            printed.setdefault(path, []).append(f"{where.get(name, 'nowhere')}#{name}")
    for path in list_results():
        if path not in printed and path not in NOT_PRINTED:
            printed[path] = list(_pages_that_name(path))
    return [Record(path, command_of(path), tuple(pages)) for path, pages in sorted(printed.items())]


def list_results() -> list[str]:
    """Return the results that are kept in the repository."""
    told = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    files = told.stdout.split() or [path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.json")]
    return [file for file in files if _KEPT.fullmatch(file)]


def _pages_that_name(path: str) -> Iterator[str]:
    """Yield the pages whose text names a record, its folder or the script there, or a script by itself."""
    file = Path(path)
    folder = (file.parent.parent if file.parent.name == "results" else file.parent).as_posix()
    named = re.compile(rf"({re.escape(folder)}|{re.escape(folder.replace('/', '.'))})\b|`{re.escape(file.stem)}\.py`")
    for page in sorted((ROOT / "docs").rglob("*.md")):
        if page.name != "architecture.md" and named.search(page.read_text(encoding="utf-8")):
            yield page.relative_to(ROOT).as_posix()


def command_of(path: str) -> str:
    """Return the command that makes a record: what it says itself, else the script that stands beside it."""
    file = ROOT / path
    content = json.loads(file.read_text(encoding="utf-8")) if file.suffix == ".json" else {}
    told = content.get("command", content.get("made_by")) if isinstance(content, dict) else None
    if isinstance(told, list):
        return " ".join(["almanaq", *told])
    if isinstance(told, str):
        return told
    if isinstance(content, dict) and "script" in content and isinstance(content["script"], str):
        told = content["script"].removeprefix("python ")
        return f"python {told}" if told.split()[0].endswith(".py") else content["script"]
    beside = file.with_suffix(".py")
    for script in (
        beside,
        file.parents[1] / f"{file.stem}.py",
        file.with_name("__main__.py"),
        file.parent.with_name("run.py"),
        file.with_name("run.py"),
    ):
        if script.exists():
            name = script.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
            return f"python -m {name.removesuffix('.__main__')}"
    if path in _MADE_ELSEWHERE:
        return _MADE_ELSEWHERE[path]
    first = re.sub(r"_(first.*|unseen|before|notes|first_lexicon)$", "", file.stem)
    beside = file.with_name(f"{first}.py")
    if beside.exists():
        return f"python -m {beside.relative_to(ROOT).with_suffix('').as_posix().replace('/', '.')}"
    return ""


def compare(record: dict[str, Any], again: dict[str, Any]) -> list[str]:
    """Name the measures of a re-run that lie outside the recorded interval, or differ where there is none."""
    off = []
    for name, value in record["metrics"].items():
        if _TIMES.search(name):
            continue
        low, high = record.get("intervals", {}).get(name, (value, value))
        now = again["metrics"].get(name)
        if now is None or not low - _SAME <= now <= high + _SAME:
            off.append(f"{name}: {now} instead of {value} [{low}, {high}]")
    return off


def run_again(record: Record) -> str:
    """Run an experiment again beside its record, and say whether they agree."""
    from almanaq.cli import main

    kept = json.loads((ROOT / record.path).read_text())
    if not (runs.DATA / runs.dataset_of(ROOT / record.path)).is_dir():
        return "not run: its data are not here"
    printed = io.StringIO()
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(printed), redirect_stderr(io.StringIO()):
        sys.argv = ["almanaq", *kept["command"], "--data-dir", str(runs.DATA), "--out", f"{folder}/run", "--json"]
        try:
            code = main()
        except SystemExit as left:
            code = int(left.code or 0)
    if code:
        return f"DIFFERS: exit code {code}"
    off = compare(kept["result"], json.loads(printed.getvalue()))
    return f"DIFFERS: {'; '.join(off)}" if off else "agrees"


def table(listed: list[Record]) -> str:
    """Return the records as a table in Markdown."""
    lines = ["| printed in | record | command |", "| --- | --- | --- |"]
    for each in listed:
        pages = ", ".join(sorted(set(each.pages)))
        lines.append(f"| {pages} | `{each.path}` | {f'`{each.command}`' if each.command else 'by hand'} |")
    return "\n".join(lines) + "\n"


def page() -> str:
    """Return the page of the site: what it is about, and the table."""
    told = (
        "# Published numbers\n\n"
        "What these pages say was measured comes from records that are kept in the repository. This is the list: the "
        "page, and the table of it that is written from the record (without one, the page's text gives its figures), "
        "and the command that makes it again. `make figures` runs the cheap ones and "
        "says whether they agree with their record, within its interval; `make figures FIGURES=--all` runs all "
        "whose data you have.\n\n"
    )
    return told + table(records())


def _places() -> Iterator[tuple[str, str]]:
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        for found in MARKED.finditer(path.read_text(encoding="utf-8")):
            yield found[2], path.relative_to(ROOT).as_posix()


def _read_by_tables() -> Iterator[tuple[str, list[str]]]:
    """Yield each table with the records that are read to make it."""
    opened: list[str] = []
    read = measured_tables.read

    def noting(path: str) -> Any:
        opened.append(path)
        return read(path)

    measured_tables.read = noting
    try:
        for name in measured_tables.names():
            opened.clear()
            measured_tables.tables([name])
            yield name, sorted({path for path in opened if not path.endswith("published.json")})
    finally:
        measured_tables.read = read


def main() -> int:
    """List what was asked for, and run it again."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART")
    parser.add_argument("--all", action="store_true", help="run every experiment again")
    parser.add_argument("--list", action="store_true", help="run nothing")
    told = parser.parse_args()
    listed = [each for each in records() if not told.parts or any(part in each.path for part in told.parts)]
    failed = False
    for each in listed:
        print(f"{each.path}\n  printed in {', '.join(sorted(set(each.pages)))}\n  {each.command or 'made by hand'}")
        if told.list:
            continue
        if each.arguments and (told.all or each.is_cheap):
            said = run_again(each)
            failed = failed or said.startswith("DIFFERS")
        else:
            said = "not run again: " + ("--all does" if each.arguments else "run its command, and compare")
        print(f"  {said}", flush=True)
    return int(failed)


if __name__ == "__main__":
    os.environ.setdefault("ALMANAQ_CACHE_DIR", str(Path(tempfile.gettempdir()) / "almanaq-figures"))
    sys.exit(main())
