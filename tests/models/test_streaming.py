"""Replies that are shown while they are written: each piece once, in order, without secrets, and the whole the same."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from almanaq.agent.prompting import StreamedReply, stream
from almanaq.errors import ModelCallError
from almanaq.models.budget import Budget, MeteredModel
from almanaq.models.cached import CachedModel, ReplyCache
from almanaq.models.openai import OpenAIModel
from almanaq.models.openai_replies import ChatStream, drop_reasoning
from almanaq.models.protocols import Message, Prompt
from almanaq.models.retrying import RetryingModel
from almanaq_bench.testing import Faults, StandInServer

PROMPT = Prompt("respond", "1", (Message("user", "Say it."),))
SAID = "The Rhine is 1,233 km long.\n\nIt flows  north."


def pieces_of(model: object, prompt: Prompt = PROMPT) -> list[str]:
    return list(stream(model, prompt))  # type: ignore[arg-type]


def test_a_reply_comes_in_pieces_that_together_are_the_whole() -> None:
    with StandInServer(lambda _: SAID) as server:
        model = OpenAIModel("m", server.url)
        pieces = pieces_of(model)
        whole = asyncio.run(model.complete(PROMPT))
        [streamed, plain] = server.ledger.requests
    assert len(pieces) > 5
    assert "".join(pieces) == whole.text == SAID
    assert streamed["stream"] is True
    assert "stream" not in plain


def test_the_first_piece_is_there_long_before_the_last() -> None:
    with StandInServer(lambda _: "word " * 20, pause=0.02) as server:
        started = time.monotonic()
        times = [time.monotonic() - started for _ in stream(OpenAIModel("m", server.url), PROMPT)]
    assert times[0] < times[-1] / 2


def test_what_a_stream_costs_is_counted_as_that_of_any_call() -> None:
    budget = Budget()
    with StandInServer(lambda _: SAID) as server:
        pieces_of(MeteredModel(OpenAIModel("m", server.url), budget))
        ledger = server.ledger
    assert (budget.usage.calls, budget.usage.input_tokens) == (1, ledger.input_tokens)
    assert budget.usage.output_tokens == ledger.output_tokens


@pytest.mark.parametrize("refuses", [("stream_options",), ("stream",), ("stream", "stream_options")])
def test_a_server_that_does_not_stream_is_asked_plainly(refuses: tuple[str, ...]) -> None:
    with StandInServer(lambda _: SAID, refuses=refuses) as server:
        assert "".join(pieces_of(RetryingModel(OpenAIModel("m", server.url)))) == SAID
    with StandInServer(lambda _: SAID, pause=None) as server:
        assert pieces_of(OpenAIModel("m", server.url)) == [SAID]


def test_a_stream_that_broke_off_goes_on_where_it_was() -> None:
    with StandInServer(lambda _: SAID, faults=Faults(["cut"])) as server:
        pieces = pieces_of(RetryingModel(OpenAIModel("m", server.url), base=0.001))
        assert server.ledger.calls == 2
    assert "".join(pieces) == SAID
    assert len(pieces) > 5


def test_a_second_reply_that_says_something_else_is_given_whole() -> None:
    said = iter(["One two three four", "Other words"])
    with StandInServer(lambda _: next(said), faults=Faults(["cut"])) as server:
        text = "".join(pieces_of(RetryingModel(OpenAIModel("m", server.url), base=0.001)))
    assert text.startswith("One two\n\n(")
    assert text.endswith("\n\nOther words")


def test_a_failure_is_raised_after_the_pieces_before_it() -> None:
    with StandInServer(lambda _: SAID, faults=Faults(["cut"] * 9)) as server:
        got = []
        with pytest.raises(ModelCallError):
            got += [piece for piece in stream(OpenAIModel("m", server.url), PROMPT) if not got.append(piece)]  # type: ignore[func-returns-value]
    assert SAID.startswith("".join(got))
    assert got


def test_a_consumer_that_stops_ends_the_call() -> None:
    with StandInServer(lambda _: "word " * 500, pause=0.02) as server:
        model = OpenAIModel("m", server.url)
        started = time.monotonic()
        pieces = stream(model, PROMPT)
        next(pieces)
        pieces.close()  # type: ignore[attr-defined]
        assert time.monotonic() - started < 5


def test_a_cached_reply_is_given_at_once() -> None:
    with StandInServer(lambda _: SAID, faults=Faults(latency=0.05)) as server:
        model = CachedModel(OpenAIModel("m", server.url), ReplyCache())
        assert "".join(pieces_of(model)) == SAID
        assert server.ledger.calls == 1
        assert pieces_of(model) == [SAID]
        assert server.ledger.calls == 1


KEY = "sk-123456789"


@given(st.lists(st.sampled_from(["sk-", "sk-12345", "6789", KEY, "s", "k", " and ", "6789 sk-1"]), max_size=12))
def test_no_secret_leaves_in_whatever_pieces_it_is_repeated(words: list[str]) -> None:
    got: list[str] = []
    reply = StreamedReply(got.append)
    chat = ChatStream(reply, (KEY,))
    for word in words:
        chat.feed(b'data: {"choices": [{"delta": {"content": "%s"}}]}\n\n' % word.encode())
    chat.feed(b"data: [DONE]\n\n")
    whole = str(chat.content()["choices"][0]["message"]["content"])
    reply.end(whole)
    assert KEY not in "".join(got)
    assert "".join(got) == whole.strip() == "".join(words).replace(KEY, "[key]").strip()


@pytest.mark.parametrize("size", [1, 3, 7, 100])
@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("<think>Are 3 < 4?</think>\n\nRex, and 2 < 3.", "Rex, and 2 < 3."),
        ("<think>Are there", ""),
        ("Rex.<|im_end|>", "Rex."),
        ("[1] Rex <3", "[1] Rex <3"),
    ],
)
def test_reasoning_is_never_shown(written: str, said: str, size: int) -> None:
    got: list[str] = []
    reply = StreamedReply(got.append)
    chat = ChatStream(reply, ())
    for start in range(0, len(written), size):
        piece = json.dumps({"choices": [{"delta": {"content": written[start : start + size]}}]})
        chat.feed(f"data: {piece}\n\n".encode())
    reply.end(drop_reasoning(written))
    assert "".join(got) == said


@given(st.binary(max_size=300), st.integers(1, 40))
def test_bytes_of_any_kind_leave_a_reply_or_none(body: bytes, size: int) -> None:
    chat = ChatStream(StreamedReply(lambda _: None), ())
    for start in range(0, len(body), size):
        chat.feed(b"data: " + body[start : start + size] + b"\n")
    content = chat.content()
    assert set(content) <= {"error", "usage", "choices"}


def test_the_sink_is_no_part_of_a_request() -> None:
    assert replace(PROMPT, pieces=StreamedReply(print)) == PROMPT
