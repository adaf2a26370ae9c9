"""MeteredModel: what calls cost, counted as they are made, and none made that could exceed a budget."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import replace

from almanaq.errors import BudgetExceeded
from almanaq.models.budget import Budget
from almanaq.models.failure import FailedCall
from almanaq.models.prices import Price
from almanaq.models.protocols import Completion, LanguageModel, Prompt, Usage
from almanaq.models.spending import budgets, record

_MESSAGE_TOKENS = 8
"""What servers add for each message, at most."""


class MeteredModel:
    """Counts what calls cost, and makes none that could exceed its budget, or the one of the query it is made for.

    Args:
        price: what tokens cost, to reserve money; None where it is unknown.
        most_output: the tokens that a reply may have at most, where these are more than the prompt's limit.
    """

    def __init__(
        self,
        model: LanguageModel,
        budget: Budget | None = None,
        price: Price | None = None,
        *,
        most_output: Callable[[Prompt], int] | None = None,
    ) -> None:
        self.name = model.name
        self._model, self.budget, self._price = model, budget or Budget(), price
        self._most_output = most_output or (lambda prompt: prompt.max_output_tokens)

    @property
    def usage(self) -> Usage:
        """What has been spent so far, failed calls included."""
        return self.budget.usage

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the reply; raises BudgetExceeded before a call that might not fit.

        Where the budget has no room for the longest reply there may be, a reply is held to its usual length; one that
        is cut there is asked for once more, whole.
        """
        limits = (self.budget, *budgets())
        asked, most = await self._reserved(self._forms(prompt, limits), limits)
        try:
            return await self._called(asked, most, limits)
        except FailedCall as failure:
            if not failure.cut or asked is prompt:
                raise
        _, most = await self._reserved([(prompt, self._most(prompt, limits))], limits)
        return await self._called(prompt, most, limits)

    async def _reserved(self, forms: Sequence[tuple[Prompt, Usage]], limits: Sequence[Budget]) -> tuple[Prompt, Usage]:
        """Wait until one of the forms of a request, the first ones rather, fits beside the calls under way."""
        while True:
            for form in forms:
                if _reserve(limits, form[1], last=form is forms[-1]):
                    return form
            await asyncio.sleep(0.005)  # calls settle in any loop; an asyncio.Event has one

    async def _called(self, prompt: Prompt, most: Usage, limits: Sequence[Budget]) -> Completion:
        # A call that is cancelled reached the server, perhaps, and may be charged for.
        spent, sure = Usage(calls=1), False
        try:
            completion = await self._model.complete(prompt)
            spent, sure = completion.usage, True
            return completion
        except FailedCall as failure:
            spent, sure = failure.usage, failure.sure
            raise
        finally:
            for budget in limits:
                budget.settle(most, spent, sure=sure)
            record(self.name, spent, purpose=prompt.name)

    def _forms(self, prompt: Prompt, limits: Sequence[Budget]) -> list[tuple[Prompt, Usage]]:
        """Return a request as it is and, where lengths matter, held to the usual length; each with what it costs."""
        forms = [(prompt, self._most(prompt, limits))]
        usual = prompt.usual_output_tokens
        if usual is not None and usual < prompt.max_output_tokens and any(budget.counts_tokens for budget in limits):
            short = replace(prompt, max_output_tokens=usual)
            forms.append((short, self._most(short, limits)))
        return forms

    def _most(self, prompt: Prompt, limits: Sequence[Budget]) -> Usage:
        if not any(budget.counts_tokens for budget in limits):
            return Usage(1)
        # No tokenizer makes more tokens than bytes: an estimate could fall short, and the budget be exceeded.
        read = sum(len(m.content.encode("utf-8", "replace")) + _MESSAGE_TOKENS for m in prompt.messages)
        read += len(json.dumps(prompt.schema)) if prompt.schema else 0
        written = self._most_output(prompt)
        return Usage(1, 0, read, written, None if self._price is None else self._price.of(read, written))


def _reserve(limits: Sequence[Budget], most: Usage, *, last: bool) -> bool:
    """Reserve with all budgets or with none; where it can fit in none at all, raise only for the `last` form."""
    held: list[Budget] = []
    try:
        for budget in limits:
            if not budget.reserve(most):
                break
            held.append(budget)
        else:
            return True
    except BudgetExceeded:
        _give_back(held, most)
        if last:
            raise
        return False
    _give_back(held, most)
    return False


def _give_back(held: Sequence[Budget], most: Usage) -> None:
    for budget in held:
        budget.settle(most, Usage())
