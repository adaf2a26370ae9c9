"""What a server keeps of its users: the calls that each has left today, and a log of who asked what."""

from __future__ import annotations

import datetime
import json
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from almanaq.errors import AlmanaqError, SourceError
from almanaq.models.budget import Budget, spending
from almanaq.models.private_files import UNUSABLE, open_private, open_sqlite
from almanaq.models.protocols import Usage
from almanaq.users import User

if TYPE_CHECKING:
    from almanaq.connection import Connection

Record = dict[str, Any]
_SCHEMA = """
CREATE TABLE IF NOT EXISTS spent (
  source TEXT NOT NULL, user TEXT NOT NULL, day TEXT NOT NULL, calls INTEGER NOT NULL,
  PRIMARY KEY (source, user, day)) WITHOUT ROWID;
"""
_SETTING = "calls_per_day of the user"


class Count(Protocol):
    """A whole number that outlives this process."""

    value: int


class LastingBudget(Budget):
    """A limit on calls for a server, whose workers come and go: what each has reserved counts, for it may be killed."""

    def __init__(self, calls: int, count: Count, setting: str = "--server-calls") -> None:
        self._before, self._count = count.value, count
        super().__init__(calls=max(0, calls - self._before), setting=setting)

    @property
    def calls_left(self) -> int:
        """How many calls may still be made."""
        return max(0, (self.calls or 0) - self.usage.calls - self.reserved.calls)

    def reserve(self, most: Usage) -> bool:
        """Set aside what a call may cost."""
        fits = super().reserve(most)
        self._note()
        return fits

    def settle(self, most: Usage, spent: Usage, *, sure: bool = True) -> None:
        """Exchange what was reserved for what was spent."""
        super().settle(most, spent, sure=sure)
        self._note()

    def _note(self) -> None:
        self._count.value = self._before + self.usage.calls + self.reserved.calls


class Ledger:
    """The calls of each user and day over one source, in a private SQLite file; None: in memory."""

    def __init__(self, file: Path | None, source: str) -> None:
        self._source, self._lock = source, threading.RLock()
        self._budgets: dict[str, tuple[str, LastingBudget]] = {}
        try:
            self._connection = open_sqlite(file, _SCHEMA, 1)
        except (OSError, *UNUSABLE) as problem:
            raise SourceError(f"the calls of users cannot be counted in {file}: {problem}") from problem

    def budget(self, user: User) -> LastingBudget | None:
        """Return what a user may spend today, UTC; None: any number of calls."""
        if user.calls_per_day is None:
            return None
        day = datetime.datetime.now(datetime.UTC).date().isoformat()
        key = (self._source, user.name, day)
        with self._lock:
            if user.name not in self._budgets or self._budgets[user.name][0] != day:
                count = _DayCount(self._connection, self._lock, key)
                self._budgets[user.name] = day, LastingBudget(user.calls_per_day, count, _SETTING)
            return self._budgets[user.name][1]

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


@dataclass(slots=True)
class _DayCount:
    """The calls of one user on one day."""

    connection: sqlite3.Connection
    lock: threading.RLock
    key: tuple[str, str, str]

    @property
    def value(self) -> int:
        """The number."""
        read = "SELECT calls FROM spent WHERE source = ? AND user = ? AND day = ?"
        with self.lock:
            found = self.connection.execute(read, self.key).fetchone()
        return 0 if found is None else int(found[0])

    @value.setter
    def value(self, number: int) -> None:
        with self.lock, self.connection:
            self.connection.execute("INSERT OR REPLACE INTO spent VALUES (?, ?, ?, ?)", (*self.key, number))


class AuditLog:
    """A file to which every request adds a line of JSON; its owner alone can read it."""

    def __init__(self, file: Path) -> None:
        self._file, self._lock = file, threading.Lock()
        self.write()

    def write(self, **entry: Any) -> None:
        """Add a line, or only look whether one can be added; raises SourceError where none can."""
        at = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
        line = json.dumps({"at": at, **entry}) + "\n" if entry else ""
        try:
            with self._lock, open(self._file, "a", encoding="utf-8", opener=open_private) as file:
                file.write(line)
        except OSError as error:
            raise SourceError(f"the audit log {self._file} cannot be written: {error.strerror}") from error


@dataclass(frozen=True, slots=True)
class Account:
    """One user of a server: without any named, whoever may reach it."""

    user: User = field(default_factory=lambda: User("anyone"))
    ledger: Ledger | None = None
    log: AuditLog | None = None

    def budgets(self) -> tuple[LastingBudget, ...]:
        """Return what bounds the user's next request."""
        budget = self.ledger.budget(self.user) if self.ledger is not None else None
        return () if budget is None else (budget,)

    def with_calls_left(self, cost: dict[str, Any]) -> dict[str, Any]:
        """Return a record of what a reply took, with the calls that the user has left today."""
        budget = next(iter(self.budgets()), None)
        return cost if budget is None else {**cost, "calls_left_today": budget.calls_left}

    def logged(
        self, action: str, connection: Connection, work: Callable[..., Record], *, question: str = "", query: str = ""
    ) -> Callable[..., Record]:
        """Return work that adds a line to the log, however it ends: who asked what, and what it took; no cell of a row.

        Args:
            question, query: what was asked; the query of a question is in the record that the work returns.
        """
        log = self.log
        if log is None:
            return work

        def logged(*arguments: Any) -> Record:
            record: Record = {}
            error = None
            with spending() as spent:
                try:
                    record = work(*arguments)
                    return record
                except BaseException as raised:
                    problem = getattr(raised, "problem", {})
                    error = problem.get("type", type(raised).__name__).rpartition(":")[2]
                    raise
                finally:
                    suql = query or record.get("suql") or ""
                    log.write(
                        user=self.user.name,
                        action=action,
                        question=question or None,
                        query=suql or None,
                        relations=_read_relations(connection, suql),
                        rows=record.get("rows_total", len(record.get("rows") or ())),
                        model=connection.models.name,
                        calls=spent.usage.calls,
                        input_tokens=spent.usage.input_tokens,
                        output_tokens=spent.usage.output_tokens,
                        error=error,
                    )

        return logged


def _read_relations(connection: Connection, query: str) -> list[str]:
    """Return the relations that a query names; [] where it is none that could run."""
    try:
        return list(connection.engine.relations(query)) if query else []
    except AlmanaqError:
        return []
