"""How likely each verdict is: read from log probabilities, kept in the cache, and used by a cheaper model's proxy."""

from __future__ import annotations

import asyncio
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from almanaq.models.cached import CachedModel, ReplyCache
from almanaq.models.openai import OpenAIModel
from almanaq.models.openai_replies import read_verdict_probabilities
from almanaq.models.prompted_reader import PromptedReader
from almanaq.models.protocols import TextCall
from almanaq.models.retrying import RetryingModel
from almanaq_bench.testing import StandInServer

CALL = TextCall("answer", ("A quiet room.",), "is it quiet?", compared=("Yes",))
WHOLE = {"Yes": '"Yes"', "No": '"No"', "null": "null"}


def reply_with(tokens: list[tuple[str, dict[str, float]]]) -> dict[str, Any]:
    told = [
        {
            "token": token,
            "logprob": math.log(others[token]),
            "top_logprobs": [{"token": t, "logprob": math.log(p)} for t, p in others.items() if p > 0],
        }
        for token, others in tokens
    ]
    return {"choices": [{"logprobs": {"content": told}}]}


@given(
    st.tuples(*[st.floats(0.01, 1)] * 3),
    st.sampled_from(list(WHOLE)),
    st.integers(1, 6),
    st.sampled_from(['{"value": ', '{"value":', '{ "value" : ', '```json\n{"value": ']),
)
def test_the_chances_are_those_that_the_tokens_were_drawn_with(
    raw: tuple[float, float, float], said: str, width: int, before: str
) -> None:
    """Whatever the tokenizer: here each token holds `width` characters of what is still open."""
    probabilities = {verdict: value / sum(raw) for verdict, value in zip(WHOLE, raw, strict=True)}
    texts = {verdict: before + whole + ', "quotes": []}' for verdict, whole in WHOLE.items()}
    tokens = []
    for start in range(0, len(texts[said]), width):
        written = texts[said][:start]
        open_ = {verdict: probabilities[verdict] for verdict, text in texts.items() if text.startswith(written)}
        others: dict[str, float] = {}
        for verdict, chance in open_.items():
            token = texts[verdict][start : start + width]
            others[token] = others.get(token, 0.0) + chance / sum(open_.values())
        tokens.append((texts[said][start : start + width], others))
    found = read_verdict_probabilities(reply_with(tokens)) or {}
    # A quotation mark that was not written does not tell what word would have followed it.
    told = ["null"] if said == "null" else list(WHOLE)
    assert {verdict: found[verdict] for verdict in told} == pytest.approx({v: probabilities[v] for v in told})
    assert sum(found.values()) == pytest.approx(1)


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"choices": []},
        {"choices": [{"logprobs": None}]},
        {"choices": [{"logprobs": {"content": [{"token": 1}]}}]},
        {"choices": [{"logprobs": {"content": [{"token": "x", "logprob": "nan"}]}}]},
        reply_with([('{"value": ', {'{"value": ': 1.0}), ("maybe", {"maybe": 0.9, "null": 0.1})]),
    ],
)
def test_what_tells_no_chances_is_no_failure(content: dict[str, Any]) -> None:
    assert read_verdict_probabilities(content) is None


def test_a_reader_that_asks_gets_them_and_the_cache_keeps_them() -> None:
    told = {"Yes": 0.6, "No": 0.3, "null": 0.1}
    yes = json.dumps({"value": "Yes", "quotes": []})
    with StandInServer(lambda _: yes, probabilities=lambda _: told) as server:
        model = CachedModel(OpenAIModel("m", server.url), ReplyCache())
        reader = PromptedReader(model, probabilities=True)
        first, again = (asyncio.run(reader.read(CALL)) for _ in range(2))
        plain = asyncio.run(PromptedReader(model).read(CALL))
        asked = [request.get("top_logprobs") for request in server.ledger.requests]
    assert first.probabilities == again.probabilities == pytest.approx({"Yes": 0.6})
    assert (first.value, again.usage.cached_calls, dict(plain.probabilities)) == ("Yes", 1, {})
    assert asked == [20, None]


def test_a_server_that_refuses_or_tells_nothing_is_asked_all_the_same() -> None:
    yes = json.dumps({"value": "Yes", "quotes": []})
    for refuses in [("logprobs",), ("top_logprobs",), ()]:
        with StandInServer(lambda _: yes, refuses=refuses) as server:
            reply = asyncio.run(
                PromptedReader(RetryingModel(OpenAIModel("m", server.url)), probabilities=True).read(CALL)
            )
        assert (reply.value, dict(reply.probabilities)) == ("Yes", {})
