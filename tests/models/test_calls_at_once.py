"""No more calls are under way than a model, and a query, lets: a call is under way until its reply is kept."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

import almanaq
from almanaq.models.batching import Batching
from almanaq.models.budget import Budget
from almanaq.models.cached import CachedModel, ReplyCache
from almanaq.models.model_names import ModelSettings, make_models, wrap_model
from almanaq.models.protocols import Completion, Prompt, Usage

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
