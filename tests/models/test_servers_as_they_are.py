"""Servers as people run them: what they reply around, beside and instead of the reply, and how they refuse.

Each row of a table is one server's way, over HTTP. The query is the same: its rows, its warnings and its calls tell.
"""

from __future__ import annotations

import base64
import json
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import almanaq
from almanaq.errors import ModelError
from almanaq.models.openai import OpenAIEmbedder
from almanaq.suql.result import Result
from almanaq.testing import FunctionModel
from almanaq_bench.testing import StandInServer, replies_from
from almanaq_bench.testing.outcome import Outcome

Reply = tuple[int, Any] | tuple[int, Any, float]
Serve = Callable[[dict[str, Any], str], Reply]
STAYS = {
    "id": [1, 2, 3, 4, 5],
    "note": ["a calm room", "a loud street", "calm at night", "no word of it", "loud, but cheap"],
}
CALM, QUERY = [(1,), (3,)], "SELECT id FROM stays WHERE answer(note, 'is it calm?') = 'Yes' ORDER BY id"


def calm(text: str, question: str) -> str | None:
    return "Yes" if "calm" in text else "No" if "loud" in text else None


@contextmanager
def serving(serve: Serve, **paths: object) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Serve every call by a function of the request and the right reply; give the address and the requests.

    Args:
        paths: what is at other paths, their slashes written as double underscores.
    """
    asked: list[dict[str, Any]] = []

    def twist(path: str, request: Any, right: Outcome) -> Outcome:
        if path not in ("/v1/chat/completions", "/v1/embeddings"):
            found = paths.get(path.strip("/").replace("/", "__"))
            return right if found is None else Outcome.of(found)
        asked.append(request)
        content = json.loads(right.body)
        status, body, *wait = serve(
            request, content["choices"][0]["message"]["content"] if "choices" in content else ""
        )
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        return Outcome(status, body, wait=wait[0] if wait else 0.0)

    with StandInServer(replies_from(calm), twist=twist) as server:
        yield server.url, asked


def chat(content: object, *, finish: str = "stop", tokens: int = 90, **message: object) -> tuple[int, Any]:
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
    paths: Mapping[str, object] | None = None,
    **options: Any,
) -> tuple[Result, list[dict[str, Any]]]:
    with serving(serve, **(paths or {})) as (url, asked):
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
        '%s\n<think>or {"value": "No", "quotes": []}? No.</think>',
    ],
)
def test_the_last_object_after_the_reasoning_is_the_reply(monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    result, asked = run(monkeypatch, lambda _, right: chat(form.replace("%s", right)))
    assert (result.rows, len(asked), result.trace.unknown_calls) == (CALM, 5, 0)


OTHERWISE = '{"value": %s, "quotes": []}'


@pytest.mark.parametrize("other", ['"Yes"', '"No"', "null"])
@pytest.mark.parametrize("form", ["{other} No, wait: {right}", "{right} Or, seen otherwise: {other}"])
@pytest.mark.parametrize("batch", [1, 5])
def test_two_answers_that_contradict_each_other_are_none(
    monkeypatch: pytest.MonkeyPatch, other: str, form: str, batch: int
) -> None:
    def serve(request: dict[str, Any], right: str) -> Reply:
        if request["messages"][-1]["content"].startswith("That reply cannot be used"):
            return chat(right)
        reply = json.loads(right)
        odd = reply | dict.fromkeys([name for name in reply if name.startswith("item")], json.loads(OTHERWISE % other))
        odd = odd if "item1" in odd else json.loads(OTHERWISE % other)
        return chat(form.replace("{other}", json.dumps(odd)).replace("{right}", right))

    rows = {"id": [1, 2, 3], "note": ["calm", "loud", "no word"]}
    result, asked = run(monkeypatch, serve, rows=rows, batch=batch)
    assert (result.rows, result.trace.unknown_calls) == ([(1,)], 0)
    assert len(asked) > len(rows["id"]) - (batch > 1), "those that contradict are asked again"


def test_reasoning_that_never_ends_is_no_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelError, match="an empty reply"):
        run(monkeypatch, lambda _, right: chat(f"<think>perhaps {right}"), rows={"id": [1], "note": ["calm"]})


@pytest.mark.parametrize(
    "beside",
    [
        {"quotes": None},
        {"quotes": ["calm"]},
        {"quotes": [{"passage": "1", "quote": "calm"}]},
        *({"quotes": odd} for odd in ([None], [1], [{"text": "calm"}], [["calm"]], {"quote": 3}, 3, True)),
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
        lambda right: {"content": "", "tool_calls": [{"function": {"name": "reply", "arguments": json.loads(right)}}]},
        lambda right: {"content": None, "function_call": {"name": "reply", "arguments": right}},
        lambda right: {"content": json.loads(right)},
        lambda right: {"content": right, "finish": "length"},
    ],
)
def test_a_reply_in_another_place_is_read(monkeypatch: pytest.MonkeyPatch, message: Callable[[str], Any]) -> None:
    result, asked = run(monkeypatch, lambda _, right: chat(**message(right)))
    assert (result.rows, len(asked)) == (CALM, 5)


@pytest.mark.parametrize("status", [200, 201, 202, 203])
def test_every_status_that_says_so_is_success(monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    result, asked = run(monkeypatch, lambda _, right: (status, chat(right)[1]))
    assert (result.rows, len(asked)) == (CALM, 5)


@pytest.mark.parametrize(("other", "calls"), [('"Yes"', 5), ('"No"', 7)])
def test_a_key_twice_is_read_only_where_both_say_the_same(
    monkeypatch: pytest.MonkeyPatch, other: str, calls: int
) -> None:
    """Else it is asked again, as it may be either."""

    def serve(request: dict[str, Any], right: str) -> Reply:
        first = '"Yes"' in right and len(request["messages"]) == 2
        return chat(right[:-1] + f', "value": {other}}}' if first else right)

    result, asked = run(monkeypatch, serve)
    assert (result.rows, len(asked)) == (CALM, calls)


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
        lambda items: {f"item_{n}": item for n, item in items.items()},
        lambda items: list(items.values()),
    ],
)
def test_a_batch_whose_items_are_others_answers_none(monkeypatch: pytest.MonkeyPatch, renamed: Any) -> None:
    """Shifted by one, every answer would be another text's."""

    def serve(_: dict[str, Any], right: str) -> Reply:
        reply = json.loads(right)
        if "item1" in reply:
            reply = renamed({int(key.removeprefix("item")): item for key, item in reply.items()})
        return chat(json.dumps(reply))

    rows = {"id": list(range(80)), "note": [f"{'calm' if n % 3 else 'loud'} {n}" for n in range(80)]}
    result, asked = run(monkeypatch, serve, rows=rows, batch=4)
    assert result.rows == [(n,) for n in range(80) if n % 3]
    assert len(asked) <= 80 + 80 // 4 + 2 * 5, "after a few, no more are sent"
    assert "asked one by one" in " ".join(result.trace.warnings)


