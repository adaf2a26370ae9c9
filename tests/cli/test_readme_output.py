"""The one output that README prints is what its command prints."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def test_the_output_that_is_shown_is_what_is_printed(tmp_path: Path) -> None:
    block = next(
        found for found in re.findall(r"^```sh\n(.*?)^```", README, re.MULTILINE | re.DOTALL) if "stays.csv" in found
    )
    shown = README.split("The last command prints:\n\n```\n")[1].split("```")[0]
    data = re.search(r"<<'END'\n(.*?)END\n", block, re.DOTALL)
    assert data is not None
    (tmp_path / "stays.csv").write_text(data[1], encoding="utf-8")
    command = [sys.executable, "-m", "almanaq", *shlex.split(block.splitlines()[-1])[1:]]
    printed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    words = [" ".join(line.split()) for line in printed.splitlines()]
    for line in filter(None, map(str.strip, shown.splitlines())):
        assert any(there.startswith(" ".join(line.split())) for there in words), (line, printed)
