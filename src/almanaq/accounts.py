"""What a server keeps of its users: what each may still spend today, and a log of who asked what."""

from __future__ import annotations

import datetime
import json
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from almanaq.connection import Connection
from almanaq.errors import AlmanaqError, SourceError
from almanaq.models.budget import Budget, spending
from almanaq.models.private_files import UNUSABLE, open_private, open_sqlite
from almanaq.models.protocols import Usage
from almanaq.users import ANYONE, User

Record = dict[str, Any]
_SCHEMA = """
CREATE TABLE IF NOT EXISTS spent (
  source TEXT NOT NULL, user TEXT NOT NULL, day TEXT NOT NULL, unit TEXT NOT NULL, amount NUMERIC NOT NULL,
  PRIMARY KEY (source, user, day, unit)) WITHOUT ROWID;
"""


class LastingBudget(Budget):
    """A limit on calls (or US dollars, by `unit`) of all who share a count: workers that come and go, and servers.

    What is reserved counts. A count that other processes have gives what keeps them from it by its method `hold`.
    """

    def __init__(self, limit: Any, count: Any, setting: str = "--server-calls", unit: str = "calls") -> None:
        super().__init__(**{unit: limit}, setting=setting)
        self._count, self._limit, self.unit = count, limit, unit
        self._lock_count, self._hold = threading.Lock(), getattr(count, "hold", nullcontext)

    @property
    def left(self) -> float:
        left: float = round(self._limit - self._count.value, 6)
        return max(0, left)

    def reserve(self, most: Usage) -> bool:
        with self._share():
            return super().reserve(most)

    def settle(self, most: Usage, spent: Usage, *, sure: bool = True) -> None:
        with self._share():
            super().settle(most, spent, sure=sure)

    @contextmanager
    def _share(self) -> Iterator[None]:
        with self._lock_count, self._hold():
            self.usage += Usage(**{self.unit: self._count.value - self._used()})  # what others have used since
            yield
            self._count.value = self._used()

    def _used(self) -> Any:
        return sum(getattr(each, self.unit) or 0 for each in (self.usage, self.reserved, self.unsettled))


class Ledger:
    """What each user spent on each day over one source, in a private SQLite file; None: in memory."""

    def __init__(self, file: Path | None, source: str) -> None:
        self._source, self._lock = source, threading.RLock()
        self._budgets: dict[str, tuple[str, tuple[LastingBudget, ...]]] = {}
        try:
            self._connection = open_sqlite(file, _SCHEMA, 2)
        except (OSError, *UNUSABLE) as problem:
            raise SourceError(f"what users spend cannot be counted in {file}: {problem}") from problem

    def budgets(self, user: User) -> tuple[LastingBudget, ...]:
        """Return what a user may spend today, UTC: calls, money, both, or any amount."""
        day = datetime.datetime.now(datetime.UTC).date().isoformat()
        with self._lock:
            if user.name not in self._budgets or self._budgets[user.name][0] != day:
                limits = {"calls": user.calls_per_day, "money": user.money_per_day}
                opened = []
                for unit, limit in limits.items():
                    if limit is not None:
                        count = _DayCount(self._connection, self._lock, (self._source, user.name, day, unit))
                        setting = f"{unit}_per_day of the user (it renews at 00:00 UTC)"
                        opened.append(LastingBudget(limit, count, setting, unit))
                self._budgets[user.name] = day, tuple(opened)
            return self._budgets[user.name][1]

    def close(self) -> None:
        self._connection.close()


@dataclass(slots=True)
class _DayCount:
    """The calls, or the money, of one user on one day."""

    connection: sqlite3.Connection
    lock: threading.RLock
    key: tuple[str, str, str, str]

    @contextmanager
    def hold(self) -> Iterator[None]:
        with self.lock, self.connection:
            self.connection.execute("BEGIN IMMEDIATE")
            yield

    @property
    def value(self) -> Any:
        read = "SELECT amount FROM spent WHERE source = ? AND user = ? AND day = ? AND unit = ?"
        with self.lock:
            found = self.connection.execute(read, self.key).fetchone()
        return 0 if found is None else found[0]

    @value.setter
    def value(self, number: Any) -> None:
        self.connection.execute("INSERT OR REPLACE INTO spent VALUES (?, ?, ?, ?, ?)", (*self.key, number))


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

    user: User = ANYONE
    ledger: Ledger | None = None
    log: AuditLog | None = None

    def budgets(self) -> tuple[LastingBudget, ...]:
        """Return what bounds the user's next request."""
        return () if self.ledger is None else self.ledger.budgets(self.user)

    def with_budgets_left(self, cost: dict[str, Any]) -> dict[str, Any]:
        """Return a record of what a reply took, with the calls and the dollars that the user has left today."""
        return {**cost, **{f"{budget.unit}_left_today": budget.left for budget in self.budgets()}}

    def logged(
        self, action: str, connection: Connection, work: Callable[..., Record], *, question: str = "", query: str = ""
    ) -> Callable[..., Record]:
        """Return work that adds a line to the log, however it ends: who asked what, and what it took; no cells."""
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
                        relations=read_relations(connection, suql),
                        rows=record.get("rows_total", len(record.get("rows") or ())),
                        model=connection.models.name,
                        calls=spent.usage.calls,
                        input_tokens=spent.usage.input_tokens,
                        output_tokens=spent.usage.output_tokens,
                        error=error,
                    )

        return logged


def read_relations(connection: Connection, query: str) -> list[str]:
    """Return the relations that a query names; [] where it is none that could run."""
    try:
        return list(connection.engine.relations(query)) if query else []
    except AlmanaqError:
        return []
