"""What a query is expected to take, shown to the person who has to agree before the first call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from almanaq.errors import BudgetExceeded


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a query is expected to take; replies that are kept already are not in it.

    Attributes:
        money: US dollars; None where the model's price is not known.

    >>> print(Forecast(240, 40, 61000, 0.12))
    about 240 texts in 40 requests, 61,000 tokens, $0.12
    """

    texts: int
    requests: int
    tokens: int
    money: float | None

    def __str__(self) -> str:
        money = "price unknown" if self.money is None else f"${self.money:,.2f}"
        return f"about {self.texts:,} texts in {self.requests:,} requests, {self.tokens:,} tokens, {money}"


@dataclass(frozen=True, slots=True)
class Confirmation:
    """Asks before a query that is expected to take more than so many requests, or a thousandth of a dollar for each."""

    above: int
    ask: Callable[[Forecast], bool]

    def check(self, forecast: Forecast) -> None:
        """Raise BudgetExceeded where whoever is asked says no; blocks until then."""
        over = forecast.requests > self.above or (forecast.money or 0.0) > self.above / 1000
        if over and not self.ask(forecast):
            raise BudgetExceeded(
                f"the query would take {forecast}, and was not confirmed: narrow its structured conditions, add a "
                "LIMIT, or raise --confirm-above; nothing was asked"
            )


_confirmation: ContextVar[Confirmation | None] = ContextVar("confirmation", default=None)


@contextmanager
def confirming(above: int, ask: Callable[[Forecast], bool]) -> Iterator[None]:
    """Have the queries that are run in this block ask before they take more."""
    token = _confirmation.set(Confirmation(above, ask))
    try:
        yield
    finally:
        _confirmation.reset(token)


def current_confirmation() -> Confirmation | None:
    """Return who is to agree; None where nobody is asked."""
    return _confirmation.get()
