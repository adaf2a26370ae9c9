"""Other systems and ours against one stand-in server: `python -m benchmarks.peers --data DIR --peer NAME=PYTHON …`.

Each system runs in a process of its own, by the Python that has it; README.md says how to install them. Calls and
tokens are those of the server's ledger, tokens words; a call takes 20 ms; the replies are always right.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.peers.replies import reply_of
from benchmarks.peers.tasks import PeerTask, tasks

from almanaq.encode import plain
from almanaq_bench.testing import Faults, StandInServer

LATENCY = 0.02
SYSTEMS = Path(__file__).with_name("systems")
OURS = ("almanaq", "almanaq_speculation_1", "almanaq_batch_32")
PACKAGES = {"lotus": "lotus-ai", **dict.fromkeys(OURS, "almanaq")}
"""What is installed for a system, where it is called otherwise."""


def measure_system(system: str, python: str, chosen: list[PeerTask], answer: Any) -> dict[str, Any]:
    """Run a system's tasks; give what each took."""
    faults = Faults(latency=LATENCY)
    with (
        StandInServer(reply_of(system, answer), faults=faults, keep_requests=False) as server,
        tempfile.TemporaryDirectory() as folder,
        _start_system(system, python, server.url, folder) as child,
    ):
        found = {task.name: _task(child, server, task, Path(folder)) for task in chosen}
    return {"version": _version(system, python), "tasks": found}


def _task(child: subprocess.Popen[str], server: StandInServer, task: PeerTask, folder: Path) -> dict[str, Any]:
    ledger, file = server.ledger, folder / "task.json"
    before = (ledger.calls, ledger.input_tokens + ledger.output_tokens)
    tables = {name: plain(table.to_pylist()) for name, table in task.tables.items()}
    file.write_text(json.dumps({"name": task.name, "sql": task.sql, "tables": tables}), encoding="utf-8")
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(json.dumps(str(file)) + "\n")
    child.stdin.flush()
    said = json.loads(child.stdout.readline())
    found = {
        "calls": ledger.calls - before[0],
        "tokens": ledger.input_tokens + ledger.output_tokens - before[1],
        "seconds": round(said["seconds"], 2),
    }
    if "error" in said:
        return {**found, "quality": 0.0, "error": said["error"]}
    return {**found, "quality": round(task.quality(said["rows"]), 4)}


def _start_system(system: str, python: str, url: str, folder: str) -> subprocess.Popen[str]:
    tokenizers = [str(path) for path in Path(python).parent.parent.glob("lib/*/site-packages/litellm/*/tokenizers")]
    own = {
        "OPENAI_BASE_URL": url,
        "OPENAI_API_BASE": url,
        "OPENAI_API_KEY": "k",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "HOME": folder,  # what a system keeps on disk is not there the next time
        **({"TIKTOKEN_CACHE_DIR": tokenizers[0]} if tokenizers else {}),
    }
    command = [python, str(SYSTEMS / f"{system}_system.py")]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder, env={**os.environ, **own}
    )


def _version(system: str, python: str) -> str:
    code = f"from importlib.metadata import version; print(version({PACKAGES.get(system, system)!r}))"
    return subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder with Movies.csv and Reviews.csv")
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=PYTHON")
    parser.add_argument("--task", action="append", help="only these")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    all_tasks, answer = tasks(given.data)
    chosen = [task for task in all_tasks if given.task is None or task.name in given.task]
    pythons = dict(pair.split("=", 1) for pair in given.peer)
    found: dict[str, Any] = {
        "command": "python -m benchmarks.peers --data DIR --peer NAME=PYTHON … --out benchmarks/peers/results.json",
        "load": os.getloadavg(),
        "latency": LATENCY,
        "systems": {},
    }
    if given.out is not None and given.out.exists():  # systems that are not run again keep their figures
        found["systems"] = json.loads(given.out.read_text("utf-8"))["systems"]
    for system, python in {**dict.fromkeys(OURS, sys.executable), **pythons}.items():
        found["systems"][system] = measure_system(system, python, chosen, answer)
        if given.out is not None:
            given.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
