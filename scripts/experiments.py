"""Run the committed experiments again and keep their results: experiments/KIND/NAME.json.

Each file holds the arguments of `almanaq` that make it (`command`) and what they gave (`result`). The datasets are
read from the folder that ALMANAQ_DATA names, else from ../shared/data; an experiment whose dataset is not there is
passed over, and said so. Arguments: parts of names; only experiments with one of them in their path are run.

Experiments on one dataset run one after another in one process, as they share its vectors; `--jobs` datasets run side
by side. With `--timed NAME` no vector is known before, and what the runs took goes to experiments/timed/NAME.json.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import platform
import re
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stdout
from multiprocessing import get_context
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SHORT_LISTS = re.compile(r"\[[^\[\]{}]{0,100}?\]")  # intervals and field names stand on one line
DATA = Path(os.environ.get("ALMANAQ_DATA", ROOT.parent / "shared" / "data"))
CACHE = "ALMANAQ_CACHE_DIR"

Outcome = dict[str, Any]
"""Of an experiment: its file's name, how it went, wall and processor seconds."""


def run(path: Path) -> str:
    """Run one experiment and keep its result; say in one line how it went."""
    from almanaq.cli import main

    record: dict[str, Any] = json.loads(path.read_text())
    if not (DATA / dataset_of(path)).is_dir():
        return f"passed over: no {DATA / dataset_of(path)}"
    printed = io.StringIO()
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(printed):
        sys.argv = ["almanaq", *record["command"], "--data-dir", str(DATA), "--out", f"{folder}/run", "--json"]
        try:
            code = main()
        except SystemExit as left:  # as typer leaves after a command that it has run
            code = int(left.code or 0)
    if code:
        return f"failed with exit code {code}"
    record["result"] = json.loads(printed.getvalue())
    record["machine"] = machine()
    write(path, record)
    return "done"


def machine() -> str:
    """Say what it ran on: the processor's kind, its cores and the system."""
    return f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}"


def write(path: Path, record: dict[str, Any]) -> None:
    """Write a JSON file as those under experiments/ are written."""
    text = json.dumps(record, indent=1, ensure_ascii=False) + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(SHORT_LISTS.sub(lambda found: " ".join(found[0].split()), text))


def run_all(paths: list[Path]) -> list[Outcome]:
    """Run the experiments on one dataset, and say of each how it went and what it took."""
    outcomes = []
    for path in paths:
        wall, cpu = time.perf_counter(), time.process_time()
        name = str(path.relative_to(ROOT))
        how = run(path)
        took = {"wall_seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - cpu}
        outcomes.append({"name": name, "outcome": how, **took})
        print(f"{name}: {how} ({took['wall_seconds']:.1f} s, {took['cpu_seconds']:.1f} s of processor)", flush=True)
    return outcomes


def dataset_of(path: Path) -> str:
    """Return the dataset of an experiment."""
    command: list[str] = json.loads(path.read_text())["command"]
    return command[command.index("--dataset") + 1]


def select_experiments(parts: list[str]) -> Iterator[Path]:
    """Yield the experiments that are asked for."""
    for path in sorted((ROOT / "experiments").glob("*/*.json")):
        asked = not parts or any(part in str(path.relative_to(ROOT)) for part in parts)
        if asked and isinstance(json.loads(path.read_text()).get("command"), list):
            yield path


def by_dataset(paths: list[Path]) -> list[list[Path]]:
    """Return the experiments of each dataset, that of most questions first: it takes longest."""
    groups: dict[str, list[Path]] = {}
    for path in paths:
        groups.setdefault(dataset_of(path), []).append(path)
    return sorted(groups.values(), key=lambda group: -size_of(group))


def size_of(group: list[Path]) -> int:
    """Return how many questions a dataset asked when it was last run."""
    return max((json.loads(path.read_text()).get("result") or {}).get("queries", 0) for path in group)


def run_groups(groups: list[list[Path]], jobs: int) -> dict[str, Any]:
    """Run groups side by side, and give what they took in all and one by one."""
    load, started = os.getloadavg()[0], time.perf_counter()
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // jobs)))
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        outcomes = [outcome for found in pool.map(run_all, groups) for outcome in found]
    wall = time.perf_counter() - started
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "experiments": len(outcomes),
        "processes": jobs,
        "load_before": round(load, 1),
        "wall_seconds": round(wall, 1),
        "cpu_seconds": round(children.ru_utime + children.ru_stime, 1),
        "each": {
            each["name"].removeprefix("experiments/").removesuffix(".json"): [
                round(each["wall_seconds"], 1),
                round(each["cpu_seconds"], 1),
            ]
            for each in outcomes
        },
        "not_done": [each["name"] for each in outcomes if each["outcome"] != "done"],
        "failed": any(each["outcome"].startswith("failed") for each in outcomes),
    }


def main() -> int:
    """Run what was asked for; exit 1 when one failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timed", metavar="NAME")
    told = parser.parse_args()
    groups = by_dataset(list(select_experiments(told.parts)))
    if told.timed is None:
        return int(run_groups(groups, told.jobs)["failed"])
    with tempfile.TemporaryDirectory() as folder:
        os.environ[CACHE] = folder
        found = run_groups(groups, told.jobs)
    command = " ".join(["python scripts/experiments.py --timed", told.timed, *told.parts])
    if not found["not_done"]:
        took = {name: value for name, value in found.items() if name not in ("not_done", "failed")}
        write(ROOT / "experiments" / "timed" / f"{told.timed}.json", {"made_by": command, **took})
    return int(bool(found["not_done"]))


if __name__ == "__main__":
    sys.exit(main())
