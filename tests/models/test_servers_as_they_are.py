"""Servers as people run them: what they reply around, beside and instead of the reply, and how they refuse.

Each row of a table is one server's way, over HTTP. The query is the same: its rows, its warnings and its calls tell.
"""

from __future__ import annotations

import base64
import json
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

import almanaq
from almanaq.errors import ModelError
from almanaq.models.openai import OpenAIEmbedder
from almanaq.suql.result import Result
from almanaq.testing import replies_from

Reply = tuple[int, Any]
Serve = Callable[[dict[str, Any], str], Reply]
STAYS = {
    "id": [1, 2, 3, 4, 5],
    "note": ["a calm room", "a loud street", "calm at night", "no word of it", "loud, but cheap"],
}
CALM, QUERY = [(1,), (3,)], "SELECT id FROM stays WHERE answer(note, 'is it calm?') = 'Yes' ORDER BY id"


def calm(text: str, question: str) -> str | None:
    return "Yes" if "calm" in text else "No" if "loud" in text else None


@contextmanager
def serving(serve: Serve) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Serve every POST by a function of the request and the right reply; give the address and the requests."""
    right, asked = replies_from(calm), []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            asked.append(request)
            status, content = serve(request, str(right(request)) if "messages" in request else "")
            body = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", asked
    finally:
        server.shutdown()
        server.server_close()


def chat(content: object, *, finish: str = "stop", tokens: int = 90, **message: object) -> Reply:
    said = {"role": "assistant", "content": content, **message}
    usage = {"prompt_tokens": tokens, "completion_tokens": 9}
    return 200, {"choices": [{"message": said, "finish_reason": finish}], "usage": usage}


def refusal(message: str, **more: object) -> dict[str, object]:
    return {"error": {"message": message, **more}}


def run(
    monkeypatch: pytest.MonkeyPatch,
    serve: Serve,
    query: str = QUERY,
    rows: dict[str, list[Any]] = STAYS,
    *,
    at_once: int = 32,
    **options: Any,
) -> tuple[Result, list[dict[str, Any]]]:
    with serving(serve) as (url, asked):
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-some-key")
        options = {"model": "openai:any", "concurrency": at_once, "cache": False, "batch": 1} | options
        with almanaq.connect({"stays": rows}, **options) as connection:
            return connection.sql(query), asked


@pytest.mark.parametrize(
    "form",
    [
        "Of course: %s",
        "```json\n%s\n```\nShall I go on?",
        '{"value": "No", "quotes": []} was my first thought.</think>%s',
        "<thinking>is it calm?</thinking>\n%s",
        "[THINK]well[/THINK]%s",
        "<|channel|>analysis<|message|>calm?<|end|><|start|>assistant<|channel|>final<|message|>%s<|return|>",
        "%s<|im_end|>",
        "%s</s>",
        "\ufeff%s",
        "%s}",
        '{"note": "a draft"} %s',
    ],
)
def test_the_last_object_after_the_reasoning_is_the_reply(monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    result, asked = run(monkeypatch, lambda _, right: chat(form.replace("%s", right)))
    assert (result.rows, len(asked), result.trace.unknown_calls) == (CALM, 5, 0)


def test_reasoning_that_never_ends_is_no_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelError, match="an empty reply"):
        run(monkeypatch, lambda _, right: chat(f"<think>perhaps {right}"), rows={"id": [1], "note": ["calm"]})


@pytest.mark.parametrize(
    "beside",
    [
        {"quotes": None},
        {"quotes": ["calm"]},
        {"quotes": [{"passage": "1", "quote": "calm"}]},
        {"confidence": 0.9, "reason": "it says so"},
    ],
)
def test_small_slips_of_form_lose_no_answer(monkeypatch: pytest.MonkeyPatch, beside: dict[str, object]) -> None:
    result, asked = run(monkeypatch, lambda _, right: chat(json.dumps(json.loads(right) | beside)))
    assert (result.rows, len(asked)) == (CALM, 5)
    result, asked = run(monkeypatch, lambda _, right: chat(right.replace('"Yes"', '"yes."').replace('"No"', '"No!"')))
    assert (result.rows, len(asked)) == (CALM, 5)


@pytest.mark.parametrize(
    "message",
    [
        lambda right: {"content": [{"type": "text", "text": right}]},
        lambda right: {"content": None, "reasoning_content": right},
        lambda right: {"content": "", "reasoning": right},
        lambda right: {"content": None, "tool_calls": [{"function": {"name": "reply", "arguments": right}}]},
    ],
)
def test_a_reply_in_another_place_is_read(monkeypatch: pytest.MonkeyPatch, message: Callable[[str], Any]) -> None:
    result, asked = run(monkeypatch, lambda _, right: chat(**message(right)))
    assert (result.rows, len(asked)) == (CALM, 5)


def test_events_that_nobody_asked_for_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def serve(_: dict[str, Any], right: str) -> Reply:
        events = [{"choices": [{"delta": {"content": right}}]}, {"choices": [{"delta": {}, "finish_reason": "stop"}]}]
        return 200, b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events) + b"data: [DONE]"

    assert run(monkeypatch, serve)[0].rows == CALM


@pytest.mark.parametrize(
    "renamed",
    [
        lambda items: {f"item{n - 1}": item for n, item in items.items()},
        lambda items: {f"item{n + 1}": item for n, item in items.items()},
        lambda items: {f"item{n}": item for n, item in items.items() if n > 1},
        lambda items: {**{f"item{n}": item for n, item in items.items()}, "item9": items[1]},
    ],
)
def test_a_batch_whose_items_are_others_answers_none(monkeypatch: pytest.MonkeyPatch, renamed: Any) -> None:
    """Shifted by one, every answer would be another text's."""

    def serve(_: dict[str, Any], right: str) -> Reply:
        reply = json.loads(right)
        if "item1" in reply:
            reply = renamed({int(key.removeprefix("item")): item for key, item in reply.items()})
        return chat(json.dumps(reply))

    rows = {"id": list(range(8)), "note": [f"{'calm' if n % 3 else 'loud'} {n}" for n in range(8)]}
    result, _ = run(monkeypatch, serve, rows=rows, batch=4)
    assert result.rows == [(n,) for n in range(8) if n % 3]


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content", ""])
def test_a_model_that_spends_its_limit_on_reasoning_gets_more_room(monkeypatch: pytest.MonkeyPatch, field: str) -> None:
    def serve(request: dict[str, Any], right: str) -> Reply:
        if request["max_completion_tokens"] > 12_000:
            return chat(right, **({field: "hm"} if field else {}))
        return chat("", finish="length", **{field: "hm"}) if field else chat("<think>hm", finish="length")

    result, asked = run(monkeypatch, serve, at_once=1)
    assert result.rows == CALM
    assert len(asked) == 7, "twice it was given more; then it kept that"


