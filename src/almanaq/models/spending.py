"""What work spends: by operator and model, and never more than its budget; found through the running context.

A query opens `spending()`; whatever is asked of a model meanwhile, in any of its tasks, is recorded there by the
wrappers (CachedModel what was asked and what the cache served, MeteredModel what was really called), failed, repeated
and cancelled calls included. Nothing has to be handed through, so nothing is lost on the way of an error.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from almanaq.models.budget import Budget
from almanaq.models.protocols import Usage
from almanaq.models.tally import Tally


@dataclass(frozen=True, slots=True)
class Line:
    """What one operator spent at one model.

    Attributes:
        operator: the name of the prompt's purpose or of the plan's stage; "" where none was named.
        virtual: calls asked for; `cached` of them were served from the cache or by an equal call under way, and
            `physical` calls were made for the others, repeated ones included.
        money: in US dollars, None where a price is unknown.
        cached_input_tokens: of those read, how many the server had computed before.
    """

    operator: str
    model: str
    virtual: int
    cached: int
    physical: int
    input_tokens: int
    output_tokens: int
    money: float | None
    cached_input_tokens: int = 0

    @property
    def usage(self) -> Usage:
        """What was spent, as a Usage."""
        tokens = self.input_tokens, self.output_tokens
        return Usage(self.physical, self.cached, *tokens, self.money, self.cached_input_tokens)


@dataclass(slots=True)
class _Sum:
    virtual: int = 0
    spent: Tally = field(default_factory=Tally)


@dataclass
class Spending:
    """The account of one piece of work; `budget` stops it before it is exceeded.

    Attributes:
        dropped_quotes: quotes that replies gave and that do not stand in the text they were said to come from.
        read_in_parts: texts longer than a model reads at once.
    """

    budget: Budget | None = None
    dropped_quotes: int = 0
    read_in_parts: int = 0
    _lines: dict[tuple[str, str], _Sum] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, operator: str, model: str, usage: Usage, *, virtual: int = 0) -> None:
        """Enter what a call cost."""
        with self._lock:
            found = self._lines.get((operator, model))
            if found is None:
                found = self._lines[operator, model] = _Sum()
            found.virtual += virtual
            found.spent.add(usage)

    @property
    def lines(self) -> tuple[Line, ...]:
        """What each operator spent at each model, in the order of their first calls."""
        with self._lock:
            return tuple(_line(*key, found.virtual, found.spent.usage) for key, found in self._lines.items())

    @property
    def usage(self) -> Usage:
        """What was spent in all."""
        return sum((line.usage for line in self.lines), Usage())


def _line(operator: str, model: str, virtual: int, used: Usage) -> Line:
    tokens = used.input_tokens, used.output_tokens
    return Line(operator, model, virtual, used.cached_calls, used.calls, *tokens, used.money, used.cached_input_tokens)


_ACCOUNTS: ContextVar[tuple[Spending, ...]] = ContextVar("almanaq_spending", default=())
_OPERATOR: ContextVar[str] = ContextVar("almanaq_operator", default="")


@contextmanager
def spending(budget: Budget | None = None) -> Iterator[Spending]:
    """Record what is spent inside the block, in all tasks that start there; accounts may be nested."""
    with entered(Spending(budget)) as account:
        yield account


@contextmanager
def entered(account: Spending) -> Iterator[Spending]:
    """Record what is spent inside the block in an account as well; the same one may be entered several times."""
    token = _ACCOUNTS.set((*_ACCOUNTS.get(), account))
    try:
        yield account
    finally:
        _ACCOUNTS.reset(token)


@contextmanager
def operator(name: str) -> Iterator[None]:
    """Name the operator that calls inside the block are made for."""
    token = _OPERATOR.set(name)
    try:
        yield
    finally:
        _OPERATOR.reset(token)


def record(model: str, usage: Usage, *, virtual: int = 0, purpose: str = "") -> None:
    """Enter what a call cost into every account that is open; `purpose` names the operator where none is named."""
    for account in _ACCOUNTS.get():
        account.add(_OPERATOR.get() or purpose, model, usage, virtual=virtual)


def record_dropped_quotes(count: int) -> None:
    """Enter quotes that were dropped into every account that is open."""
    for account in _ACCOUNTS.get():
        account.dropped_quotes += count


def record_read_in_parts() -> None:
    """Enter a text that is read in parts into every account that is open."""
    for account in _ACCOUNTS.get():
        account.read_in_parts += 1


def budgets() -> tuple[Budget, ...]:
    """Return the budgets of the accounts that are open."""
    return tuple(account.budget for account in _ACCOUNTS.get() if account.budget is not None)
