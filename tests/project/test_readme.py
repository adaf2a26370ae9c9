"""Every command and every piece of Python in the README runs, in order, in an empty folder."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from almanaq.cli.app import app

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# Commands that make an environment, or want a key; `make demo` is what a fresh clone is tried with.
ELSEWHERE = ("make ", "pip ", "git ", "cd ", "export OPENAI", "almanaq serve", "almanaq chat")


def blocks(root: Path, language: str) -> list[str]:
    return [body for kind, body in BLOCK.findall((root / "README.md").read_text()) if kind == language]


def test_the_readme_has_examples_of_both_kinds(root):
    assert len(blocks(root, "sh")) >= 2
    assert len(blocks(root, "python")) >= 1


@pytest.mark.slow
def test_every_command_runs(root, tmp_path, monkeypatch):
    """And prints what the README shows of the last of its first block."""
    monkeypatch.chdir(tmp_path)
    shell = "set -eu\nalmanaq() { printf '%s\\n' \"$@\" =====; }\n"
    printed = []
    for block in blocks(root, "sh"):
        lines = [line for line in block.splitlines() if not line.startswith(ELSEWHERE)]
        if not any(line.startswith("almanaq ") for line in lines):
            continue
        typed = subprocess.run(["bash", "-c", shell + "\n".join(lines)], stdout=subprocess.PIPE, text=True, check=True)
        for words in typed.stdout.split("=====\n")[:-1]:
            run = CliRunner().invoke(app, words.splitlines(), env={"COLUMNS": "100"}, catch_exceptions=False)
            assert (run.exit_code, run.stdout.strip() != "") == (0, True), f"{words}\n{run.output}"
            printed += [" ".join(line.split()) for line in run.stdout.splitlines()]
    shown = (root / "README.md").read_text().split("The last command prints:\n\n```\n")[1].split("```")[0]
    for line in filter(None, shown.splitlines()):
        assert any(found.startswith(" ".join(line.split())) for found in printed), f"{line}\n{printed}"


@pytest.mark.slow
def test_every_piece_of_python_runs(root, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for code in blocks(root, "python"):
        exec(compile(code, "README.md", "exec"), {"__name__": "__main__"})