@pytest.mark.parametrize(
    "message",
    [
        "max_completion_tokens is too large: {n}. This model supports at most 2048 completion tokens.",
        "max_tokens must be less than or equal to 2,048",
        "This model's maximum context length is 2348 tokens. However, you requested 2548 tokens (300 in the messages, "
        "{n} in the completion).",
    ],
)
def test_the_most_output_of_a_model_is_learned(monkeypatch: pytest.MonkeyPatch, message: str) -> None:
    def serve(request: dict[str, Any], right: str) -> Reply:
        most = request["max_completion_tokens"]
        status, reply = chat(right)
        reply["usage"]["completion_tokens_details"] = {"reasoning_tokens": 8}  # from now on it is given more room
        return (status, reply) if most <= 2048 else (400, refusal(message.replace("{n}", str(most))))

    result, asked = run(monkeypatch, serve, at_once=1)
    assert (result.rows, len(asked)) == (CALM, 6)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, refusal("This model's maximum context length is 900 tokens. Your messages resulted in 1200 tokens.")),
        (400, refusal("the request exceeds the available context size, try increasing it")),
        (500, refusal("Context size has been exceeded.")),
        (400, [refusal("The input token count (1200) exceeds the maximum number of tokens allowed (900).")]),
        (422, {"error": "Input validation error: `inputs` must have less than 900 tokens. Given: 1200"}),
        (400, {"message": "prompt is too long: 1200 tokens > 900 maximum"}),
        (413, b"<html>Payload Too Large</html>"),
    ],
)
def test_a_text_that_is_too_long_is_read_in_parts(monkeypatch: pytest.MonkeyPatch, status: int, body: object) -> None:
    def serve(request: dict[str, Any], right: str) -> Reply:
        long = sum(len(message["content"]) for message in request["messages"]) > 6_000
        return (status, body) if long else chat(right)

    rows = {"id": [1, 2], "note": ["loud", "word " * 2_400 + "and it is calm"]}
    result, _ = run(monkeypatch, serve, rows=rows)
    assert result.rows == [(2,)]
    assert "read in parts" in " ".join(result.trace.warnings)


def test_a_prompt_that_the_server_cut_without_a_word_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def serve(request: dict[str, Any], right: str) -> Reply:
        words = sum(len(message["content"].split()) for message in request["messages"])
        return chat(right if words <= 1_024 else '{"value": "No", "quotes": []}', tokens=min(1_024, words))

    rows = {"id": [1], "note": ["word " * 4_000 + "and it is calm"]}
    result, _ = run(monkeypatch, serve, rows=rows)
    assert result.rows == [(1,)]
    assert "num_ctx" in " ".join(result.trace.warnings)


@pytest.mark.parametrize("status", [400, 402, 403, 404, 422])
@pytest.mark.parametrize("slow", ["the refused one", "the others"])
def test_one_refused_text_is_unknown_in_whatever_order_replies_come(
    monkeypatch: pytest.MonkeyPatch, status: int, slow: str
) -> None:
    def serve(request: dict[str, Any], right: str) -> Reply:
        refused = "no word" in json.dumps(request["messages"])
        if refused == (slow == "the refused one"):
            time.sleep(0.2)
        return (status, refusal("blocked")) if refused else chat(right)

    result, _ = run(monkeypatch, serve)
    assert (result.rows, result.trace.unknown_calls, result.trace.exact) == (CALM, 1, False)


