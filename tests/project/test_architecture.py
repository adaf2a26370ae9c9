"""docs/architecture.md: the files that it names are there, no folder is missing, and its layers are those enforced."""

from __future__ import annotations

import re
import tomllib

import pytest


@pytest.fixture(scope="module")
def page(root) -> str:
    return (root / "docs" / "architecture.md").read_text()


def named(text: str) -> list[str]:
    """The files and folders that a text names: between backticks, with a slash or an ending of ours."""
    paths = re.findall(r"`([\w./-]+)`", text)
    return [path for path in paths if "/" in path or re.search(r"\.(py|toml|md)$", path)]


def rows(page: str, heading: str) -> list[list[str]]:
    section = page.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ") and not line.startswith("| ---")]
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines[1:]]


def test_it_is_one_page(page):
    assert len(page.splitlines()) <= 200


def test_every_file_that_is_named_is_there(page, root):
    package = root / "src" / "almanaq"
    folders = rows(page, "The folders")
    # In a row about a folder, files may be named from there.
    missing = [
        name
        for first, second in folders
        for folder in named(first)
        for name in named(second)
        if not any((place / name).exists() for place in (package / folder, root / folder, package, root))
    ]
    elsewhere = "\n".join(line for line in page.splitlines() if not line.startswith("| `"))
    missing += [name for name in named(elsewhere) if not (root / name).exists() and not (package / name).exists()]
    assert missing == []


def test_every_place_of_a_change_is_a_file_or_folder(page):
    changes = rows(page, "Where do I change …?")
    assert len(changes) >= 12
    assert [change[0] for change in changes if len(change) != 3 or not named(change[1])] == []


def test_every_folder_is_named(page, root):
    package, bench = root / "src" / "almanaq", root / "bench" / "src" / "almanaq_bench"
    folders = {f"{path.parent.relative_to(package).as_posix()}/" for path in package.rglob("*.py")} - {"./"}
    folders |= {f"{path.parent.relative_to(root).as_posix()}/" for path in bench.rglob("*.py")}
    assert folders - set(named(page)) == set()
    listed = [name for row in rows(page, "The folders") for name in named(row[0])]
    assert [name for name in listed if not (package / name).is_dir() and not (root / name).is_dir()] == []


def test_its_layers_are_those_that_are_enforced(page, root):
    contracts = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    enforced = ["\n".join(contract["layers"]) for contract in contracts if contract["type"] == "layers"]
    # What is in brackets need not be there; the page leaves out the package that all of a block's names begin with.
    bare = [
        re.sub(r"almanaq(_bench)?\.(suql\.|agent\.local\.)?", "", re.sub(r" \| \(.*?\)", "", text)) for text in enforced
    ]
    assert re.findall(r"```layers\n(.*?)\n```", page, re.DOTALL) == bare
