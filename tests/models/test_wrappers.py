"""Wrappers: each adds one thing; together they lose no call, pay none twice, and keep to the budget."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace

import pytest
import virtual_time

from almanaq.errors import BudgetExceeded, ModelCallError, ModelError
from almanaq.models.budget import Budget, MeteredModel
from almanaq.models.concurrent import ConcurrentModel
from almanaq.models.model_names import ModelSettings, wrap_model
from almanaq.models.openai import OpenAIModel
from almanaq.models.protocols import Completion, LanguageModel, Price, Prompt
from almanaq.models.retrying import FailedCall, RetryingModel
from almanaq.testing import ScriptedModel
from almanaq_bench.testing import Faults, StandInServer


def numbered(prompt: Prompt, number: int) -> Prompt:
    return replace(prompt, version=str(number))


def test_a_retry_waits_as_long_as_the_server_asks(prompt: Prompt) -> None:
    async def waited() -> float:
        model = ScriptedModel([FailedCall("the server answered 429", retry_after=30.0), "fine"])
        assert (await RetryingModel(model).complete(prompt)).text == "fine"
        return virtual_time.now()

    assert 30 <= virtual_time.run(waited()) < 31


@pytest.mark.parametrize("too_many", [False, True])
def test_after_too_many_requests_a_call_rests_for_longer(prompt: Prompt, too_many: bool) -> None:
    def failures() -> list[FailedCall]:
        made = [FailedCall("the server answered 429" if too_many else "the server answered 500") for _ in range(3)]
        for each in made:
            each.too_many = too_many
        return made

    async def waited() -> float:
        await RetryingModel(ScriptedModel([*failures(), "fine"])).complete(prompt)
        return virtual_time.now()

    seconds = [virtual_time.run(waited()) for _ in range(20)]
    least, most = (14.0, 28.0) if too_many else (0.0, 3.5)  # of three waits
    assert all(least <= each <= most for each in seconds)


def test_what_cannot_succeed_is_not_tried_again(prompt: Prompt) -> None:
    refused = ScriptedModel([FailedCall("too long", retryable=False), "late"])
    with pytest.raises(FailedCall, match="too long"):
        asyncio.run(RetryingModel(refused, base=0).complete(prompt))
    unusable = ScriptedModel([ModelError("no such model"), "late"])
    with pytest.raises(ModelError, match="no such model"):
        asyncio.run(RetryingModel(unusable, base=0).complete(prompt))
    assert (refused.calls, unusable.calls) == (1, 1)


def test_the_last_failure_is_raised_with_the_cost_of_all(prompt: Prompt) -> None:
    with StandInServer(lambda _: "", faults=Faults()) as server, pytest.raises(FailedCall, match="empty") as caught:
        asyncio.run(RetryingModel(OpenAIModel("m", server.url), attempts=3, base=0).complete(prompt))
    assert caught.value.usage.calls == server.ledger.calls == 3
    assert caught.value.usage.input_tokens == server.ledger.input_tokens


def test_slots_bound_the_calls_under_way(prompt: Prompt) -> None:
    under_way = most = 0

    class Counting:
        name = "counting"

        async def complete(self, prompt: Prompt) -> Completion:
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(0.01)
            under_way -= 1
            return Completion(prompt.version)

    async def all_at_once() -> list[Completion]:
        model = ConcurrentModel(Counting(), 3)
        return await asyncio.gather(*(model.complete(numbered(prompt, n)) for n in range(10)))

    assert [c.text for c in asyncio.run(all_at_once())] == [str(n) for n in range(10)]
    assert most == 3


@pytest.mark.parametrize(
    "budget", [Budget(calls=7), Budget(tokens=200), Budget(money=0.001), Budget(calls=0), Budget(money=0.0)]
)
def test_a_budget_is_never_exceeded(prompt: Prompt, budget: Budget) -> None:
    price = Price(1.0, 10.0)

    async def many(model: LanguageModel) -> list[object]:
        calls = (model.complete(numbered(prompt, n)) for n in range(40))
        return await asyncio.gather(*calls, return_exceptions=True)

    with StandInServer(lambda _: "some words of a reply", faults=Faults(latency=0.002)) as server:
        metered = MeteredModel(OpenAIModel("m", server.url, price=price), budget, price)
        ended = asyncio.run(many(metered))
    ledger = server.ledger
    assert {type(item) for item in ended} <= {Completion, BudgetExceeded}
    assert any(isinstance(item, BudgetExceeded) for item in ended)
    assert budget.calls is None or ledger.calls <= budget.calls
    assert budget.tokens is None or 0 < ledger.input_tokens + ledger.output_tokens <= budget.tokens
    assert budget.money is None or ledger.money(price) <= budget.money
    usage = metered.usage
    assert (usage.calls, usage.input_tokens, usage.output_tokens) == (
        ledger.calls,
        ledger.input_tokens,
        ledger.output_tokens,
    )
    assert usage.money == pytest.approx(ledger.money(price))


def test_a_budget_of_money_needs_a_price(prompt: Prompt) -> None:
    with pytest.raises(BudgetExceeded, match="prices file"):
        asyncio.run(MeteredModel(ScriptedModel(lambda _: "x"), Budget(money=1.0)).complete(prompt))


def test_under_every_fault_all_calls_end_and_the_meter_equals_the_ledger(prompt: Prompt) -> None:
    rates = {"too_many": 0.1, "error": 0.05, "hang": 0.02, "malformed": 0.02, "cut": 0.01, "empty": 0.02}
    price = Price(0.5, 1.5)
    budget = Budget()

    async def many(model: LanguageModel, calls: int) -> list[object]:
        asked = (model.complete(numbered(prompt, n)) for n in range(calls))
        return await asyncio.gather(*asked, return_exceptions=True)

    with StandInServer(lambda r: r["messages"][1]["content"], faults=Faults(rates=rates, latency=0.001)) as server:
        metered = MeteredModel(OpenAIModel("m", server.url, timeout=3.0, price=price), budget, price)
        ended = asyncio.run(many(RetryingModel(ConcurrentModel(metered, 16), base=0.002), 200))
    assert all(isinstance(item, Completion | ModelCallError) for item in ended)
    assert sum(isinstance(item, Completion) for item in ended) == server.ledger.answered >= 195
    assert budget.usage.calls == server.ledger.calls
    lost = server.ledger.outcomes["cut"] > 0
    if not lost:
        assert budget.usage.money == pytest.approx(server.ledger.money(price))


def test_equal_requests_under_way_in_many_threads_share_one_call(prompt: Prompt) -> None:
    inner = ScriptedModel(lambda _: "once", latency=0.1)
    model = wrap_model(inner, ModelSettings(), cache=False)
    found: list[Completion] = []

    async def some() -> list[Completion]:
        return await asyncio.gather(*(model.complete(prompt) for _ in range(5)))

    threads = [threading.Thread(target=lambda: found.extend(asyncio.run(some()))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [c.text for c in found] == ["once"] * 20
    assert inner.calls == 1
    assert sum(c.usage.calls for c in found) == 1
    assert sum(c.usage.cached_calls for c in found) == 19
