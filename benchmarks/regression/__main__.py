"""`python -m benchmarks.regression FILE … [--out FILE]`: SELECTs of regression files against a server's own rows.

The files lie in the folder that ALMANAQ_REGRESSION names, `test_setup.sql` beside them; ALMANAQ_POSTGRES is the URL of
a PostgreSQL server whose databases named `regression_…` are made anew, up to its last slash. Statements that are no
queries are run by psycopg; each query is run by psycopg, by almanaq on PostgreSQL, and by almanaq on DuckDB over copies
of the relations that it names. Prints the counts of each file as JSON; with --verbose also what differs or is refused.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg

import almanaq
from almanaq.errors import AlmanaqError

from .compare import verdict
from .statements import statements
from .worlds import Copies, new_database

_QUERY = re.compile(r"\s*\(*\s*(select|with|values|table)\b", re.I)
_WRITES = re.compile(
    r"\binto\s+(temp|temporary|table|unlogged)?\s*\w+\s+from\b|^\s*with\b.*\b(insert\s+into|update\s+\w+\s+set|delete\s+from|merge\s+into)\b",
    re.I | re.S,
)
_SKIPPED = re.compile(
    r"\s*(begin|commit|rollback|start|end|savepoint|release|explain|analyze|vacuum|prepare|deallocate|execute|declare|"
    r"fetch|close|move|abort|set\s+local|copy|listen|create\s+(tablespace|role|user)|set\s+(session|role)|reset\s+session)\b",
    re.I,
)
_TEMPORARY = re.compile(r"\bcreate\s+(or\s+replace\s+)?((global|local)\s+)?(temp|temporary|unlogged)\s+", re.I)
_ON_COMMIT = re.compile(r"\bon\s+commit\s+(drop|delete rows|preserve rows)", re.I)
_ELSEWHERE = re.compile(r"onek|tenk|person|\bemp\b|student|slow_emp|regresslib|road|streets", re.I)


def main() -> int:
    """Run the files, print JSON, give the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.regression", description=__doc__)
    parser.add_argument("files", nargs="+", help="names of files, without .sql")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--verbose", action="store_true")
    given = parser.parse_args()
    folder, server = Path(os.environ["ALMANAQ_REGRESSION"]), os.environ["ALMANAQ_POSTGRES"]
    counts = _Suite(folder, server, verbose=given.verbose).run(given.files)
    report = {"server": counts.pop("server"), "files": counts, "total": _totals(counts)}
    text = json.dumps(report, indent=1)
    if given.out:
        given.out.write_text(text + "\n", encoding="utf-8")
    print(text)
    return 0


def _totals(counts: dict[str, Any]) -> dict[str, dict[str, int]]:
    totals: dict[str, Counter[str]] = {"postgres": Counter(), "duckdb": Counter()}
    for file in counts.values():
        for engine, kinds in file.items():
            totals[engine].update(kinds)
    return {engine: dict(sorted(kinds.items())) for engine, kinds in totals.items()}


class _Suite:
    def __init__(self, folder: Path, server: str, *, verbose: bool) -> None:
        self._folder, self._verbose = folder, verbose
        self._pg = new_database(server, "regression_suite")
        self._url = server + "regression_suite"
        self._con: almanaq.Connection | None = None
        self._copies = Copies(self._url, self._pg)

    def run(self, files: list[str]) -> dict[str, Any]:
        """Return the counts of each file, by engine and kind."""
        for statement in statements((self._folder / "test_setup.sql").read_text(encoding="utf-8")):
            if not _SKIPPED.match(statement) and not _ELSEWHERE.search(statement):
                self._change(statement)
        found: dict[str, Any] = {"server": self._pg.info.server_version}
        for file in files:
            kinds: dict[str, Counter[str]] = {"postgres": Counter(), "duckdb": Counter()}
            for statement in statements((self._folder / f"{file}.sql").read_text(encoding="utf-8")):
                if _SKIPPED.match(statement):
                    continue
                if not _QUERY.match(statement) or _WRITES.search(statement):
                    self._change(statement)
                    continue
                for engine, kind in self._ask(file, statement).items():
                    kinds[engine][kind] += 1
            found[file] = {engine: dict(sorted(counted.items())) for engine, counted in kinds.items()}
            print(file, found[file], file=sys.stderr, flush=True)
        return found

    def _change(self, statement: str) -> None:
        statement = _ON_COMMIT.sub("", _TEMPORARY.sub(lambda match: f"create {match[1] or ''}", statement))
        with contextlib.suppress(psycopg.Error):  # the files try mistakes, too
            self._pg.execute(statement.encode())
        if not re.match(r"\s*(set|reset|show)\b", statement, re.I):
            self._copies.forget(statement)
            if self._con is not None:
                self._con.close()
            self._con = None

    def _ask(self, file: str, query: str) -> dict[str, str]:
        try:
            expected = self._pg.execute(query.encode()).fetchall()
        except (psycopg.Error, ValueError):
            return dict.fromkeys(("postgres", "duckdb"), "the server refuses")
        return {
            "postgres": self._compare(file, "postgres", query, expected, lambda: self._connection()),
            "duckdb": self._compare(file, "duckdb", query, expected, lambda: self._copies.connection(query)),
        }

    def _connection(self) -> almanaq.Connection:
        if self._con is None:
            self._con = almanaq.connect(self._url, cache=False, deadline=20)
        return self._con

    def _compare(
        self, file: str, engine: str, query: str, expected: list[Any], connect: Callable[[], almanaq.Connection]
    ) -> str:
        said = ""
        try:
            rows = connect().sql(query).rows
            kind = verdict(expected, rows)
            said = f"{expected[:3]} | {list(rows)[:3]}"
        except AlmanaqError as error:
            kind, said = "refused", f"{type(error).__name__}: {error}".split("\n")[0]
        except Exception as error:  # a fault of ours: counted apart
            kind, said = "internal error", f"{type(error).__name__}: {error}".split("\n")[0]
        if self._verbose and kind not in ("same", "other order"):
            print(f"{engine} {kind} {file} | {' '.join(query.split())[:200]} | {said[:300]}", file=sys.stderr)
        return kind


if __name__ == "__main__":
    sys.exit(main())
