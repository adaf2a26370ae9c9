"""Every code block of the documentation runs, or is read by its parser, or says why it cannot.

Python and SQL blocks of a page run one after another, each page in a folder of its own. Before a block that cannot run
stands `<!-- not run: why -->`. Pages with a test of their own are named here, and that test names them.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
OWN = {
    "language.md": "tests/queries/test_language_doc.py",
    "peers.md": "tests/queries/test_peers_doc.py",
    "postgres.md": "tests/databases/test_postgres_doc.py",
    "compiler.md": "tests/optimizer/test_compiler_doc.py",
    "architecture.md": "tests/project/test_architecture.py",
}
RUN = {"python", "sql"}
PARSED = {"toml": tomllib.loads, "yaml": yaml.safe_load, "json": json.loads}
PROSE = {"", "text"}  # what is printed, and pictures

_BLOCK = re.compile(r"(?:<!-- not run: ([^\n]+) -->\n+)?^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    reason: str
    language: str
    code: str


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(page, text[: match.start(2)].count("\n") + 1, match[1] or "", match[2], match[3])
        for match in _BLOCK.finditer(text)
    ]


PAGES = [
    page for page in sorted((ROOT / "docs").rglob("*.md")) if page.name not in OWN and "decisions" not in page.parts
]
ALL = [block for page in PAGES for block in blocks(page)]


def test_pages_with_their_own_test_have_one() -> None:
    for page, test in OWN.items():
        assert page in (ROOT / test).read_text(encoding="utf-8")


def test_every_block_is_of_a_kind_that_is_checked_or_says_why_not() -> None:
    unknown = [
        f"{block.page.name}:{block.line} ```{block.language}"
        for block in ALL
        if not block.reason and block.language not in RUN | PROSE | set(PARSED) | {"sh", "console"}
    ]
    assert unknown == []
    assert [block for block in ALL if block.reason and len(block.reason) < 10] == []


@pytest.mark.parametrize("block", [b for b in ALL if b.language in PARSED], ids=lambda b: f"{b.page.stem}:{b.line}")
def test_configuration_parses(block: Block) -> None:
    assert PARSED[block.language](block.code)


@pytest.mark.parametrize("page", [p for p in PAGES if any(b.language == "sh" for b in blocks(p))], ids=lambda p: p.stem)
def test_commands_are_those_of_the_program(page: Path) -> None:
    """Each `almanaq` command of a block exists and knows the options that it is given."""
    from typer import Context
    from typer.main import get_command

    from almanaq.cli.app import app

    program = get_command(app)
    for block in blocks(page):
        if block.language != "sh":
            continue
        for line in re.sub(r"\\\n\s*", " ", block.code).splitlines():
            words = line.split("#")[0].split()
            command = (
                program.get_command(Context(program), words[1]) if words[:1] == ["almanaq"] and words[1:] else None
            )
            if command is None:
                continue
            while hasattr(command, "commands") and len(words) > 2 and words[2] in command.commands:
                command, words = command.commands[words[2]], words[1:]
            known = {option for param in command.params for option in (*param.opts, *param.secondary_opts)} | {"--help"}
            given = {word.split("=")[0] for word in words if word.startswith("--")}
            assert given <= known, f"{page.name}:{block.line}: {line}"


_HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)
_LINK = re.compile(r"\]\((?!\w+:)([^)\s#]*)(?:#([^)\s]+))?\)")


def anchors(page: Path) -> set[str]:
    """Return the ends of links to a page's headings, as GitHub and the site make them."""
    text = _BLOCK.sub("", page.read_text(encoding="utf-8"))
    plain = (re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading) for heading in _HEADING.findall(text))
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in plain}


