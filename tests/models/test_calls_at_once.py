"""No more calls are under way than a model, and a query, lets: a call is under way until its reply is kept."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import virtual_time

import almanaq
from almanaq.errors import ModelCallError, ModelError
from almanaq.models.batching import Batching
from almanaq.models.budget import Budget
from almanaq.models.cached import CachedModel, ReplyCache
from almanaq.models.model_names import ModelSettings, make_models, wrap_model
from almanaq.models.protocols import Completion, Message, Prompt, Usage
from almanaq.models.retrying import FailedCall

ROWS = 60
QUERY = "SELECT id, answer(body, 'what is its number?') AS number FROM cases"


class Counting:
    """A model, and a cache for it, that count calls whose reply is not kept yet."""

    name = "counting"

    def __init__(self) -> None:
        self.asked = self.kept = self.most = self.texts = 0

    async def complete(self, prompt: Prompt) -> Completion:
        self.asked += 1
        self.most = max(self.most, self.asked - self.kept)
        await asyncio.sleep(0.001 * (self.asked % 3))
        count = prompt.messages[-1].content.count("A case.")
        self.texts = max(self.texts, count)
        one = {"value": "7", "quotes": []}
        said = one if prompt.name == "answer" else {f"item{n}": one for n in range(1, count + 1)}
        return Completion(json.dumps(said), Usage(calls=1))


class CountedCache(ReplyCache):
    counting: Counting

    def keep(self, replies: Sequence[tuple[bytes, str]], *, model: str = "") -> None:
        super().keep(replies, model=model)
        if model == self.counting.name:
            self.counting.kept += len(replies)


@pytest.fixture
def source(tmp_path: Path) -> str:
    body = "\n".join(f'{n},"A case. Its number is {n}."' for n in range(ROWS))
    (tmp_path / "cases.csv").write_text(f"id,body\n{body}\n")
    return str(tmp_path / "cases.csv")


@pytest.mark.parametrize(("of_query", "of_model"), [(3, 64), (20, 5), (8, 8), (1, 1)])
def test_a_call_is_under_way_until_its_reply_is_kept(source: str, of_query: int, of_model: int) -> None:
    counting, cache = Counting(), CountedCache(None)
    cache.counting = counting
    inner = wrap_model(counting, ModelSettings(concurrency=of_model, budget=Budget()), False)
    assert isinstance(inner, CachedModel)
    model = CachedModel(inner._model, cache)
    con = almanaq.connect(source, model=make_models(model), max_calls=None, concurrency=of_query)
    assert len(con.sql(QUERY).rows) == ROWS
    assert (counting.asked, counting.most) == (ROWS, min(of_query, of_model))


def test_texts_find_company_beyond_the_calls_at_once(source: str) -> None:
    """Two calls at once, of six texts each: rows wait for company, not for a slot."""
    counting = Counting()
    model = wrap_model(counting, ModelSettings(budget=Budget()), False)
    con = almanaq.connect(source, model=make_models(model, Batching.of(6)), max_calls=None, concurrency=2)
    assert len(con.sql(QUERY).rows) == ROWS
    assert (counting.asked, counting.texts) == (ROWS // 6, 6)


class Refusing:
    """A model that takes some seconds for each reply, and fails for the first calls, or for all."""

    name = "refusing"

    def __init__(self, failure: Callable[[], Exception], failing: int, seconds: float) -> None:
        self.failure, self.failing, self.seconds = failure, failing, seconds
        self.asked = self.out = self.most = 0

    async def complete(self, _: Prompt) -> Completion:
        self.asked, self.out = self.asked + 1, self.out + 1
        number, self.most = self.asked, max(self.most, self.out)
        await asyncio.sleep(self.seconds)
        self.out -= 1
        if number <= self.failing:
            raise self.failure()
        return Completion("fine", Usage(calls=1))


def ask_at_once(refusing: Refusing, count: int = 200) -> tuple[list[Completion | BaseException], float]:
    """Return the outcomes of calls that are made at the same time, and the seconds they took."""

    async def ask() -> tuple[list[Completion | BaseException], float]:
        model = wrap_model(refusing, ModelSettings(budget=Budget()), False)
        prompts = [Prompt("p", "1", (Message("user", str(n)),)) for n in range(count)]
        began = virtual_time.now()
        found = await asyncio.gather(*map(model.complete, prompts), return_exceptions=True)
        return found, virtual_time.now() - began

    return virtual_time.run(ask())


WRONG_KEY = ModelError("set OPENAI_API_KEY")


@pytest.mark.parametrize(
    ("failure", "most"),
    [
        (lambda: ModelError("set OPENAI_API_KEY"), 4),
        (lambda: FailedCall("refused", retryable=False, setup=WRONG_KEY), 11),
        (lambda: FailedCall("odd, so tried again", setup=WRONG_KEY), 4 * 11),
    ],
)
def test_what_no_call_can_pass_is_found_by_few(failure: Callable[[], Exception], most: int) -> None:
    refusing = Refusing(failure, 10**9, 0.1)
    found, _ = ask_at_once(refusing)
    errors = [each for each in found if isinstance(each, ModelError)]
    assert len(errors) == len(found)
    assert sum(not isinstance(each, ModelCallError) for each in errors) >= len(found) - most
    assert refusing.asked <= most


@pytest.mark.parametrize("seconds", [0.01, 0.2, 1.0, 20.0])
def test_a_model_that_replies_gets_all_calls_soon(seconds: float) -> None:
    refusing = Refusing(AssertionError, 0, seconds)
    found, taken = ask_at_once(refusing)
    assert all(isinstance(each, Completion) for each in found)
    assert refusing.most == 64
    assert taken <= 4 * seconds + min(seconds, 0.25) + 0.01


@pytest.mark.parametrize("seconds", [0.01, 0.2, 1.0])
@pytest.mark.parametrize("failing", [1, 4, 7])
def test_texts_that_are_refused_first_cost_no_other_its_reply(seconds: float, failing: int) -> None:
    refusing = Refusing(lambda: FailedCall("blocked", retryable=False, setup=WRONG_KEY), failing, seconds)
    found, _ = ask_at_once(refusing)
    assert sum(isinstance(each, Completion) for each in found) == len(found) - failing


def test_a_model_that_can_be_reached_again_is_asked_again() -> None:
    refusing = Refusing(lambda: ModelError("start the server"), 4, 0.1)

    async def ask() -> None:
        model = wrap_model(refusing, ModelSettings(budget=Budget()), False)
        prompts = [Prompt("p", "1", (Message("user", str(n)),)) for n in range(50)]
        await asyncio.gather(*map(model.complete, prompts), return_exceptions=True)
        found = await asyncio.gather(*map(model.complete, prompts))
        assert len(found) == len(prompts)

    virtual_time.run(ask())
