"""A model server is believed nothing: whatever it sends, a call ends in time, in bounds, and the next one is right."""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from almanaq.errors import BudgetExceeded, ModelCallError, ModelError
from almanaq.models import openai as openai_module
from almanaq.models.budget import Budget
from almanaq.models.http import CHAT_BYTES, JsonServer, Reply
from almanaq.models.model_names import ModelSettings, wrap_model
from almanaq.models.openai import OpenAIEmbedder, OpenAIModel
from almanaq.models.openai_replies import read_retry_after
from almanaq.models.protocols import Completion, Message, Price, Prompt
from almanaq.models.retrying import LONGEST_RETRY_AFTER, FailedCall, seconds_to_wait
from almanaq_bench.testing import Faults, StandInServer
from almanaq_bench.testing.hostile import HOSTILE
from almanaq_bench.testing.outcome import Outcome

KEY = "canary+6f1d/0b7a2c=="
WHOLE = ("packed", "reply_twice", "cookies", "long_reply", "nul", "half_character")
"""Faults after which there is a reply all the same; so there is after every one of counts."""


def numbered(request: dict[str, list[dict[str, str]]]) -> str:
    return json.dumps({"value": request["messages"][0]["content"], "quotes": []})


def prompt_of(text: str) -> Prompt:
    return Prompt("answer", "1", (Message("user", text),), max_output_tokens=64)


@pytest.mark.parametrize("fault", HOSTILE)
def test_a_call_ends_within_bounds_and_the_next_is_right(fault: str) -> None:
    async def three() -> list[Completion | ModelError]:
        model = OpenAIModel("m", server.url, KEY, timeout=10)
        ended: list[Completion | ModelError] = []
        for text in ("first", "second", "third"):
            try:
                ended.append(await model.complete(prompt_of(text)))
            except ModelError as problem:
                ended.append(problem)
        return ended

    with StandInServer(numbered, faults=Faults([None, fault])) as server:
        first, second, third = asyncio.run(three())
    for text, right in (("first", first), ("third", third)):
        assert isinstance(right, Completion)
        assert json.loads(right.text)["value"] == text
    if isinstance(second, Completion):
        assert fault in WHOLE or fault.startswith("usage")
        assert isinstance(json.loads(second.text)["value"], str)
        second.text.encode()
        counted = second.usage
    else:
        assert fault not in WHOLE
        assert KEY not in str(second)
        assert len(str(second)) < 1000
        counted = getattr(second, "usage", first.usage)
    assert 0 <= counted.input_tokens < 10**6
    assert 0 <= counted.output_tokens < 10**6
    # The sockets' buffers come on top of what is read.
    assert server.ledger.sent < 16 * CHAT_BYTES


@pytest.mark.parametrize("fault", [name for name in HOSTILE if name.startswith("usage")])
def test_no_count_of_a_server_makes_a_budget_last_longer(fault: str, caplog: pytest.LogCaptureFixture) -> None:
    """Whatever is stated, a call is reserved at its most before, and counted at no less than its words after."""
    budget = Budget(money=1.0)
    price = Price(1e6, 1e6)
    with StandInServer(numbered, faults=Faults(rates={fault: 1.0})) as server, caplog.at_level(logging.WARNING):
        settings = ModelSettings(budget=budget, price=price)
        model = wrap_model(OpenAIModel("m", server.url, "k", price=price), settings, False)
        with pytest.raises(BudgetExceeded):
            asyncio.run(model.complete(prompt_of("a question of some words")))
        assert server.ledger.calls == 0  # a call may cost more than there is
        budget.money = None
        completion = asyncio.run(model.complete(prompt_of("a question of some words")))
    assert completion.usage.input_tokens >= 5
    assert completion.usage.output_tokens >= 4
    assert completion.usage.money is not None
    assert math.isfinite(completion.usage.money)
    assert budget.usage == completion.usage
    told = fault in ("usage_negative", "usage_huge", "usage_infinite", "usage_nan")
    assert ("says that a call took" in caplog.text) == told


@pytest.mark.parametrize(
    ("said", "seconds"),
    [("1e9", 60), ("inf", 60), ("-inf", 0), ("-5", 0), ("nan", None), ("0.5", 0.5), ("9" * 5000, 60), ("soon", None)],
)
def test_a_server_asks_for_no_more_than_a_minute(said: str, seconds: float | None) -> None:
    assert read_retry_after({"retry-after": said}) == seconds
    assert read_retry_after({"retry-after-ms": "nan", "retry-after": said}) == seconds


