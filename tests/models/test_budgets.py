"""Calls cost no more than a budget."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import pytest

from almanaq.errors import BudgetExceeded, UsageError
from almanaq.models.budget import Budget, MeteredModel, spending
from almanaq.models.openai import OpenAIModel
from almanaq.models.protocols import Completion, LanguageModel, Price, Prompt, Usage
from almanaq.testing import ScriptedModel
from almanaq_bench.testing import Faults, StandInServer


def test_a_query_has_a_budget_of_its_own_inside_a_larger_one(prompt: Prompt) -> None:
    budget = Budget(calls=10)
    model = MeteredModel(ScriptedModel(lambda _: "x"), budget)

    async def one() -> Completion:
        return await model.complete(prompt)

    with spending(Budget(calls=2, setting="--max-calls")) as account:
        asyncio.run(one())
        asyncio.run(one())
        with pytest.raises(BudgetExceeded, match="--max-calls"):
            asyncio.run(one())
    asyncio.run(one())
    assert (account.usage.calls, budget.usage.calls) == (2, 3)
    assert budget.reserved == Usage()


@pytest.mark.parametrize("limit", [float("nan"), float("inf"), -1])
@pytest.mark.parametrize("name", ["calls", "tokens", "money"])
def test_what_would_be_no_limit_is_refused(name: str, limit: float) -> None:
    with pytest.raises(UsageError, match=f"at least 0.*{name}={limit}"):
        Budget(**{name: limit})  # type: ignore[arg-type]


@pytest.mark.parametrize("budget", [{"money": 0.0004}, {"tokens": 400}, {"calls": 9}])
def test_no_fault_makes_a_server_charge_more_than_the_budget(prompt: Prompt, budget: dict[str, float]) -> None:
    rates = {"cut": 0.2, "hang": 0.05, "empty": 0.1, "malformed": 0.1}
    price = Price(1.0, 1.0)
    limit = Budget(**budget)  # type: ignore[arg-type]

    async def many(model: LanguageModel) -> list[object]:
        calls = (model.complete(replace(prompt, version=str(n))) for n in range(60))
        return await asyncio.gather(*calls, return_exceptions=True)

    faults = Faults(rates=rates, latency=0.01, hang=0.6)
    with StandInServer(lambda _: "a reply " * 5, faults=faults, charges_abandoned=True) as server:
        metered = MeteredModel(OpenAIModel("m", server.url, price=price), limit, price)
        ended = asyncio.run(many(metered))
        time.sleep(0.6)
    assert any(isinstance(item, BudgetExceeded) for item in ended)
    ledger = server.ledger
    assert ledger.money(price) <= budget.get("money", 1e9)
    assert ledger.input_tokens + ledger.output_tokens <= budget.get("tokens", 1e9)
    assert ledger.calls <= budget.get("calls", 1e9)
