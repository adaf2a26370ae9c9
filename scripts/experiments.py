"""Run the committed experiments again and keep their results: experiments/KIND/NAME.json.

Each file holds the arguments of `almanaq` that make it (`command`) and what they gave (`result`). The datasets are
read from the folder that ALMANAQ_DATA names, else from ../shared/data; an experiment whose dataset is not there is
passed over, and said so. Arguments: parts of names; only experiments with one of them in their path are run.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SHORT_LISTS = re.compile(r"\[[^\[\]{}]{0,100}?\]")  # intervals and field names stand on one line
DATA = Path(os.environ.get("ALMANAQ_DATA", ROOT.parent / "shared" / "data"))


def run(path: Path) -> str:
    """Run one experiment and keep its result; say in one line how it went."""
    record: dict[str, Any] = json.loads(path.read_text())
    command = record["command"]
    dataset = command[command.index("--dataset") + 1]
    if not (DATA / dataset).is_dir():
        return f"passed over: no {DATA / dataset}"
    with tempfile.TemporaryDirectory() as folder:
        arguments = [*command, "--data-dir", str(DATA), "--out", f"{folder}/run", "--json"]
        done = subprocess.run([sys.executable, "-m", "almanaq", *arguments], stdout=subprocess.PIPE, check=False)
    if done.returncode:
        return f"failed with exit code {done.returncode}"
    record["result"] = json.loads(done.stdout)
    text = json.dumps(record, indent=1, ensure_ascii=False) + "\n"
    path.write_text(SHORT_LISTS.sub(lambda found: " ".join(found[0].split()), text))
    return "done"


def main() -> int:
    """Run what was asked for; exit 1 when one failed."""
    wanted = sys.argv[1:]
    outcomes = []
    for path in sorted((ROOT / "experiments").glob("*/*.json")):
        if "command" in json.loads(path.read_text()) and (not wanted or any(part in str(path) for part in wanted)):
            outcomes.append(run(path))
            print(f"{path.relative_to(ROOT)}: {outcomes[-1]}", flush=True)
    return int(any(outcome.startswith("failed") for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
