"""Starts the process that runs generated SQL, asks it, and kills it when it does not answer in time."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Literal, Self

from almanaq.errors import BenchmarkError, SourceError
from almanaq_bench.sql.worker import READY

Kind = Literal["ok", "empty", "error", "refused", "timeout", "rows", "memory", "crashed"]
"""How a query ended. All but `ok` come with a reason."""

_KILLED = {"kind": "crashed", "reason": "the process that ran it was killed: it neither stopped nor answered in time"}
_WORKER = Path(__file__).with_name("worker.py")
_START = 60.0
_GRACE = 1.0  # seconds beyond the deadline that a query gets to notice it; then its process is killed
_COMPARING = 10.0


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
        self._lines: _Lines

    def judge(self, database: Path, gold: str, reply: str) -> Judged:
        """Run two queries on a database and compare their rows.

        Raises:
            SourceError: the database is not there, or is none.
            BenchmarkError: the process cannot be started.
        """
        if not database.is_file():
            raise SourceError(f"there is no database {database}")
        request = {"database": str(database.resolve()), "gold": gold, "reply": reply, "limits": asdict(self.limits)}
        verdict = self._ask(request)
        if "failed" in verdict:
            raise SourceError(verdict["failed"])
        if "gold" not in verdict:  # the process did not survive it: the reply is run by itself
            verdict["reply"] = self._ask({**request, "gold": reply, "reply": "SELECT 1"}).get("gold", _KILLED)
        gold_outcome, outcome = (Outcome(**verdict.get(name, _KILLED)) for name in ("gold", "reply"))
        same = (bool(verdict.get(name)) for name in ("same_set", "same_bag", "same_list"))
        return Judged(gold_outcome, outcome, *same)

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

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return what the process replies; of one that died or had to be killed, what it told before.

        Each query has the time that it may take by itself: one that heeds no interruption costs no more than that.
        """
        reply: dict[str, Any] = {}
        process = self._running()
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            for seconds in (self.limits.seconds + _GRACE, self.limits.seconds + _GRACE, _COMPARING):
                line = self._lines.next(seconds)
                if not line:
                    break
                reply |= json.loads(line)
                if "failed" in reply or "same_set" in reply:
                    return reply
        except BrokenPipeError:
            pass
        self.close()
        return reply

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
            assert self._process.stdout is not None
            self._lines = _Lines(self._process.stdout)
            if self._lines.next(_START).strip() != READY:
                self.close()
                raise BenchmarkError("the process that runs generated SQL ended before it was ready: is memory short?")
        return self._process


class _Lines:
    """The lines that a process prints, each within some time."""

    def __init__(self, stream: IO[str]) -> None:
        self._file = stream.fileno()
        self._read = b""

    def next(self, seconds: float) -> str:
        """Return the next line; "" where the process ends or takes too long."""
        until = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(self._file, selectors.EVENT_READ)
            while b"\n" not in self._read:
                if not selector.select(max(0.0, until - time.monotonic())):
                    return ""
                piece = os.read(self._file, 1 << 16)
                if not piece:
                    return ""
                self._read += piece
        line, _, self._read = self._read.partition(b"\n")
        return line.decode()
