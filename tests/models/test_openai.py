"""The OpenAI protocol over real HTTP: every fault ends in a reply or in an error that says what to change."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from almanaq.errors import ModelCallError, ModelError
from almanaq.models.http import Reply
from almanaq.models.openai import OpenAIEmbedder, OpenAIModel
from almanaq.models.protocols import Completion, Message, Price, Prompt
from almanaq.models.retrying import FailedCall, raise_public_errors
from almanaq_bench.testing import Faults, StandInServer

REPLY = '{"value": "Yes", "quotes": []}'


def test_a_reply_carries_the_text_and_what_the_server_charged(prompt: Prompt) -> None:
    price = Price(2.0, 8.0)
    with StandInServer(lambda _: REPLY) as server:
        completion = asyncio.run(OpenAIModel("m", server.url, price=price).complete(prompt))
    assert completion.text == REPLY
    ledger = server.ledger
    usage = completion.usage
    assert (usage.calls, usage.input_tokens, usage.output_tokens) == (1, ledger.input_tokens, ledger.output_tokens)
    assert usage.money == pytest.approx(ledger.money(price))
    request = ledger.requests[0]
    assert request["temperature"] == 0
    assert request["response_format"]["json_schema"]["schema"] == prompt.schema


def test_one_model_serves_one_event_loop_after_the_other_and_leaves_no_socket(prompt: Prompt) -> None:
    with StandInServer(lambda _: REPLY) as server:
        model = OpenAIModel("m", server.url)
        for _ in range(3):
            assert asyncio.run(model.complete(prompt)).text == REPLY
    del model
    gc.collect()  # an unclosed socket would be a ResourceWarning, which is an error here


@pytest.mark.parametrize("fault", ["too_many", "error", "malformed", "cut", "empty", "length"])
def test_a_fault_of_one_call_is_a_failed_call(prompt: Prompt, fault: str) -> None:
    with StandInServer(lambda _: REPLY, faults=Faults([None, fault], retry_after=3)) as server:
        model = OpenAIModel("m", server.url)
        asyncio.run(model.complete(prompt))
        with pytest.raises(FailedCall) as caught:
            asyncio.run(model.complete(prompt))
    assert caught.value.retryable
    assert caught.value.retry_after == (3.0 if fault == "too_many" else None)


def test_a_call_that_hangs_is_given_up(prompt: Prompt) -> None:
    with (
        StandInServer(lambda _: REPLY, faults=Faults(["hang"])) as server,
        pytest.raises(FailedCall, match=r"no reply within 0\.2 s"),
    ):
        asyncio.run(OpenAIModel("m", server.url, timeout=0.2).complete(prompt))
    assert server.ledger.calls <= 1  # a busy machine gives it up before it arrived


def test_a_failed_call_still_tells_what_it_cost(prompt: Prompt) -> None:
    with (
        StandInServer(lambda _: REPLY, faults=Faults(["empty"]), hidden_tokens=500) as server,
        pytest.raises(ModelCallError, match="empty, after 500 hidden tokens") as caught,
    ):
        asyncio.run(OpenAIModel("m", server.url).complete(prompt))
    assert caught.value.usage.output_tokens == server.ledger.output_tokens >= 500  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("key", "model", "url", "setting"),
    [
        ("wrong", "m", "{url}", "OPENAI_API_KEY"),
        ("right", "other", "{url}", "--model"),
        ("right", "m", "{url}/nowhere", "OPENAI_BASE_URL"),
        ("right", "m", "http://127.0.0.1:9", "OPENAI_BASE_URL"),
        ("right", "m", "localhost", "OPENAI_BASE_URL"),
    ],
)
def test_what_no_call_can_mend_names_the_setting(prompt: Prompt, key: str, model: str, url: str, setting: str) -> None:
    with (
        StandInServer(lambda _: REPLY, key="right", models=("m",)) as server,
        pytest.raises(ModelError, match=setting) as caught,
        raise_public_errors(),
    ):
        asyncio.run(OpenAIModel(model, url.format(url=server.url), key).complete(prompt))
    assert not isinstance(caught.value, ModelCallError)


def test_a_missing_key_is_named_before_any_call() -> None:
    with pytest.raises(ModelError, match="OPENAI_API_KEY"):
        OpenAIModel("m")


def test_embeddings_are_unit_vectors_in_the_order_of_the_texts() -> None:
    texts = [f"table number {n}" for n in range(7)] + [""]
    with StandInServer() as server:
        one = OpenAIEmbedder("m", server.url).embed_documents(texts)
        batched = OpenAIEmbedder("m", server.url, batch=3).embed_documents(texts)
        assert OpenAIEmbedder("m", server.url).embed_documents([]).shape[0] == 0
    np.testing.assert_allclose(np.linalg.norm(one, axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(one, batched)


@pytest.mark.parametrize(("model", "key", "setting"), [("m", "wrong", "OPENAI_API_KEY"), ("n", "k", "--model")])
def test_an_embedder_names_the_setting_to_change(model: str, key: str, setting: str) -> None:
    with StandInServer(models=("m",), key="k") as server, pytest.raises(ModelError, match=setting):
        OpenAIEmbedder(model, server.url, key).embed_documents(["a"])


WHOLE = {
    "choices": [
        {
            "finish_reason": "stop",
            "message": {"content": REPLY, "refusal": None, "reasoning_content": "", "tool_calls": [{"function": {}}]},
            "logprobs": {"content": [{"token": "{", "logprob": -0.1, "top_logprobs": [{"token": "x", "logprob": -3}]}]},
        }
    ],
    "usage": {"prompt_tokens": 300, "completion_tokens": 12, "prompt_tokens_details": {"cached_tokens": 3}},
    "error": {"message": "no", "code": "n"},
}


class Replying(OpenAIModel):
    """A model whose server gives one reply."""

    reply: Reply

    async def _post(self, *_: object) -> Reply:
        return self.reply


ODD: tuple[Any, ...] = (None, True, -1, 1e300, "", "x", [], {}, [None], {"a": 1}, "\ud800")


def odd_versions(value: Any) -> Iterator[Any]:
    """Yield JSON with one part after the other replaced by each odd value."""
    yield from ODD
    for place, part in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        for odd in odd_versions(part):
            changed = value.copy()
            changed[place] = odd
            yield changed


@pytest.mark.parametrize("status", [200, 400, 403, 429, 500])
def test_whatever_part_of_a_reply_is_odd_it_is_read_or_a_failed_call(status: int) -> None:
    asked = Prompt("p", "1", (Message("user", "hi"),), {"type": "object"}, verdict=True)

    async def ask() -> None:
        for content in odd_versions(WHOLE):
            model = Replying("m", "http://127.0.0.1:9/v1", "k")
            model.reply = Reply(status, json.dumps(content).encode(), {})
            with contextlib.suppress(ModelError):
                assert isinstance(await model.complete(asked), Completion)

    asyncio.run(ask())
