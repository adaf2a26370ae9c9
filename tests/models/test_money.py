"""Money: never more is spent than a budget, and one that suffices stops nothing, whatever prices and lengths are."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace

import pytest
import virtual_time

from almanaq.errors import BudgetExceeded
from almanaq.models.budget import Budget, MeteredModel
from almanaq.models.protocols import Completion, Message, Price, Prompt, Usage
from almanaq.models.retrying import UnusableReply

CALLS = 24


class Talker:
    """Replies of given lengths; what is longer than the limit is cut there, and paid for."""

    name = "talker"

    def __init__(self, price: Price, lengths: list[int]) -> None:
        self.price, self.lengths, self.spent, self.requests = price, lengths, 0.0, 0
        self.under_way = self.most = 0

    async def complete(self, prompt: Prompt) -> Completion:
        self.requests += 1
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        wanted = self.lengths[int(prompt.messages[-1].content.split()[0])]
        await asyncio.sleep(0.1 + wanted / 1000)
        self.under_way -= 1
        read, written = len(prompt.messages[-1].content) // 4, min(wanted, prompt.max_output_tokens)
        cost = self.price.of(read, written)
        self.spent += cost
        usage = Usage(1, 0, read, written, cost)
        if wanted > prompt.max_output_tokens:
            failure = UnusableReply("cut", usage=usage)
            failure.cut = True
            raise failure
        return Completion("whole", usage)


def _prompts(text: str) -> list[Prompt]:
    one = Prompt("answer", "v", (), None, 1024, usual_output_tokens=192)
    return [replace(one, messages=(Message("user", f"{n} {text}"),)) for n in range(CALLS)]


def _asked(talker: Talker, prompts: list[Prompt], budget: Budget) -> list[Completion | BaseException]:
    async def all_at_once() -> list[Completion | BaseException]:
        metered = MeteredModel(talker, budget, talker.price)
        return await asyncio.gather(*map(metered.complete, prompts), return_exceptions=True)

    return virtual_time.run(all_at_once())


def _most_of_one(price: Price, prompts: list[Prompt]) -> float:
    return max(price.of(len(p.messages[-1].content) + 8, p.max_output_tokens) for p in prompts)


@pytest.mark.parametrize("seed", range(40))
def test_nothing_is_spent_beyond_a_budget_and_what_suffices_stops_nothing(seed: int) -> None:
    draw = random.Random(seed)
    price = Price(draw.choice([0.1, 2.5, 100.0]), draw.choice([0.4, 10.0, 400.0]))
    prompts = _prompts("word " * draw.randrange(1, 400))
    lengths = [draw.choice([5, 20, 150, 190, draw.randrange(1, 1025)]) for _ in range(CALLS)]
    free = Talker(price, lengths)
    assert all(isinstance(reply, Completion) for reply in _asked(free, prompts, Budget()))
    assert free.requests == CALLS
    too_long = any(length > 192 for length in lengths)
    enough = free.spent * (2 if too_long else 1) + _most_of_one(price, prompts)
    for money, suffices in ((enough, True), (draw.uniform(0, enough), False), (0.0, False)):
        talker, budget = Talker(price, lengths), Budget(money=money)
        ended = _asked(talker, prompts, budget)
        assert talker.spent <= money + 1e-9
        assert budget.usage.money == pytest.approx(talker.spent)
        assert budget.reserved.money == pytest.approx(0.0, abs=1e-9)
        assert {type(item) for item in ended} <= {Completion, BudgetExceeded}
        if suffices:
            assert all(isinstance(item, Completion) for item in ended)


def test_calls_wait_for_those_under_way_and_no_more_are_made_at_once_than_fit() -> None:
    price = Price(0.0, 1000.0)  # a usual reply is reserved at 0.192, a whole one at 1.024
    talker, budget = Talker(price, [20] * CALLS), Budget(money=CALLS * 0.02 + 0.2)
    assert all(isinstance(item, Completion) for item in _asked(talker, _prompts("text"), budget))
    assert talker.most == 3  # 0.68 holds three of 0.192
    assert talker.requests == CALLS


def test_a_reply_that_is_cut_at_its_usual_length_is_asked_for_whole() -> None:
    price = Price(0.0, 1000.0)
    talker = Talker(price, [400] * CALLS)
    ended = _asked(talker, _prompts("text")[:1], Budget(money=1.0))
    assert isinstance(ended[0], BudgetExceeded)  # the whole reply may cost 1.024
    assert talker.requests == 1
    talker = Talker(price, [400] * CALLS)
    two = _asked(talker, _prompts("text")[:2], Budget(money=3.0))
    assert all(isinstance(item, Completion) for item in two)
    assert talker.spent <= 3.0


def test_the_message_says_what_is_spent_and_what_the_next_call_may_cost() -> None:
    talker = Talker(Price(0.0, 1000.0), [20] * CALLS)
    ended = _asked(talker, _prompts("text"), Budget(money=0.25))
    told = {str(item) for item in ended if isinstance(item, BudgetExceeded)}
    assert told == {
        "stopped at the budget of 0.25 dollars (0.0600 spent; the next call may cost up to 0.1920): raise the budget to"
        " go on; what was answered is kept and not paid for again"
    }


def test_a_price_that_is_not_known_is_a_clean_sentence() -> None:
    with pytest.raises(BudgetExceeded) as told:
        asyncio.run(MeteredModel(Talker(Price(1.0), [1]), Budget(money=1.0)).complete(_prompts("text")[0]))
    assert str(told.value) == (
        "a budget of 1 dollars cannot be kept with a model whose price is not known: name it, with its price, in the"
        " prices file that ALMANAQ_PRICES names, or bound calls or tokens instead"
    )
