"""Starts the process that runs generated SQL, asks it, and kills it when it does not answer in time."""

from __future__ import annotations

import json
import selectors
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Self

from almanaq.benchmark.sql.worker import READY
from almanaq.errors import BenchmarkError, SourceError

Kind = Literal["ok", "empty", "error", "refused", "timeout", "rows", "memory", "crashed"]
"""How a query ended. All but `ok` come with a reason."""

_WORKER = Path(__file__).with_name("worker.py")
_START = 60.0
_GRACE = 2.0  # seconds beyond the deadline that a query gets to notice it


@dataclass(frozen=True, slots=True)
class Limits:
    """What a query may take.

    Attributes:
        seconds: until it is interrupted; `rows`: most that it may give; `memory`: bytes that SQLite may hold.
    """

    seconds: float = 30.0
    rows: int = 200_000
    memory: int = 512 << 20


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one query ended; `reason` says why where it gave no rows."""

    kind: Kind
    reason: str = ""
    rows: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Judged:
    """A generated query beside the gold one.

    Attributes:
        same_set: equal as sets of rows, `same_bag` as multisets, `same_list` in order too.
    """

    gold: Outcome
    reply: Outcome
    same_set: bool
    same_bag: bool
    same_list: bool


class Sandbox:
    """A process for generated SQL. Close it, or use it in `with`; one thread at a time."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._process: subprocess.Popen[str] | None = None

    def judge(self, database: Path, gold: str, reply: str) -> Judged:
        """Run two queries on a database and compare their rows.

        Raises:
            SourceError: the database is not there, or is none.
            BenchmarkError: the process cannot be started.
        """
        if not database.is_file():
            raise SourceError(f"there is no database {database}")
        request = {"database": str(database.resolve()), "gold": gold, "reply": reply, "limits": asdict(self.limits)}
        told = self._ask(request)
        if told is None:
            return self._one_by_one(request)
        if "failed" in told:
            raise SourceError(told["failed"])
        return Judged(
            Outcome(**told["gold"]), Outcome(**told["reply"]), told["same_set"], told["same_bag"], told["same_list"]
        )

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _one_by_one(self, request: dict[str, Any]) -> Judged:
        """Say which of two queries it was that the process did not survive."""
        gold, reply = (self._alone(request, name) for name in ("gold", "reply"))
        return Judged(gold, reply, same_set=False, same_bag=False, same_list=False)

    def _alone(self, request: dict[str, Any], name: str) -> Outcome:
        told = self._ask({**request, "gold": request[name], "reply": "SELECT 1"})
        if told is None:
            return Outcome(
                "crashed", "the process that ran it had to be killed: it neither stopped nor answered in time"
            )
        return Outcome(**told["gold"])

    def _ask(self, request: dict[str, Any]) -> dict[str, Any] | None:
        """Give the reply of the process; None where it died or had to be killed."""
        process = self._running()
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            line = _line(process, 2 * self.limits.seconds + _GRACE)
        except BrokenPipeError:
            line = ""
        if not line:
            self.close()
            return None
        told: dict[str, Any] = json.loads(line)
        return told

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None or self._process.poll() is not None:
            self.close()
            command = [sys.executable, "-I", str(_WORKER), str(self.limits.memory)]
            try:
                self._process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env={}
                )
            except OSError as error:
                raise BenchmarkError(f"cannot start the process that runs generated SQL: {error}") from error
            if _line(self._process, _START).strip() != READY:
                self.close()
                raise BenchmarkError("the process that runs generated SQL ended before it was ready: is memory short?")
        return self._process


def _line(process: subprocess.Popen[str], seconds: float) -> str:
    """Give a line of what a process prints; "" where it ends or takes too long."""
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        return process.stdout.readline() if selector.select(seconds) else ""
