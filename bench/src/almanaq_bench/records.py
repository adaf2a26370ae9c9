"""Per-query records on disk: one JSON line each, appended as a run goes, whole or not there."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from almanaq.corpus.table import TableId
from almanaq.errors import BenchmarkError
from almanaq.retrieval.protocols import Hit, Ranking

CONFIG, RECORDS, REPLIES = "config.json", "records.jsonl", "replies.jsonl"
TIMINGS, METRICS = "timings.jsonl", "metrics.json"
"""The files of a run folder. Two runs of one configuration differ in their timings alone."""

_DIGITS = 6  # of a score: enough to order by, and the same on every machine that computes in float32


@dataclass(frozen=True, slots=True)
class Record:
    """What was found for one query, beside its gold tables; `fault`: why it is in another order than was asked for."""

    query_id: str
    gold: tuple[TableId, ...]
    hits: Ranking
    question: str = ""
    fault: str = ""

    def to_json(self) -> str:
        """Return one line without its end."""
        hits = [[*hit.id, round(float(hit.score), _DIGITS)] for hit in self.hits]
        gold = [list(table) for table in self.gold]
        fields = {"query_id": self.query_id, "question": self.question, "gold": gold, "hits": hits}
        fields |= {"fault": self.fault} if self.fault else {}
        return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


def read_records(file: Path) -> Iterator[Record]:
    """Yield the records of a run in order; none where the file is not there.

    A last line without its end was being written when the run was stopped: it is left out.

    Raises:
        BenchmarkError: a whole line is not a record.
    """
    for number, line in enumerate(whole_lines(file), 1):
        try:
            fields: dict[str, Any] = json.loads(line)
            hits = tuple(Hit(TableId(database, table), score) for database, table, score in fields["hits"])
            if not math.isfinite(sum(hit.score for hit in hits)):
                raise ValueError("a score is not a number")
            gold = tuple(TableId(*table) for table in fields["gold"])
            yield Record(fields["query_id"], gold, hits, fields["question"], fields.get("fault", ""))
        except (ValueError, KeyError, TypeError) as error:
            raise BenchmarkError(f"{file}, line {number}: not a record: {error}") from error


class Appender:
    """Adds lines to a file, flushed to disk batch by batch; first cuts off a line that was not finished."""

    def __init__(self, file: Path) -> None:
        self._file = file
        whole = sum(len(line) for line in whole_lines(file))
        if file.exists() and file.stat().st_size > whole:
            os.truncate(file, whole)

    def add(self, lines: Iterable[str]) -> None:
        """Append lines, "?" for what is no Unicode. Raises BenchmarkError when they cannot be written (a full disk)."""
        try:
            with self._file.open("ab") as out:
                out.write("".join(f"{line}\n" for line in lines).encode(errors="replace"))
                out.flush()
                os.fsync(out.fileno())
        except OSError as error:
            raise BenchmarkError(
                f"cannot write {self._file}: {error}; its earlier content is intact: continue with --resume"
            ) from error


def write_whole(file: Path, text: str) -> None:
    """Write a file so that it holds all of the text or stays as it was. Raises BenchmarkError when it cannot."""
    draft = file.with_name(file.name + ".part")
    try:
        draft.write_text(text, encoding="utf-8")
        os.replace(draft, file)
    except OSError as error:
        draft.unlink(missing_ok=True)  # on a full disk it would take what room there is
        raise BenchmarkError(f"cannot write {file}: {error}; its earlier content, if any, is intact") from error


@contextmanager
def hold_folder(out: Path) -> Iterator[None]:
    """Make a run folder if need be, and hold it: two processes at once would each write every record.

    The hold ends with the process, however that ends. Where the system has no such locks nothing is held.

    Raises:
        BenchmarkError: it cannot be made, or another process holds it.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BenchmarkError(f"cannot make the run folder {out}: {error}") from error
    try:
        import fcntl
    except ImportError:
        yield
        return
    folder = os.open(out, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks
            try:
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise BenchmarkError(f"another process is writing {out}: wait until it has finished") from error
        yield
    finally:
        os.close(folder)


def check_unused(out: Path) -> None:
    """Raise BenchmarkError where a folder that is to hold a run holds anything else."""
    # What a stopped start left unfinished is nobody's.
    foreign = next((entry.name for entry in out.iterdir() if entry.suffix != ".part"), None)
    if foreign is not None:
        raise BenchmarkError(f"{out} is not empty and holds no run ({foreign}): name another --out")


def whole_lines(file: Path) -> Iterator[bytes]:
    """Yield the lines of a file that have their end; none where the file is not there."""
    if not file.exists():
        return
    with file.open("rb") as lines:
        for line in lines:
            if line.endswith(b"\n"):
                yield line
