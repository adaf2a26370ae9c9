"""Every command of the tutorial and the how-tos runs, in the order of its page, and prints what the page shows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.project.test_doc_blocks import PAGES, blocks

SHELL = (
    "tutorial.md", "model-server.md", "private-columns.md", "budgets.md", "teach-local.md", "editor.md",
    "own-dataset.md", "own-retriever.md",
)  # fmt: skip
"""Pages whose commands are run, one after another, in an empty folder."""


@pytest.mark.parametrize("name", SHELL)
def test_commands_of_a_page_run(name: str, tmp_path: Path) -> None:
    (page,) = (page for page in PAGES if page.name == name)
    script = "set -euo pipefail\n" + "\n".join(b.code for b in blocks(page) if b.language == "sh" and not b.reason)
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "ALMANAQ_LOCAL_SERVERS": "none",
    }
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    for shown in (b.code for b in blocks(page) if b.language == "text" and "almanaq:" not in b.code):
        assert " ".join(shown.split()) in " ".join(done.stdout.split())
