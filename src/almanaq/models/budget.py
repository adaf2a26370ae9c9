"""What calls cost: estimates and prices, budgets that are never exceeded, and the account of each query.

A query opens `spending()`. The wrappers record there what its tasks ask of a model: CachedModel counts requests and
cache hits, MeteredModel the calls really made, failed and cancelled ones included. The account is found through the
context, so that no error path can lose it.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from math import inf
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal

from almanaq.errors import BudgetExceeded, SourceError, UsageError
from almanaq.event_loops import set_within
from almanaq.models.protocols import NO_USAGE, Completion, LanguageModel, Price, Prompt, Usage
from almanaq.models.retrying import FailedCall

_MESSAGE_TOKENS = 8
"""The most that servers add for each message."""


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text without a tokenizer: four bytes each, which is high for non-ASCII scripts."""
    return (len(text) if text.isascii() else len(text.encode("utf-8", "replace"))) // 4 + 1


def max_tokens(texts: Iterable[str]) -> int:
    """Return the maximum tokens of texts: no tokenizer makes more tokens than bytes."""
    return sum(len(text.encode("utf-8", "replace")) + _MESSAGE_TOKENS for text in texts)


def read_price(model: str) -> Price | None:
    """Return the price that the user's file (ALMANAQ_PRICES) states for a model; None, never a guess, without one."""
    named = os.environ.get("ALMANAQ_PRICES")
    if not named:
        return None
    path = Path(named)
    try:
        entry = tomllib.loads(path.read_text("utf-8")).get(model)
        return None if entry is None else Price(float(entry["input"]), float(entry.get("output", 0.0)))
    except FileNotFoundError as problem:
        raise SourceError(f"there is no prices file {path}: write one, or correct or unset ALMANAQ_PRICES") from problem
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        raise SourceError(
            f"the prices file {path} cannot be used ({problem!r}): each model is a table such as\n"
            '  ["gpt-x"]\n  input = 0.15    # dollars for a million tokens\n  output = 0.60\n'
            "correct it, or unset ALMANAQ_PRICES"
        ) from problem


_ONE_CALL = Usage(calls=1)
_NO_PRICE = "a price that is not known"


class Budget:
    """A limit on calls, tokens (input and output) and US dollars, shared by threads and event loops.

    Each call is reserved at its maximum cost before it is made, so that a limit is never exceeded.

    Args:
        setting: the option to raise, named in the message; `money_setting` is the one for money, if different.

    Attributes:
        usage: what was spent, as reported by servers; `reserved`: for calls in flight.
        unsettled: the maximum cost of calls without a complete reply, for which the server may have charged. It counts
            against the limits but not in `usage`.
    """

    def __init__(
        self,
        calls: int | None = None,
        tokens: int | None = None,
        money: float | None = None,
        *,
        setting: str = "the budget",
        money_setting: str | None = None,
    ) -> None:
        if any(limit is not None and not 0 <= limit < inf for limit in (calls, tokens, money)):  # NaN bounds nothing
            raise UsageError(f"a limit is a number of at least 0, or None: not {calls=}, {tokens=}, {money=}")
        self.calls, self.tokens, self.money, self.setting = calls, tokens, money, setting
        self._money_setting = money_setting or setting
        self.usage = self.unsettled = self.reserved = Usage()
        self._lock = threading.Lock()
        self._is_unlimited = calls is tokens is money is None

    @property
    def counts_tokens(self) -> bool:
        """Whether the length of a call matters to this budget."""
        return self.tokens is not None or self.money is not None

    def reserve(self, most: Usage) -> bool:
        """Reserve the maximum cost of a call; False while that depends on calls in flight. Raises BudgetExceeded."""
        if self._is_unlimited:
            return True
        with self._lock:
            if self._find_excess(self.usage, self.unsettled, self.reserved, most) is None:
                self.reserved += most
                return True
            self._check_limits(most)
            return False

    def settle(self, most: Usage, spent: Usage, *, sure: bool = True) -> None:
        """Replace a reservation by what was spent; `sure` is False where the server may have charged more."""
        with self._lock:
            if not self._is_unlimited:
                self.reserved -= most
            self.usage += spent
            if not sure:
                # The call itself is in `spent` already, when it was made at all.
                self.unsettled += replace(most, calls=0, cached_calls=0)

    def _check_limits(self, most: Usage) -> None:
        excess = self._find_excess(self.usage, self.unsettled, most)
        if excess is None:
            return
        if excess == _NO_PRICE:
            raise BudgetExceeded(
                f"a budget of {self.money:g} dollars cannot be kept with a model whose price is not known: name it,"
                " with its price, in the prices file that ALMANAQ_PRICES names, or bound calls or tokens instead"
            )
        setting, room = self._money_setting if excess.endswith("dollars") else self.setting, ""
        if self.money is not None and most.money is not None:
            lost = self.unsettled.money or 0.0
            held = f", up to {lost:.4f} for calls whose reply never came whole" if lost else ""
            room = f" ({self.usage.money or 0.0:.4f} spent{held}; the next call may cost up to {most.money:.4f})"
        raise BudgetExceeded(
            f"stopped at the budget of {excess}{room}: raise {setting} to go on; what was answered is kept and not paid"
            " for again"
        )

    def _find_excess(self, *parts: Usage) -> str | None:
        if self.calls is not None and sum([part.calls for part in parts]) > self.calls:
            return f"{self.calls:,} model calls"
        if not self.counts_tokens:
            return None
        total = sum(parts, NO_USAGE)
        if self.tokens is not None and total.input_tokens + total.output_tokens > self.tokens:
            return f"{self.tokens:,} tokens"
        if self.money is None:
            return None
        if total.money is None:
            return _NO_PRICE
        return f"{self.money:g} dollars" if total.money > self.money + 1e-12 else None