@pytest.mark.parametrize("asked", [1e9, math.inf, math.nan, -5.0])
def test_a_retry_waits_no_longer_whoever_asks(asked: float) -> None:
    """A model of someone else's may hand on what its server said."""
    waited = seconds_to_wait(0, FailedCall("slow down", retry_after=asked))
    assert 0 <= waited <= LONGEST_RETRY_AFTER + 1


def test_an_embedder_waits_no_longer_either(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(openai_module.asyncio, "sleep", sleep)
    limited = b'{"error": {"message": "slow down"}}'
    with answering(429, limited, {"retry-after": "1e9"}) as (url, _), pytest.raises(FailedCall):
        OpenAIEmbedder("m", url, "k").embed_documents(["a"])
    assert len(slept) == 3
    assert all(LONGEST_RETRY_AFTER <= seconds <= LONGEST_RETRY_AFTER + 1 for seconds in slept)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("kind", ["chat", "embeddings"])
def test_documents_and_keys_go_to_no_other_address(status: int, kind: str) -> None:
    def ask(url: str) -> None:
        if kind == "chat":
            asyncio.run(wrap_model(OpenAIModel("m", url, KEY), ModelSettings(), False).complete(prompt_of("secret")))
        else:
            OpenAIEmbedder("m", url, KEY).embed_documents(["secret"])

    with (
        answering(200, b"{}") as (other, seen),
        answering(status, b"", {"location": other}) as (url, asked),
        pytest.raises(ModelError, match="redirects are not followed"),
    ):
        ask(url)
    assert seen == []
    assert len(asked) == 1


@pytest.mark.parametrize("status", [200, 400, 401, 404, 429, 500])
def test_a_key_that_a_server_repeats_is_told_to_nobody(status: int) -> None:
    body = json.dumps({"error": {"message": f"the key {KEY} is wrong"}}).encode()
    with answering(status, body) as (url, _), pytest.raises(ModelError) as caught:
        asyncio.run(OpenAIModel("m", f"{url}?code=canary-in-the-query", KEY).complete(prompt_of("x")))
    assert "canary" not in str(caught.value)
    assert "canary" not in repr(caught.value.__cause__)


@pytest.mark.parametrize(
    "data",
    [
        [],
        [{"index": 0, "embedding": [1.0]}],
        [{"index": 0, "embedding": [1.0]}, {"index": 0, "embedding": [2.0]}],
        [{"index": -1, "embedding": [1.0]}, {"index": 0, "embedding": [2.0]}],
        [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [1.0, 2.0]}],
        [{"index": 0, "embedding": [1e999]}, {"index": 1, "embedding": [1.0]}],
        [{"index": 0, "embedding": [1e300]}, {"index": 1, "embedding": [1.0]}],
        [{"index": 0, "embedding": [[1.0]]}, {"index": 1, "embedding": [[1.0]]}],
        {"0": [1.0]},
        "no vectors",
    ],
)
def test_vectors_that_are_none_are_a_failed_call(data: object) -> None:
    body = json.dumps({"data": data, "usage": {"prompt_tokens": -(10**9)}}).encode()
    with answering(200, body) as (url, _):
        embedder = OpenAIEmbedder("m", url, "k", attempts=1)
        with pytest.raises(ModelCallError):
            embedder.embed_documents(["a", "b"])
    assert embedder.usage.input_tokens >= 0


def test_vectors_keep_their_width(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = [[1.0, 0.0], [1.0, 0.0, 0.0]]

    async def post(server: JsonServer, path: str, content: object) -> Reply:
        return Reply(200, json.dumps({"data": [{"index": 0, "embedding": vectors.pop(0)}]}).encode(), {})

    monkeypatch.setattr(JsonServer, "post", post)
    embedder = OpenAIEmbedder("m", "http://127.0.0.1:9", "k", attempts=1)
    assert embedder.embed_documents(["a"]).dtype == np.float32
    with pytest.raises(FailedCall, match="3 numbers after some of 2"):
        embedder.embed_documents(["b"])


@contextmanager
def answering(status: int, body: bytes, headers: dict[str, str] | None = None) -> Iterator[tuple[str, list[object]]]:
    """Serve one reply to every request; gives the address and the heads of the requests that came."""
    with StandInServer(twist=lambda *_: Outcome(status, body, headers or {})) as server:
        yield server.url, server.ledger.heads
