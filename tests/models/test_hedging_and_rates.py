"""Calls that take too long are made once more; calls come no faster than a rate allows."""

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
from almanaq.models.rate import HedgedModel, Rate, RateLimitedModel
from almanaq.models.retrying import FailedCall
from almanaq.testing import Faults, ScriptedModel, StandInServer


class Timed:
    """A model whose calls take so many seconds each, and then give a reply or fail; the last of the script goes on."""

    name = "timed"

    def __init__(self, *script: tuple[float, str | Exception]) -> None:
        self._script = list(script)
        self.calls = 0

    async def complete(self, prompt: Prompt) -> Completion:
        self.calls += 1
        seconds, reply = self._script.pop(0) if len(self._script) > 1 else self._script[0]
        await asyncio.sleep(seconds)
        if isinstance(reply, Exception):
            raise reply
        return Completion(reply, Usage(calls=1))


ERROR = FailedCall("the server had an error", usage=Usage(calls=1))
NEVER = (3600.0, "too late")


def test_over_http_a_call_that_hangs_is_made_once_more_and_the_loser_is_cancelled(prompt: Prompt) -> None:
    budget, price = Budget(money=1.0), Price(1.0, 1.0)
    with StandInServer(lambda _: "late", faults=Faults(["hang", None])) as server, spending() as account:
        metered = MeteredModel(OpenAIModel("m", server.url, price=price), budget, price)
        completion = asyncio.run(HedgedModel(metered, after=3).complete(prompt))
    assert (completion.text, completion.usage.calls, server.ledger.calls) == ("late", 2, 2)
    assert budget.usage.calls == account.usage.calls == 2
    assert budget.usage.money == pytest.approx(server.ledger.money(price))
    assert budget.unsettled.money > 0  # the loser may have cost something, and counts against the limit


@pytest.mark.parametrize(
    ("script", "after", "ended"),
    [
        ([(4.9, "soon")], 5, ("soon", 1, 4.9)),
        ([(1.1, "first"), (0.5, "second")], 1, ("first", 2, 1.1)),
        ([NEVER, (0.5, "second")], 1, ("second", 2, 1.5)),
        ([(2.0, "first"), (0.1, ERROR)], 1, ("first", 2, 2.0)),  # when the second fails, the first is waited for
        ([NEVER, (0.1, ERROR), (0.5, "third")], 1, ("third", 3, 3.5)),
        ([NEVER, NEVER, (0.5, "third")], 1, ("third", 3, 3.5)),
        ([(99.0, "first"), NEVER, NEVER, (0.5, "fourth")], 1, ("first", 3, 99.0)),
    ],
)
def test_a_call_without_a_reply_in_time_is_made_again(
    prompt: Prompt, script: list[tuple[float, str | Exception]], after: float, ended: tuple[str, int, float]
) -> None:
    async def one() -> tuple[str, int, float]:
        completion = await HedgedModel(model, after).complete(prompt)
        assert completion.usage.calls == model.calls
        return completion.text, model.calls, now()

    model = Timed(*script)
    assert run(one()) == pytest.approx(ended)


def test_a_failure_before_the_deadline_is_no_reason_to_hedge(prompt: Prompt) -> None:
    model = Timed((0.9, ERROR), (0.1, "second"))
    with pytest.raises(FailedCall, match="an error"):
        run(HedgedModel(model, after=1).complete(prompt))
    assert model.calls == 1


def test_a_budget_without_room_for_a_second_call_still_takes_the_first(prompt: Prompt) -> None:
    model = Timed((2.0, "first"), (0.1, "second"))
    completion = run(HedgedModel(MeteredModel(model, Budget(calls=1)), after=1).complete(prompt))
    assert (completion.text, model.calls) == ("first", 1)


def test_what_is_long_is_learned_from_other_calls(prompt: Prompt) -> None:
    async def all_of() -> float:
        await asyncio.gather(*(model.complete(replace(prompt, version=str(n))) for n in range(30)))
        return now()

    for seconds, ended in ((0.1, 2.1), (1.0, 5.0)):  # four times as long as most take, at least 2 s
        timed = Timed(NEVER, (seconds, "x"))
        model = HedgedModel(timed)
        assert ended <= run(all_of()) <= ended + 1  # it looks once in a second whether it has learned something
        assert timed.calls == 31


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
        ended = asyncio.run(many(HedgedModel(metered, after=0.3)))
        time.sleep(0.6)
    assert any(isinstance(item, BudgetExceeded) for item in ended)
    ledger = server.ledger
    assert ledger.money(price) <= budget.get("money", 1e9)
    assert ledger.input_tokens + ledger.output_tokens <= budget.get("tokens", 1e9)
    assert ledger.calls <= budget.get("calls", 1e9)
