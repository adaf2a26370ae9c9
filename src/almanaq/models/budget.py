"""Budget: how many calls, tokens and dollars may be spent; what is spent is settled after each call."""

from __future__ import annotations

import threading

from almanaq.errors import BudgetExceeded
from almanaq.models.protocols import Usage

DEFAULT_MAX_CALLS = 1000
"""Model calls that cost money, where nobody says how many may be made."""


class Budget:
    """A limit on calls, tokens (read and written) and US dollars, shared by any number of threads and loops.

    A call is reserved before it is made, at the most it can cost, so that a limit is never exceeded.

    Args:
        setting: what to change where it does not suffice, for the message.

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
    ) -> None:
        self.calls, self.tokens, self.money, self.setting = calls, tokens, money, setting
        self.usage = self.unsettled = Usage()
        self._reserved = Usage()
        self._lock = threading.Lock()

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
            self._check(self.usage + self.unsettled + most)
            if self._excess(self.usage + self.unsettled + self._reserved + most) is not None:
                return False
            self._reserved += most
            return True

    def settle(self, most: Usage, spent: Usage, *, sure: bool = True) -> None:
        """Exchange what was reserved for what was spent; not `sure` where the server may have charged more."""
        with self._lock:
            self._reserved += negative(most)
            self.usage += spent
            if not sure:
                # The call itself is in `spent` already, when it was made at all.
                self.unsettled += Usage(0, 0, most.input_tokens, most.output_tokens, most.money)

    def _check(self, usage: Usage) -> None:
        excess = self._excess(usage)
        if excess is not None:
            unsettled = self.unsettled.money if self.money is not None else None
            held = f" ({unsettled:.4f} of it for calls whose reply never came whole)" if unsettled else ""
            raise BudgetExceeded(
                f"stopped at the budget of {excess}{held}: raise {self.setting} to go on; what was answered is kept"
                " and not paid for again"
            )

    def _excess(self, usage: Usage) -> str | None:
        if self.calls is not None and usage.calls > self.calls:
            return f"{self.calls:,} model calls"
        if self.tokens is not None and usage.input_tokens + usage.output_tokens > self.tokens:
            return f"{self.tokens:,} tokens"
        if self.money is not None and usage.money is None:
            return f"{self.money:g} dollars, with a model whose price is not known (name one in the prices file),"
        if self.money is not None and (usage.money or 0.0) > self.money + 1e-12:
            return f"{self.money:g} dollars"
        return None


def negative(usage: Usage) -> Usage:
    """Give what undoes an addition; money that is not known leaves none behind."""
    tokens = -usage.input_tokens, -usage.output_tokens
    return Usage(-usage.calls, 0, *tokens, -(usage.money or 0.0), -usage.cached_input_tokens)