def test_links_lead_to_files_to_pages_of_the_site_and_to_headings(root) -> None:
    outside = set(re.findall(r'^    "([\w./]+\.md)": "', (root / "scripts/site.py").read_text("utf-8"), re.MULTILINE))
    pages = {*(root / "docs").rglob("*.md"), root / "README.md", *(root / name for name in outside)}
    broken = []
    for page in pages:
        for target, anchor in _LINK.findall(_BLOCK.sub("", page.read_text(encoding="utf-8"))):
            found = (page.parent / target).resolve() if target else page
            known = found.exists() and (found.suffix != ".md" or found in pages)
            if not known or (anchor and found.suffix == ".md" and anchor not in anchors(found)):
                broken.append(f"{page.relative_to(root)}: {target}#{anchor}")
    assert broken == []


def test_every_page_stands_in_the_site(root) -> None:
    index = (root / "docs" / "index.md").read_text(encoding="utf-8")
    listed = {line for tree in re.findall(r"```{toctree}\n(.*?)```", index, re.DOTALL) for line in tree.splitlines()}
    pages = {page.relative_to(root / "docs").with_suffix("").as_posix() for page in (root / "docs").rglob("*.md")}
    missing = {page for page in pages - listed - {"index"} if not page.startswith("decisions/")}
    assert missing == set()
    gone = {line for line in listed if "/" in line and not line.startswith(("project/", "reference/"))} - pages
    assert gone == set()


SCRIPT = """
import contextlib, doctest, io, json, os, pathlib, sys, warnings
warnings.simplefilter("error")
import almanaq
sample, faults = None, []
for page, listed in json.loads(pathlib.Path(sys.argv[1]).read_text()).items():
    os.chdir(page)
    namespace = {"__name__": "page"}
    for name, language, code in listed:
        said = io.StringIO()
        try:
            with contextlib.redirect_stdout(said):
                if code.startswith(">>>"):
                    test = doctest.DocTestParser().get_doctest(code, namespace, name, name, 0)
                    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
                    failed = runner.run(test, clear_globs=False).failed
                    namespace = test.globs
                    assert not failed, said.getvalue()
                elif language == "python":
                    exec(compile(code, name, "exec"), namespace)
                else:
                    sample = sample or almanaq.connect("sample:restaurants")
                    sample.sql(code)
        except Exception as error:
            faults.append(f"{name}: {type(error).__name__}: {error}")
            break
print(json.dumps(faults))
"""


def dataset(name: str, split: str):
    """Return what writes a small dataset for a page that runs the benchmark."""

    def write(folder: Path) -> None:
        sys.path.insert(0, str(ROOT / "tests" / "benchmark"))
        try:
            from small_datasets import write_dataset
        finally:
            sys.path.pop(0)
        write_dataset(folder / "data" / name)
        own = folder / "data" / name / "queries_test.parquet"
        own.rename(own.with_name(f"queries_{split}.parquet"))

    return write


def reviews(folder: Path) -> None:
    rows = [f"{n},{'A joy from start to end.' if n % 3 else 'A waste of an evening.'}" for n in range(60)]
    (folder / "reviews.csv").write_text("\n".join(["id,review", *rows]) + "\n")


SETUP = {
    "benchmark.md": dataset("ottqa", "validation"),
    "target.md": dataset("fetaqa", "test"),
    "guarantees.md": reviews,
}
"""What a page takes for granted: files in the reader's working folder."""


@pytest.mark.slow
def test_what_can_run_runs(tmp_path: Path) -> None:
    """All pages in one process, so that libraries and weights are loaded once."""
    told = {}
    for page in PAGES:
        listed = [
            (f"{page.name}:{block.line}", block.language, block.code)
            for block in blocks(page)
            if block.language in RUN and not block.reason
        ]
        if listed:
            folder = tmp_path / page.stem
            folder.mkdir()
            SETUP.get(page.name, lambda _: None)(folder)
            told[str(folder)] = listed
    assert len(told) >= 10
    file = tmp_path / "blocks.json"
    file.write_text(json.dumps(told))
    environment = {
        **os.environ,
        "HOME": str(tmp_path),
        "ALMANAQ_DATA": str(tmp_path / "target" / "data"),
        "OPENAI_API_KEY": "none",
        "OPENAI_BASE_URL": "http://127.0.0.1:9",
    }
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(file)], env=environment, capture_output=True, text=True, check=False,
        timeout=180,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout.splitlines()[-1]) == []
