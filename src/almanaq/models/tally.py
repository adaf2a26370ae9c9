"""Tally: a sum of what calls cost that is added to at every call, in place."""

from __future__ import annotations

from almanaq.models.protocols import Usage


class Tally:
    """What a Usage holds, as a running sum; as there, money that is unknown once stays unknown."""

    __slots__ = ("_cached", "_known", "calls", "money", "read", "written")

    def __init__(self) -> None:
        self.calls = self._cached = self.read = self.written = self._known = 0
        self.money: float | None = 0.0

    def add(self, usage: Usage) -> None:
        """Add what a call cost."""
        self.calls += usage.calls
        self._cached += usage.cached_calls
        self.read += usage.input_tokens
        self.written += usage.output_tokens
        self._known += usage.cached_input_tokens
        self.money = None if self.money is None or usage.money is None else self.money + usage.money

    def take(self, usage: Usage) -> None:
        """Take what was added away again."""
        self.calls -= usage.calls
        self._cached -= usage.cached_calls
        self.read -= usage.input_tokens
        self.written -= usage.output_tokens
        self._known -= usage.cached_input_tokens
        self.money = None if self.money is None else self.money - (usage.money or 0.0)

    @property
    def usage(self) -> Usage:
        """The sum so far."""
        return Usage(self.calls, self._cached, self.read, self.written, self.money, self._known)
