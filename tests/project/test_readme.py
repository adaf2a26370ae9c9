"""Every command and every piece of Python in the README runs, in order, in an empty folder."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# Commands that make an environment, or want a key; `make demo` is what a fresh clone is tried with.
ELSEWHERE = ("make ", "pip ", "git ", "cd ", "export OPENAI", "almanaq serve", "almanaq chat")


def blocks(root: Path, language: str) -> list[str]:
    return [body for kind, body in BLOCK.findall((root / "README.md").read_text()) if kind == language]


def environment(folder: Path) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("ALMANAQ_", "OPENAI_"))}
    if "PYTHONPATH" in kept:
        kept["PYTHONPATH"] = os.pathsep.join(str(Path(p).absolute()) for p in kept["PYTHONPATH"].split(os.pathsep))
    return kept | {"ALMANAQ_CACHE_DIR": str(folder / "cache"), "COLUMNS": "100"}


def test_the_readme_has_examples_of_both_kinds(root):
    assert len(blocks(root, "sh")) >= 2
    assert len(blocks(root, "python")) >= 1


@pytest.mark.slow
def test_every_command_runs(root, tmp_path):
    shell = f'set -eu\nalmanaq() {{ {shlex.quote(sys.executable)} -m almanaq "$@"; }}\n'
    ran = 0
    for block in blocks(root, "sh"):
        lines = [line for line in block.splitlines() if not line.startswith(ELSEWHERE)]
        if not any(line.startswith("almanaq ") for line in lines):
            continue
        # A line between two commands tells which of them said nothing.
        script = "\n".join(f"{line}\necho =====" if line.startswith("almanaq ") else line for line in lines)
        run = subprocess.run(
            ["bash", "-c", shell + script],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment(tmp_path),
            timeout=120,
            check=False,
        )
        assert run.returncode == 0, f"{block}\n{run.stdout}\n{run.stderr}"
        *said, _ = run.stdout.split("=====\n")
        assert all(part.strip() for part in said), f"{block}\n{run.stdout}"
        ran += len(said)
    assert ran >= 5


@pytest.mark.slow
def test_every_piece_of_python_runs(root, tmp_path):
    for code in blocks(root, "python"):
        run = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment(tmp_path),
            timeout=120,
            check=False,
        )
        assert run.returncode == 0, f"{code}\n{run.stderr}"