@pytest.mark.parametrize(("status", "setting"), [(403, "OPENAI_API_KEY"), (404, "OPENAI_BASE_URL"), (400, "--model")])
@pytest.mark.parametrize("at_once", [1, 32])
def test_where_no_text_is_answered_the_setting_is_named(
    monkeypatch: pytest.MonkeyPatch, status: int, setting: str, at_once: int
) -> None:
    asked: list[object] = []

    def serve(request: dict[str, Any], _: str) -> Reply:
        asked.append(request)
        return status, refusal("no")

    with pytest.raises(ModelError, match=setting):
        run(monkeypatch, serve, at_once=at_once)
    assert at_once > 1 or len(asked) == 2, "one other text decides"


@pytest.mark.parametrize(
    "body",
    [
        refusal("Rate limit reached. Please try again in 120ms. Visit our site."),
        [{"error": {"message": "slow down", "details": [{"retryDelay": "0.1s"}]}}],
        refusal("Please retry in 0.15s."),
    ],
)
def test_a_wait_that_the_body_names_is_kept(monkeypatch: pytest.MonkeyPatch, body: object) -> None:
    began = time.monotonic()

    def serve(_: dict[str, Any], right: str) -> Reply:
        return (429, body) if time.monotonic() - began < 0.1 else chat(right)

    began = time.monotonic()
    assert run(monkeypatch, serve)[0].rows == CALM
    assert time.monotonic() - began < 4, "without the named wait, 429 waits for longer"


def test_instructions_go_to_the_user_where_there_is_no_system_role(monkeypatch: pytest.MonkeyPatch) -> None:
    def serve(request: dict[str, Any], right: str) -> Reply:
        system = any(message["role"] == "system" for message in request["messages"])
        return (400, refusal("System role not supported")) if system else chat(right)

    result, asked = run(monkeypatch, serve, at_once=1)
    assert (result.rows, len(asked)) == (CALM, 6)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT answer(note, 'mood?', ARRAY['glad', 'sad']) FROM stays", "so-so"),
        ("SELECT answer(note, 'how many?')::int FROM stays", "a few"),
        ("SELECT answer(note, 'when?')::date FROM stays", "soon"),
    ],
)
def test_what_cannot_be_read_is_null_counted_and_warned_of(
    monkeypatch: pytest.MonkeyPatch, query: str, said: str
) -> None:
    reply = json.dumps({"value": said, "quotes": []})
    result, _ = run(monkeypatch, lambda *_: chat(reply), query, {"id": [1], "note": ["calm"]})
    assert result.rows == [(None,)]
    assert "1 answer(s) could not be read" in " ".join(result.trace.warnings)


def vector(text: str) -> list[float]:
    return [1.0 + text.count(letter) for letter in "abcdefgh"]


def embed(texts: list[str], **form: bool) -> Reply:
    items: list[dict[str, object]] = [{"embedding": vector(text), "index": n} for n, text in enumerate(texts)]
    for item, text in zip(items, texts, strict=True):
        if form.get("base64"):
            item["embedding"] = base64.b64encode(struct.pack("<8f", *vector(text))).decode()
        if form.get("unnumbered"):
            del item["index"]
    return 200, {"data": items}


@pytest.mark.parametrize(
    "serve",
    [
        lambda texts: (422, {"error": "batch size > maximum allowed batch size 9"}) if len(texts) > 9 else embed(texts),
        lambda texts: (400, refusal("it should not be larger than 10.")) if len(texts) > 10 else embed(texts),
        lambda texts: (413, b"too much") if len(texts) > 5 else embed(texts),
        lambda texts: embed(texts, unnumbered=True),
        lambda texts: embed(texts, base64=True),
    ],
)
def test_every_text_gets_its_vector(serve: Callable[[list[str]], Reply]) -> None:
    texts = ["abc" * n + "h" for n in range(1, 40)]
    with serving(lambda request, _: serve(request["input"])) as (url, asked):
        found = OpenAIEmbedder("any", url, "k").embed_documents(texts)
    right = np.array([vector(text) for text in texts])
    np.testing.assert_allclose(found, right / np.linalg.norm(right, axis=1, keepdims=True), atol=1e-6)
    assert len(asked) < 20, "what it refused is not sent again"


def test_a_text_too_long_to_embed_is_cut_and_said(caplog: pytest.LogCaptureFixture) -> None:
    texts = ["ab", "cd" * 3_000, "ef"]

    def serve(request: dict[str, Any], _: str) -> Reply:
        long = any(len(text) > 2_000 for text in request["input"])
        return (400, refusal("maximum input length is 512 tokens")) if long else embed(request["input"])

    with serving(serve) as (url, _), caplog.at_level("WARNING", "almanaq"):
        found = OpenAIEmbedder("any", url, "k").embed_documents(texts)
    assert found.shape == (3, 8)
    assert "its first 1500 were embedded" in caplog.text
