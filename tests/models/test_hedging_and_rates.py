"""Calls that take too long are made once more; calls come no faster than a rate allows."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from almanaq.errors import BudgetExceeded
from almanaq.models.budget import Budget
from almanaq.models.failure import FailedCall
from almanaq.models.hedged import HedgedModel
from almanaq.models.metered import MeteredModel
from almanaq.models.openai import OpenAIModel
from almanaq.models.prices import Price
from almanaq.models.protocols import Completion, LanguageModel, Prompt, Usage
from almanaq.models.rate import Rate, RateLimitedModel
from almanaq.models.spending import spending
from almanaq.testing import Faults, ScriptedModel, StandInServer


def hedged(server: StandInServer, budget: Budget, after: float | None = 0.5) -> LanguageModel:
    price = Price(1.0, 1.0)
    return HedgedModel(MeteredModel(OpenAIModel("m", server.url, price=price), budget, price), after)


def test_a_call_that_hangs_is_made_once_more_and_the_loser_is_cancelled(prompt: Prompt) -> None:
    budget = Budget(money=1.0)
    with StandInServer(lambda _: "late", faults=Faults(["hang", None], hang=30)) as server, spending() as account:
        started = time.perf_counter()
        completion = asyncio.run(hedged(server, budget).complete(prompt))
        assert time.perf_counter() - started < 5
    assert (completion.text, completion.usage.calls, server.ledger.calls) == ("late", 2, 2)
    assert budget.usage.calls == account.usage.calls == 2
    assert budget.usage.money == pytest.approx(server.ledger.money(Price(1.0, 1.0)))
    assert budget.unsettled.money > 0  # the loser may have cost something, and counts against the limit


def test_a_call_in_time_is_made_once(prompt: Prompt) -> None:
    with StandInServer(lambda _: "soon") as server:
        asyncio.run(hedged(server, Budget(), after=5).complete(prompt))
    assert server.ledger.calls == 1


def test_a_failure_before_the_deadline_is_no_reason_to_hedge(prompt: Prompt) -> None:
    with StandInServer(lambda _: "", faults=Faults(["error"])) as server, pytest.raises(FailedCall, match="500"):
        asyncio.run(hedged(server, Budget()).complete(prompt))
    assert server.ledger.calls == 1


def test_when_the_second_call_fails_the_first_is_waited_for(prompt: Prompt) -> None:
    with StandInServer(lambda _: "first", faults=Faults(["slow", "error"], slow=0.8)) as server:
        completion = asyncio.run(hedged(server, Budget(), after=0.4).complete(prompt))
    assert (completion.text, completion.usage.calls) == ("first", 2)


@pytest.mark.parametrize("second", ["hang", "error"])
def test_a_third_call_is_made_when_the_second_is_of_no_use_either(prompt: Prompt, second: str) -> None:
    with StandInServer(lambda _: "third", faults=Faults(["hang", second], hang=30)) as server:
        completion = asyncio.run(hedged(server, Budget()).complete(prompt))
    assert (completion.text, completion.usage.calls, server.ledger.calls) == ("third", 3, 3)


def test_a_budget_without_room_for_a_second_call_still_takes_the_first(prompt: Prompt) -> None:
    with StandInServer(lambda _: "first", faults=Faults(["slow"], slow=0.8)) as server:
        completion = asyncio.run(hedged(server, Budget(calls=1)).complete(prompt))
    assert (completion.text, server.ledger.calls) == ("first", 1)


def test_what_is_long_is_learned_from_other_calls(prompt: Prompt) -> None:
    with StandInServer(lambda _: "x", faults=Faults(["hang"], hang=30)) as server:
        model = hedged(server, Budget(), after=None)

        async def all_of() -> list[Completion]:
            return await asyncio.gather(*(model.complete(replace(prompt, version=str(n))) for n in range(30)))

        started = time.perf_counter()
        assert len(asyncio.run(all_of())) == 30
        assert time.perf_counter() - started < 10
    assert server.ledger.calls == 31


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
    rate = Rate(requests=3, window=0.4)
    model = RateLimitedModel(ScriptedModel(lambda _: "x"), rate)

    async def seven() -> float:
        started = time.perf_counter()
        await asyncio.gather(*(model.complete(prompt) for _ in range(7)))
        return time.perf_counter() - started

    assert 0.8 <= asyncio.run(seven()) < 3
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
    assert budget._reserved == Usage()


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
        ended = asyncio.run(many(hedged(server, limit, after=0.3)))
        time.sleep(0.6)
    assert any(isinstance(item, BudgetExceeded) for item in ended)
    ledger = server.ledger
    assert ledger.money(price) <= budget.get("money", 1e9)
    assert ledger.input_tokens + ledger.output_tokens <= budget.get("tokens", 1e9)
    assert ledger.calls <= budget.get("calls", 1e9)
