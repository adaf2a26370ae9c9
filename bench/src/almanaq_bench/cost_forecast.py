"""The expected cost of paid work: announced before it starts, and checked against the budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from almanaq.errors import BudgetExceeded
from almanaq.models.budget import Budget, estimate_tokens, read_price
from almanaq.models.embedders.vector_store import VectorStore
from almanaq.models.protocols import Usage

_EMBED_BATCH = 128  # texts in a request for vectors


@dataclass(frozen=True)
class CostForecast:
    """Announces what work will cost, and refuses work above the budget.

    Args:
        tell: receives one line before the work starts; nothing where all results are cached.
    """

    tell: Callable[[str], None]
    budget: Budget

    def vectors(self, store: VectorStore, texts: Sequence[str]) -> None:
        """Forecast the embedding of texts by a server, except those already in the store.

        Raises:
            BudgetExceeded: more than the budget allows.
        """
        if store.embedder.name.startswith("openai:"):
            unknown = store.find_missing(texts)
            calls = -(-len(unknown) // _EMBED_BATCH)
            self.work(f"embedding {len(unknown):,} texts", store.embedder.name, _usage(calls, unknown, 0))

    def replies(self, what: str, model: str, prompts: Sequence[str], written: int) -> None:
        """Forecast a call per prompt, with replies of `written` tokens. Raises BudgetExceeded as `vectors` does."""
        self.work(what, model, _usage(len(prompts), prompts, written * len(prompts)))

    def work(self, what: str, model: str, expected: Usage) -> None:
        """Announce the cost of work with this usage; its money is computed here.

        Raises:
            BudgetExceeded: more than the budget allows.
        """
        calls, read, written = expected.calls, expected.input_tokens, expected.output_tokens
        if not calls:
            return
        price = read_price(model.removeprefix("openai:"))
        money = None if price is None else price.of(read, written)
        cost = "price unknown" if money is None else f"about {money:.{2 if money >= 0.01 else 5}f} dollars"
        self.tell(f"{what} with {model}: {calls:,} calls, about {read + written:,} tokens, {cost}")
        if self.budget.calls is not None and calls > self.budget.calls:
            raise BudgetExceeded(
                f"{what} is expected to take {calls:,} calls of {model}, above the budget of {self.budget.calls:,}: "
                f"raise {self.budget.setting}, or run less; no call was made"
            )
        most = Usage(calls, 0, read, written, money)
        self.budget.reserve(most)
        self.budget.settle(most, Usage())


def _usage(calls: int, texts: Sequence[str], written: int) -> Usage:
    return Usage(calls, 0, sum(map(estimate_tokens, texts)), written)