@dataclass(frozen=True, slots=True)
class SpendingLine:
    """What one operator spent on one model: of `virtual` calls, `usage.cached_calls` came from the cache."""

    operator: str
    model: str
    virtual: int
    usage: Usage


@dataclass
class Spending:
    """The account of one query or turn; `budget` stops it before a limit is exceeded.

    Attributes:
        dropped_quotes: quotes in replies that are not in the text they claim to come from.
        read_in_parts: texts longer than the model's context.
        cut_prompts: prompts of which a server read only a part.
        batched: requests in batches that have not ended.
        asked_singly: texts and questions that share no request, as replies held other items.
    """

    budget: Budget | None = None
    dropped_quotes: int = 0
    read_in_parts: int = 0
    cut_prompts: int = 0
    batched: int = 0
    asked_singly: int = 0
    _lines: dict[tuple[str, str], list[Any]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, operator: str, model: str, usage: Usage, *, virtual: int = 0) -> None:
        """Record what a call cost."""
        with self._lock:
            line = self._lines.setdefault((operator, model), [0, NO_USAGE])
            line[0] += virtual
            line[1] += usage

    @property
    def lines(self) -> tuple[SpendingLine, ...]:
        """What each operator spent on each model, in order of first calls."""
        with self._lock:
            return tuple(SpendingLine(*names, *line) for names, line in self._lines.items())

    @property
    def goes_on(self) -> str:
        """What goes on at the server when the query ends early, as an error message ends."""
        return f"; {self.batched:,} requests go on in a batch: run it again to get their replies" * bool(self.batched)

    @property
    def usage(self) -> Usage:
        """The total."""
        return sum((line.usage for line in self.lines), Usage())


_ACCOUNTS: ContextVar[tuple[Spending, ...]] = ContextVar("almanaq_spending", default=())
_OPERATOR: ContextVar[str] = ContextVar("almanaq_operator", default="")


def spending(budget: Budget | None = None) -> AbstractContextManager[Spending]:
    """Record spending inside the block, in all tasks started there; accounts nest."""
    return enter_account(Spending(budget))


@contextmanager
def enter_account(account: Spending) -> Iterator[Spending]:
    """Also record spending inside the block in this account, which may be entered several times."""
    with set_within(_ACCOUNTS, (*_ACCOUNTS.get(), account)):
        yield account


