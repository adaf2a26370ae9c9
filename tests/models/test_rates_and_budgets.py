"""Calls come no faster than a rate allows, and cost no more than a budget."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from virtual_time import now, run

from almanaq.errors import BudgetExceeded
from almanaq.models.budget import Budget, MeteredModel, spending
from almanaq.models.openai import OpenAIModel
from almanaq.models.protocols import Completion, LanguageModel, Price, Prompt, Usage
from almanaq.models.rate import Rate, RateLimitedModel
from almanaq.testing import ScriptedModel
from almanaq_bench.testing import Faults, StandInServer


@given(
    st.lists(st.tuples(st.floats(0, 30), st.integers(0, 400)), min_size=1, max_size=60),
    st.integers(1, 8),
    st.integers(100, 1000),
)
@settings(max_examples=60)
def test_no_window_holds_more_than_the_rate(arrivals: list[tuple[float, int]], requests: int, tokens: int) -> None:
    now = 0.0
    rate = Rate(requests, tokens, window=60, clock=lambda: now)
    entered: list[tuple[float, int]] = []
    for gap, size in arrivals:
        now += gap
        while wait := rate.enter(size):
            now += wait
        entered.append((now, size))
    for start, _ in entered:
        inside = [size for moment, size in entered if start <= moment < start + 60]
        assert len(inside) <= requests
        assert sum(inside) <= tokens or len(inside) == 1


def test_calls_wait_for_the_rate_and_corrections_count(prompt: Prompt) -> None:
    async def seven() -> float:
        model = RateLimitedModel(ScriptedModel(lambda _: "x"), Rate(requests=3, window=0.4, clock=now))
        await asyncio.gather(*(model.complete(prompt) for _ in range(7)))
        return now()

    assert run(seven()) == pytest.approx(0.8, abs=0.01)
    rate = Rate(tokens=1000)
    asyncio.run(RateLimitedModel(ScriptedModel(lambda _: "x"), rate).complete(prompt))
    rate.correct(0, 2000)
    assert rate.enter(10) > 1


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
