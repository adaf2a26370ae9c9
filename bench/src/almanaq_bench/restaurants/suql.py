"""The agent in one conversation of the restaurants task."""

from __future__ import annotations

from almanaq.agent.conversation import Agent
from almanaq.agent.history import Turn
from almanaq.agent.response import Response
from almanaq.errors import BudgetExceeded, ModelCallError, ModelError
from almanaq.models.spending import spending
from almanaq_bench.restaurants.gold import Restaurants
from almanaq_bench.restaurants.play import Said


class SuqlDialogue:
    """A Dialogue with the agent, which writes SUQL and remembers its turns."""

    def __init__(self, agent: Agent, restaurants: Restaurants) -> None:
        self._agent, self._restaurants = agent, restaurants
        self._history: list[Turn] = []

    def say(self, words: str) -> Said:
        """Return the reply; where a condition was left out, and the reply says so, no restaurant counts as given."""
        with spending() as spent:
            response = self._agent.respond(words, self._history)
        error = response.error
        if isinstance(error, BudgetExceeded | ModelError) and not isinstance(error, ModelCallError):
            raise error
        self._history.append(response.turn())
        shown = tuple(self._restaurants.ids(response.shown)) if response.status == "answered" else ()
        return Said(
            response.answer,
            () if response.relaxed else shown,
            shown,
            _figure(response),
            bool(response.suql),
            response.meant or response.suql or "",
            response.answer if response.status == "failed" else "",
            response.trace.warnings if response.trace else (),
            spent.usage,
        )


def _figure(response: Response) -> int | None:
    """Return the number that a reply to "how many" states."""
    numbers = [v for row in response.rows for v in row if isinstance(v, int)]
    return numbers[0] if len(response.rows) == 1 and len(numbers) == 1 else None