def operator(name: str) -> AbstractContextManager[None]:
    """Name the operator of the calls inside the block."""
    return set_within(_OPERATOR, name)


def record_usage(model: str, usage: Usage, *, virtual: int = 0, purpose: str = "") -> None:
    """Record a call in every open account; `purpose` names the operator where none is set."""
    for account in _ACCOUNTS.get():
        account.add(_OPERATOR.get() or purpose, model, usage, virtual=virtual)


def record_count(
    name: Literal["dropped_quotes", "read_in_parts", "cut_prompts", "batched", "asked_singly"], count: int = 1
) -> None:
    """Add to a count of every open account."""
    for account in _ACCOUNTS.get():
        setattr(account, name, getattr(account, name) + count)


def open_budgets() -> tuple[Budget, ...]:
    """Return the budgets of the open accounts."""
    return tuple([account.budget for account in _ACCOUNTS.get() if account.budget is not None])


class MeteredModel:
    """Counts what calls cost, and makes none that could exceed its own budget or that of the current query.

    A reply may be longer than the prompt's limit where the model's `most_output_tokens` says so.
    """

    def __init__(self, model: LanguageModel, budget: Budget | None = None, price: Price | None = None) -> None:
        self.name = model.name
        self._model, self.budget, self._price = model, budget or Budget(), price
        self._most_output: Callable[[Prompt], int] = getattr(
            model, "most_output_tokens", attrgetter("max_output_tokens")
        )

    @property
    def usage(self) -> Usage:
        """What was spent so far, failed calls included."""
        return self.budget.usage

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the reply; raises BudgetExceeded before a call that might not fit.

        Where the budget has no room for the longest possible reply, the limit is lowered to the usual length; a reply
        cut there is requested once more at full length.
        """
        limits = (self.budget, *open_budgets())
        forms = [(prompt, _ONE_CALL)]
        if any(budget.counts_tokens for budget in limits):
            forms = [(prompt, self._estimate_maximum(prompt))]
            usual = prompt.usual_output_tokens
            if usual is not None and usual < prompt.max_output_tokens:
                short = replace(prompt, max_output_tokens=usual)
                forms.append((short, self._estimate_maximum(short)))
        while True:
            wait = 0.005
            while (form := _reserve(limits, forms)) is None:
                # Polled, as calls settle in any loop and an asyncio.Event belongs to one; of a batch, thousands wait.
                await asyncio.sleep(wait)
                wait = min(wait * 1.1, 1.0)
            asked, most = form
            # A cancelled call may have reached the server and been charged for.
            spent, sure = _ONE_CALL, False
            try:
                completion = await self._model.complete(asked)
                spent, sure = completion.usage, True
                return completion
            except FailedCall as failure:
                spent, sure = failure.usage, failure.sure
                if not failure.cut or asked is prompt:
                    raise
                forms = [(prompt, self._estimate_maximum(prompt))]
            finally:
                for budget in limits:
                    budget.settle(most, spent, sure=sure)
                record_usage(self.name, spent, purpose=prompt.name)

    def _estimate_maximum(self, prompt: Prompt) -> Usage:
        # The maximum, as an estimate could be too low, and the budget be exceeded.
        read = max_tokens(m.content for m in prompt.messages)
        read += len(json.dumps(prompt.schema)) if prompt.schema else 0
        output = self._most_output(prompt)
        return Usage(1, 0, read, output, None if self._price is None else self._price.of(read, output))


def _reserve(limits: Sequence[Budget], forms: Sequence[tuple[Prompt, Usage]]) -> tuple[Prompt, Usage] | None:
    """Reserve the first form of a request that fits beside the calls in flight, with all budgets or none.

    None where that depends on these calls; raises BudgetExceeded where even the last form exceeds a budget.
    """
    for form in forms:
        held: list[Budget] = []
        try:
            for budget in limits:
                if not budget.reserve(form[1]):
                    break
                held.append(budget)
            else:
                return form
        except BudgetExceeded:
            if form is forms[-1]:
                raise
        finally:
            for budget in held if len(held) < len(limits) else ():
                budget.settle(form[1], NO_USAGE)
    return None