def test_a_batch_that_holds_an_item_twice_answers_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def serve(_: dict[str, Any], right: str) -> Reply:
        return chat(f'{right[:-1]}, "item1": {json.dumps(json.loads(right)["item2"])}}}' if "item2" in right else right)

    rows = {"id": list(range(8)), "note": [f"{'calm' if n % 2 else 'loud'} {n}" for n in range(8)]}
    result, _ = run(monkeypatch, serve, rows=rows, batch=4)
    assert (result.rows, result.trace.exact) == ([(n,) for n in range(8) if n % 2], True)


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
        "Invalid max_tokens value, the valid range of max_tokens is [1, 2048]",
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


@pytest.mark.parametrize("effort", [None, "low"])
def test_the_effort_of_reasoning_is_sent_until_it_is_refused(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, effort: str | None
) -> None:
    result, asked = run(monkeypatch, lambda _, right: chat(right), reasoning_effort=effort)
    assert {request.get("reasoning_effort") for request in asked} == {effort}

    def refuse(request: dict[str, Any], right: str) -> Reply:
        refused = "reasoning_effort" in request
        return (400, refusal("Unrecognized request argument supplied: reasoning_effort")) if refused else chat(right)

    with caplog.at_level("WARNING", "almanaq"):
        result, asked = run(monkeypatch, refuse, at_once=1, reasoning_effort=effort)
    assert (result.rows, len(asked)) == (CALM, 5 if effort is None else 6)
    assert ("--reasoning-effort has no effect" in caplog.text) == (effort is not None)


