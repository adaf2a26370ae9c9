"""Put almanaq into a copy of SemBench's harness: `python experiments/sembench/system/install.py FOLDER`."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from almanaq_bench.sembench.dataset import QUERIES

RUNNER = Path(__file__).with_name("almanaq_runner")
REST = """\
Two lines are left to you, in src/run.py and src/run_worker.py, in the table of runner classes:
    "almanaq": "AlmanaqRunner",
then: python src/run.py --systems almanaq --use-cases movie --model MODEL --scale-factor 2000"""


def install(harness: Path) -> None:
    """Write the runner and the ten queries to where the harness looks for them."""
    scenario = harness / "src" / "scenario" / "movie"
    if not scenario.is_dir():
        raise SystemExit(f"no copy of SemBench: {scenario} is no folder")
    shutil.copytree(
        RUNNER, scenario / "runner" / RUNNER.name, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__")
    )
    queries = harness / "files" / "movie" / "query" / "almanaq"
    queries.mkdir(parents=True, exist_ok=True)
    for query in QUERIES:
        (queries / f"{query.id}.sql").write_text(query.suql + "\n", encoding="utf-8")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("harness", type=Path)
    install(parser.parse_args().harness)
    print(REST)


if __name__ == "__main__":
    main()
