"""Nightly entry: `python -m tests.security.run --count 20000` attacks a DuckDB connection and a PostgreSQL server.

Beside these attempts, a twentieth as many on each engine that ibis reaches: what would be sent is judged by the rules
of that engine, and MariaDB runs it where it is installed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import mariadb_server
from postgres_server import find_binaries, run_server

from .attacks import SECRET, attacks
from .engine_texts import LEXICONS, objection
from .targets import attack, mariadb, postgres, recorded, user_duckdb


def run(count: int, seed: int) -> dict[str, Any]:
    """Make that many attacks, half of them on each engine; give how they ended."""
    started = time.monotonic()
    found: dict[str, Any] = {"seed": seed}
    with tempfile.TemporaryDirectory() as folder:
        canary = Path(folder) / "canary"
        canary.write_text(SECRET)
        with user_duckdb(Path(folder)) as con:
            found["duckdb"] = attack(con, attacks("duckdb", count - count // 2, str(canary), seed))
    binaries = find_binaries()
    if binaries is None:
        raise SystemExit("no PostgreSQL here: apt-get install postgresql")
    with run_server(binaries) as (url, log):
        canary = log.parent / "data" / "canary"
        canary.write_text(SECRET)
        canary.chmod(0o644)
        with postgres(url, "ALTER DATABASE postgres SET standard_conforming_strings = off") as con:
            found["postgres"] = attack(con, attacks("postgres", count // 2, str(canary), seed))
    found["sent"] = {engine: _judged(engine, count // 20, seed) for engine in LEXICONS}
    found["mariadb"] = _on_mariadb(count // 20, seed)
    found["attempts"] = found["duckdb"].total() + found["postgres"].total()
    found["seconds"] = round(time.monotonic() - started)
    return found


def _judged(engine: str, count: int, seed: int) -> dict[str, int]:
    """Attack a stand-in for an engine; give how that ended, and how many statements were judged."""
    with recorded(engine) as target:
        ended = attack(target.connection, attacks(engine, count, "/canary/here", seed))
        for text in target.queries:
            assert not objection(text, engine), (text, objection(text, engine))
        return {**ended, "judged": len(target.queries)}


def _on_mariadb(count: int, seed: int) -> dict[str, int] | str:
    if not mariadb_server.is_installed():
        return "not installed"
    with mariadb_server.run_server() as url, mariadb(url) as (con, canary):
        return attack(con, attacks("mysql", count, canary, seed))


def main() -> None:
    """Run the attacks and say how they ended; an attack that comes through is an error."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    found = {"command": f"python -m tests.security.run --count {chosen.count}", "passed": True}
    found |= run(chosen.count, chosen.seed)
    text = json.dumps(found, indent=2, sort_keys=True) + "\n"
    print(text, end="")
    if chosen.out is not None:
        chosen.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
