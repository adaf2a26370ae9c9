"""Generated queries on a cluster beside DuckDB: rows and calls, query by query.

`python -m tests.cluster.laws --count 500 --out tests/cluster/laws.json` starts a cluster and records what it
found: how many queries were compared, the seeds that were not, and why. Queries are DuckDB's, as sqlglot writes them in
Spark's words. A seed is left out where the referee cannot run it, where it gives no rows (most of those), and where
Spark has no such words, or other functions and types: an error of Spark's.
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import sqlglot
from tests.laws.check import DISPUTED, WRONG_ROWS, Failure, Observed, Ready, check, connect_exactly, prepare

from almanaq.errors import UnsupportedError
from almanaq.testing import FunctionModel

from .processes import running
from .tables import Tables

FILES_EVERY = 10
"""One world of so many is written as Parquet files; the others are views, which are read in a tenth of the time."""
SHOWN_EVERY = 25
_REFUSED = ("UnsupportedError", "UnknownNameError", "OperationalError", "RefusedQueryError", "QuerySyntaxError")


@dataclass(frozen=True)
class Compared:
    """What became of a seed.

    Attributes:
        left_out: why it was not compared; None where it was.
        cut: LIMIT leaves the choice of the rows, and so the calls, to the order in which an engine gives them.
    """

    seed: int
    left_out: str | None = None
    failure: Failure | None = None
    calls: int = 0
    duckdb_calls: int = 0
    cut: bool = False


def compare(seed: int, tables: Tables) -> Compared:
    """Run the query of one seed on the cluster and on DuckDB."""
    ready = prepare(seed)
    if not isinstance(ready, Ready):
        return Compared(seed, f"the referee: {ready}" if ready else "no rows")
    connect = functools.partial(_connect, tables, seed % FILES_EVERY == 0)
    failure, observed = check(ready, connect=connect)
    if failure is not None and failure.kind.partition(":")[0] in _REFUSED:
        return Compared(seed, f"Spark: {failure.message.splitlines()[0][:150]}")
    if failure is not None and failure.kind == WRONG_ROWS and _disputed(seed, connect):
        return Compared(seed, f"the referee: {DISPUTED}")
    return _beside_duckdb(ready, failure, observed)


def _beside_duckdb(ready: Ready, failure: Failure | None, observed: Observed | None) -> Compared:
    case, right = ready.case, check(ready)[1]
    cut = "LIMIT" in case.sql or "FETCH" in case.sql
    calls, there = (0 if o is None else o.calls for o in (observed, right))
    if failure is None and not cut and calls != there:
        failure = Failure(case.seed, "calls", f"{calls} calls, DuckDB {there}", case.sql)
    return Compared(case.seed, None, failure, calls, there, cut)


def _disputed(seed: int, connect: Any) -> bool:
    plain = prepare(seed, optimized=False)
    return isinstance(plain, Ready) and check(plain, connect=connect)[0] is None


def in_spark(sql: str) -> str:
    """Return a query of DuckDB's in Spark's words; raises UnsupportedError where sqlglot has none."""
    try:
        return sqlglot.transpile(sql, read="duckdb", write="spark", unsupported_level=sqlglot.ErrorLevel.RAISE)[0]
    except sqlglot.errors.SqlglotError as error:
        raise UnsupportedError(f"Spark has no words for it: {str(error).splitlines()[0]}") from error


class InSpark:
    """A connection to a cluster that is asked DuckDB's queries."""

    def __init__(self, con: Any) -> None:
        self._con, self.close = con, con.close

    def sql(self, sql: str, parameters: Any = ()) -> Any:
        """Return the result of a query, in Spark's words."""
        if parameters:
            raise UnsupportedError("parameters are written otherwise")
        return self._con.sql(in_spark(sql))


def _connect(tables: Tables, files: bool, source: dict[str, pa.Table], model: FunctionModel, **options: object) -> Any:
    return InSpark(connect_exactly(tables.database(source, files=files), model, **options))  # type: ignore[arg-type]


@dataclass
class Record:
    """What a run found."""

    first: int
    compared: list[Compared] = field(default_factory=list)
    left_out: list[Compared] = field(default_factory=list)

    def add(self, found: Compared) -> None:
        """Count one seed."""
        (self.compared if found.left_out is None else self.left_out).append(found)

    @property
    def failures(self) -> list[Failure]:
        """What differs."""
        return [found.failure for found in self.compared if found.failure is not None]

    def told(self) -> dict[str, Any]:
        """Return the record as JSON can hold it."""
        reasons: dict[str, list[int]] = {}
        for found in self.left_out:
            reasons.setdefault(str(found.left_out), []).append(found.seed)
        empty = reasons.pop("no rows", [])
        whole = [found for found in self.compared if not found.cut]
        last = max((found.seed for found in [*self.compared, *self.left_out]), default=self.first)
        return {
            "first_seed": self.first,
            "last_seed": last,
            "compared": len(self.compared),
            "differ": len(self.failures),
            "seeds_that_differ": {f.seed: f"{f.kind}: {f.message.splitlines()[0][:200]}" for f in self.failures},
            "calls": sum(found.calls for found in whole),
            "duckdb_calls": sum(found.duckdb_calls for found in whole),
            "queries_of_equal_calls": sum(found.calls == found.duckdb_calls for found in whole),
            "queries_whose_calls_are_compared": len(whole),
            "left_out_without_rows": len(empty),
            "left_out": dict(sorted(reasons.items(), key=lambda item: (-len(item[1]), item[0]))),
        }

    def __str__(self) -> str:
        kinds = Counter(str(found.left_out).partition(":")[0] for found in self.left_out)
        return f"{len(self.compared)} compared, {len(self.failures)} differ, left out: {dict(kinds)}"


def compared(tables: Tables, first: int, wanted: int) -> Iterator[Compared]:
    """Yield what becomes of each seed until so many were compared."""
    seeds, done = count(first), 0
    while done < wanted:
        found = compare(next(seeds), tables)
        done += found.left_out is None
        yield found


def main() -> int:
    """Run, write the record, and give the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.laws", description=__doc__)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write what was found as JSON")
    given = parser.parse_args()
    record, started = Record(given.seed), time.monotonic()
    with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as cluster:
        for found in compared(Tables(cluster), given.seed, given.count):
            record.add(found)
            if found.failure is not None:
                print(f"{found.failure}\n", file=sys.stderr, flush=True)
            if found.left_out is None and len(record.compared) % SHOWN_EVERY == 0:
                print(record, flush=True)
                _keep(record, given.out, time.monotonic() - started)
    _keep(record, given.out, time.monotonic() - started)
    print(record)
    return 1 if record.failures else 0


def _keep(record: Record, file: Path | None, seconds: float) -> None:
    command = " ".join(["python -m tests.cluster.laws", *sys.argv[1:]])
    if file is not None:
        told = {"command": command, **record.told(), "seconds": round(seconds)}
        file.write_text(json.dumps(told, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    raise SystemExit(main())
