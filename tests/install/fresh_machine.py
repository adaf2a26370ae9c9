"""README to the letter on a machine that has Python, pip and make, each command timed. Part of `make nightly`.

The machine is a bare user: an empty home, a fresh copy of what is committed, no cache, and of the path only the folders
of Python and of the system. TESTS narrows what `make test` runs:

    TESTS=tests/values python -m pytest tests/install/fresh_machine.py --allow-hosts=* -s
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import time
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
_KEPT = ("TESTS", "JOBS", "LANG", "TERM", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_CONFIG_FILE", "PIP_FIND_LINKS")
SHELL = 'set -euo pipefail\nsource "$HOME/own/bin/activate" 2>/dev/null || true\ncd "$WHERE"\n'


def commands(block: str) -> list[str]:
    """Return a block's commands; what is fed to one from a here-document belongs to it."""
    found: list[str] = []
    end = ""
    for line in block.splitlines():
        if end:
            found[-1] += f"\n{line}"
            end = "" if line == end else end
        elif line:
            found.append(line)
            here = re.search(r"<<'?(\w+)'?", line)
            end = here[1] if here else ""
    return found


def test_readme_to_the_letter(tmp_path: Path) -> None:
    packed = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True).stdout
    clone, home = tmp_path / "almanaq", tmp_path / "home"
    with tarfile.open(fileobj=BytesIO(packed)) as archive:
        archive.extractall(clone, filter="data")
    python = Path(sys.base_prefix, "bin")
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    environment |= {"HOME": str(home), "PATH": f"{python}:/usr/bin:/bin", "WHERE": str(clone)}
    home.mkdir()
    # The environment of one's own that README speaks of.
    subprocess.run([python / "python3", "-m", "venv", home / "own"], check=True)
    took: dict[str, float] = {}
    blocks = _BLOCK.findall((clone / "README.md").read_text(encoding="utf-8"))
    assert len(blocks) >= 4
    for block in blocks:
        for command in commands(block):
            started = time.perf_counter()
            done = subprocess.run(
                ["bash", "-c", SHELL + command], env=environment, capture_output=True, text=True, check=False
            )
            took[command.splitlines()[0][:70]] = round(time.perf_counter() - started, 1)
            print(json.dumps({command.splitlines()[0][:70]: took[command.splitlines()[0][:70]]}), flush=True)
            assert done.returncode == 0, f"{command}\n{(done.stdout + done.stderr)[-3000:]}"