def test_a_reply_that_is_cut_gets_more_room_and_a_limit_that_is_not_named_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    long = json.dumps({"value": "Yes", "quotes": [], "note": "x" * 9_000})

    def serve(request: dict[str, Any], right: str, most: int = 10**6) -> Reply:
        given = min(request["max_completion_tokens"], most)
        status, reply = chat(long if given >= 3_000 else long[:99], finish="stop" if given >= 3_000 else "length")
        reply["usage"]["completion_tokens"] = given
        return status, reply

    one = {"id": [1], "note": ["calm"]}
    result, asked = run(monkeypatch, serve, rows=one)
    assert (result.rows, len(asked)) == ([(1,)], 3)
    with pytest.raises(ModelError, match="a reply cut short"):
        run(monkeypatch, lambda request, right: serve(request, right, 2_000), rows=one)


LISTED: dict[str, Any] = {"id": "any", "object": "model"}


@pytest.mark.parametrize(
    "paths",
    [
        {"v1__models": {"data": [{"id": "other", "max_model_len": 999_999}, LISTED | {"max_model_len": 3_000}]}},
        {"v1__models": {"data": [LISTED | {"context_length": 3_000}]}},
        {"v1__models": {"data": [{"id": "/models/any.gguf", "meta": {"n_ctx": 3_000, "n_ctx_train": 99_999}}]}},
        {"v1__models": {"data": [LISTED]}, "props": {"default_generation_settings": {"n_ctx": 3_000}}},
        {"v1__models": {"data": [LISTED]}, "api__ps": {"models": [{"name": "any", "context_length": 3_000}]}},
        {"api__show": {"parameters": "stop x\nnum_ctx 3000", "model_info": {"llama.context_length": 131_072}}},
        {"v1__models": {"data": "?"}, "props": [], "api__show": {"model_info": {"llama.context_length": 3_000}}},
    ],
)
def test_what_the_model_reads_at_once_is_asked_of_the_server(
    monkeypatch: pytest.MonkeyPatch, paths: dict[str, object]
) -> None:
    """A server that cuts what is longer without a word gives wrong answers; none is sent more than it reads."""
    sent: list[int] = []

    def serve(request: dict[str, Any], right: str) -> Reply:
        sent.append(sum(len(message["content"]) // 4 for message in request["messages"]))
        return chat(right)

    rows = {"id": [1, 2], "note": ["loud", "word " * 2_400 + "and it is calm"]}
    result, _ = run(monkeypatch, serve, rows=rows, paths=paths)
    assert result.rows == [(2,)]
    assert max(sent) < 3_000 - 1_024
    sent.clear()
    assert run(monkeypatch, serve, rows=rows, paths=paths, context_tokens=8_000)[0].rows == [(2,)]
    assert max(sent) > 3_000, "the setting comes before what the server says"
    sent.clear()
    assert run(monkeypatch, serve, rows=rows)[0].rows == [(2,)]
    assert max(sent) > 3_000, "without either it is the usual one"


def test_how_a_model_reasons_and_reads_is_not_dropped_where_the_model_is_opened_already() -> None:
    for option in ({"reasoning_effort": "low"}, {"context_tokens": 9_000}):
        with pytest.raises(almanaq.UsageError, match="opened already"):
            almanaq.connect(STAYS, model=FunctionModel(calm), **option)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, refusal("This model's maximum context length is 900 tokens. Your messages resulted in 1200 tokens.")),
        (400, refusal("the request exceeds the available context size, try increasing it")),
        (500, refusal("Context size has been exceeded.")),
        (400, [refusal("The input token count (1200) exceeds the maximum number of tokens allowed (900).")]),
        (422, {"error": "Input validation error: `inputs` must have less than 900 tokens. Given: 1200"}),
        (400, {"message": "prompt is too long: 1200 tokens > 900 maximum"}),
        (422, {"error": "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 9000 `inputs` tokens and 1024"}),
        (422, {"error": "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` tokens and 1024"}),
        (400, refusal("Please reduce the length of the messages or completion.")),
        (429, refusal("Request too large for any on tokens per min (TPM): Limit 30000, Requested 39000")),
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
        reply = (status, refusal("blocked")) if refused else chat(right)
        return *reply, 0.2 if refused == (slow == "the refused one") else 0.0

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


@pytest.mark.parametrize(
    "message",
    [
        "System role not supported",
        "Conversation roles must alternate user/assistant/user/assistant/...",
        "Only user and assistant roles are supported!",
        "Developer instruction is not enabled for models/gemma",
    ],
)
def test_instructions_go_to_the_user_where_there_is_no_system_role(
    monkeypatch: pytest.MonkeyPatch, message: str
) -> None:
    def serve(request: dict[str, Any], right: str) -> Reply:
        system = any(each["role"] == "system" for each in request["messages"])
        return (400, refusal(message)) if system else chat(right)

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
    assert (result.rows, result.trace.exact) == ([(None,)], False)
    assert "1 answer(s) could not be read" in " ".join(result.trace.warnings)


@pytest.mark.parametrize(
    "message",
    [
        "Invalid JSON payload received. Unknown name \"$defs\" at 'generation_config.response_schema'",
        "$ref is not supported in schema",
    ],
)
def test_a_schema_that_is_refused_in_parts_is_left_out(monkeypatch: pytest.MonkeyPatch, message: str) -> None:
    result, asked = run(
        monkeypatch,
        lambda request, right: (400, refusal(message)) if "response_format" in request else chat(right),
        at_once=1,
    )
    assert (result.rows, len(asked)) == (CALM, 6)


def test_a_limit_of_output_that_is_not_named_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def serve(request: dict[str, Any], right: str) -> Reply:
        most = request["max_completion_tokens"]
        return chat(right) if most <= 500 else (400, refusal("Invalid max_tokens value"))

    result, asked = run(monkeypatch, serve, at_once=1)
    assert (result.rows, len(asked)) == (CALM, 7)


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
        lambda texts: (200, {"data": [item | {"index": None} for item in embed(texts)[1]["data"]]}),
        lambda texts: (200, {"data": [item | {"index": str(item["index"])} for item in embed(texts)[1]["data"][::-1]]}),
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


def test_the_form_of_vectors_is_not_named_where_that_is_refused() -> None:
    def serve(request: dict[str, Any], _: str) -> Reply:
        named = "encoding_format" in request
        return (400, refusal("Unrecognized argument: encoding_format")) if named else embed(request["input"])

    with serving(serve) as (url, asked):
        embedder = OpenAIEmbedder("any", url, "k")
        assert embedder.embed_documents(["ab"]).shape == embedder.embed_documents(["cd"]).shape == (1, 8)
    assert len(asked) == 3


@pytest.mark.parametrize(("status", "message"), [(404, "no such path"), (501, "no --embeddings"), (401, "wrong key")])
def test_rows_are_tried_in_table_order_where_nothing_can_be_embedded(status: int, message: str) -> None:
    rows = {"id": list(range(40)), "note": [f"{'calm' if n % 4 == 3 else 'loud'} {n}" for n in range(40)]}
    query = "SELECT id FROM stays WHERE answer(note, 'is it calm?') = 'Yes' LIMIT 2"
    with serving(lambda *_: (status, refusal(message))) as (url, _):
        embedder = OpenAIEmbedder("any", url, "k", attempts=1)
        with almanaq.connect({"stays": rows}, model=FunctionModel(calm), embedder=embedder, cache=False) as con:
            result = con.sql(query)
            assert "tried in table order" in " ".join(result.trace.warnings)
            with pytest.raises(ModelError):
                con.sql("SELECT id FROM stays ORDER BY similarity(note, 'calm')")
            with pytest.raises(ModelError):
                con.sql(query, options=almanaq.Options(candidates=5))
    assert result.rows == [(3,), (7,)]


def test_a_text_too_long_to_embed_is_cut_and_said(caplog: pytest.LogCaptureFixture) -> None:
    texts = ["ab", "cd" * 3_000, "ef"]

    def serve(request: dict[str, Any], _: str) -> Reply:
        long = any(len(text) > 2_000 for text in request["input"])
        return (400, refusal("maximum input length is 512 tokens")) if long else embed(request["input"])

    with serving(serve) as (url, _), caplog.at_level("WARNING", "almanaq"):
        found = OpenAIEmbedder("any", url, "k").embed_documents(texts)
    assert found.shape == (3, 8)
    assert "its first 1500 were embedded" in caplog.text
