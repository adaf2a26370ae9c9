"""Budget: how many calls, tokens and dollars may be spent; what is spent is settled after each call."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from almanaq.errors import BudgetExceeded
from almanaq.models.protocols import Usage
from almanaq.models.tally import Tally

_PRICELESS = "a price that is not known"


class Budget:
    """A limit on calls, tokens (read and written) and US dollars, shared by any number of threads and loops.

    A call is reserved before it is made, at the most it can cost, so that a limit is never exceeded.

    Args:
        setting: what to change where it does not suffice, for the message; `money_setting` where that is another for
            money.

    Attributes:
        usage: what has been spent, as far as servers have told.
        unsettled: the most that calls cost of which no whole reply came: the server may have charged for them. It
            counts against the limits, and is no part of `usage`.
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
        self.calls, self.tokens, self.money, self.setting = calls, tokens, money, setting
        self._money_setting = money_setting or setting
        self._spent, self._unsettled, self._held = Tally(), Tally(), Tally()
        self._lock = threading.Lock()

    @property
    def usage(self) -> Usage:
        """What has been spent."""
        return self._spent.usage

    @property
    def unsettled(self) -> Usage:
        """What may have been spent beside it."""
        return self._unsettled.usage

    @property
    def reserved(self) -> Usage:
        """What is set aside for calls under way."""
        return self._held.usage

    @property
    def counts_tokens(self) -> bool:
        """Whether the length of a call matters to it."""
        return self.tokens is not None or self.money is not None

    def reserve(self, most: Usage) -> bool:
        """Set aside what a call may cost; False: only once calls under way have settled is it known to fit.

        Raises:
            BudgetExceeded: it does not fit, whatever the calls under way will cost.
        """
        with self._lock:
            self._check(most)
            if self._excess(most, self._spent, self._unsettled, self._held) is not None:
                return False
            self._held.add(most)
            return True

    def settle(self, most: Usage, spent: Usage, *, sure: bool = True) -> None:
        """Exchange what was reserved for what was spent; not `sure` where the server may have charged more."""
        with self._lock:
            self._held.take(most)
            self._spent.add(spent)
            if not sure:
                # The call itself is in `spent` already, when it was made at all.
                self._unsettled.add(Usage(0, 0, most.input_tokens, most.output_tokens, most.money))

    def _check(self, most: Usage) -> None:
        """Raise BudgetExceeded for a call that does not fit, even once those under way have cost nothing."""
        excess = self._excess(most, self._spent, self._unsettled)
        if excess is None:
            return
        if excess == _PRICELESS:
            raise BudgetExceeded(
                f"a budget of {self.money:g} dollars cannot be kept with a model whose price is not known: name it,"
                " with its price, in the prices file that ALMANAQ_PRICES names, or bound calls or tokens instead"
            )
        setting = self._money_setting if excess.endswith("dollars") else self.setting
        raise BudgetExceeded(
            f"stopped at the budget of {excess}{self._room(most)}: raise {setting} to go on; what was answered is kept"
            " and not paid for again"
        )

    def _room(self, most: Usage) -> str:
        """Say what of the money is gone, and what the next call may take."""
        if self.money is None or most.money is None:
            return ""
        lost = self.unsettled.money or 0.0
        held = f", up to {lost:.4f} for calls whose reply never came whole" if lost else ""
        return f" ({self.usage.money or 0.0:.4f} spent{held}; the next call may cost up to {most.money:.4f})"

    def _excess(self, most: Usage, *tallies: Tally) -> str | None:
        if self.calls is not None and most.calls + sum(tally.calls for tally in tallies) > self.calls:
            return f"{self.calls:,} model calls"
        if self.tokens is not None:
            tokens = most.input_tokens + most.output_tokens + sum(tally.read + tally.written for tally in tallies)
            if tokens > self.tokens:
                return f"{self.tokens:,} tokens"
        return None if self.money is None else self._excess_of_money(self.money, [most, *tallies])

    @staticmethod
    def _excess_of_money(limit: float, parts: Sequence[Usage | Tally]) -> str | None:
        spent = 0.0
        for part in parts:
            if part.money is None:
                return _PRICELESS
            spent += part.money
        return f"{limit:g} dollars" if spent > limit + 1e-12 else None
