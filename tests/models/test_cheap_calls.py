"""What makes a call cheap: texts written once, replies kept together, sums added to in place; nothing else changes."""

from __future__ import annotations

import asyncio
import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from almanaq.models.budget import Budget
from almanaq.models.cached import CachedModel, CacheQueue, ReplyCache, request_key
from almanaq.models.http import JsonServer, Reply
from almanaq.models.openai import OpenAIModel
from almanaq.models.prompts import prompt_file
from almanaq.models.protocols import Message, Prompt, Usage
from almanaq.testing import ScriptedModel

TEXT = st.text(max_size=40)
SCHEMA = st.none() | st.dictionaries(st.text(max_size=5), st.lists(st.integers() | TEXT, max_size=3), max_size=3)
PROMPTS = st.builds(
    Prompt,
    TEXT,
    TEXT,
    st.lists(st.builds(Message, st.sampled_from(["system", "user"]), TEXT), max_size=3).map(tuple),
    SCHEMA,
    st.integers(1, 5000),
    st.sampled_from(["", "a", "aa11"]),
)


@given(TEXT, PROMPTS)
def test_keys_are_those_of_earlier_versions(model: str, prompt: Prompt) -> None:
    fence = prompt.fence
    contents = [(m.role, m.content.replace(fence, "") if fence else m.content) for m in prompt.messages]
    schema = None if prompt.schema is None else json.dumps(prompt.schema, sort_keys=True)
    identity = json.dumps([model, prompt.name, prompt.version, contents, schema, prompt.max_output_tokens])
    assert request_key(model, prompt) == hashlib.sha256(identity.encode()).digest()


@given(PROMPTS, st.text(min_size=1, max_size=9), st.sampled_from([None, "low"]))
def test_a_body_says_what_its_parts_say(prompt: Prompt, name: str, effort: str | None) -> None:
    bodies: list[bytes] = []

    async def post(server: JsonServer, path: str, content: bytes, read: object = None) -> Reply:
        bodies.append(content)
        return Reply(200, b'{"choices": [{"message": {"content": "fine"}}]}', {})

    expected: dict[str, object] = {
        "model": name,
        "messages": [{"role": m.role, "content": m.content} for m in prompt.messages],
        "max_completion_tokens": prompt.max_output_tokens,
        "temperature": 0,
    }
    if prompt.schema is not None:
        schema = {"name": prompt.name, "strict": True, "schema": prompt.schema}
        expected["response_format"] = {"type": "json_schema", "json_schema": schema}
    if effort is not None:
        expected["reasoning_effort"] = effort
    model = OpenAIModel(name, "http://127.0.0.1:9/v1", "k", reasoning_effort=effort)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JsonServer, "post", post)
        asyncio.run(model.complete(prompt))
    assert json.loads(bodies[0]) == expected


@given(st.lists(TEXT, min_size=1, max_size=3), TEXT, st.booleans(), st.sampled_from(["answer", "summarise"]))
def test_a_frame_gives_the_prompt_that_its_file_gives(
    passages: list[str], question: str, from_rows: bool, name: str
) -> None:
    asked = {"question": question, "from_rows": from_rows, "options": (), "compared": ("Ben's",), "form": ""}
    values = {**asked, "about": question, "yes_or_no": "", "served": "", "sentence": False, "part": 1, "parts": 2}
    file = prompt_file(name)
    schema = {"type": "object", "required": [name], "properties": {}}
    whole = file.prompt({**values, "passages": list(enumerate(passages, 1))}, schema=schema, token="f1")
    framed = file.frame(values, len(passages), schema).prompt(passages, token="f1")
    assert framed == whole
    assert request_key("m", framed) == request_key("m", whole)


def test_replies_that_come_together_are_kept_together(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path / "c.sqlite")
    commits: list[int] = []
    keep = cache.keep
    cache.keep = lambda replies, **kept: (commits.append(len(replies)), keep(replies, **kept))[1]  # type: ignore[assignment,method-assign]

    async def all_of() -> None:
        turns = CacheQueue(cache, "m")
        assert await asyncio.gather(*(turns.look(bytes([n])) for n in range(9))) == [True] * 9
        await asyncio.gather(*(turns.keep(bytes([n]), f"reply {n}") for n in range(9)))
        assert await turns.look(b"\x03") == "reply 3"

    asyncio.run(all_of())
    assert commits == [9]
    assert cache.stats().replies == 9
    cache.close()


def test_a_reply_is_kept_although_who_asked_is_cancelled(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path / "c.sqlite")

    async def cancelled() -> None:
        turns = CacheQueue(cache, "m")
        tasks = [turns.keep(bytes([n]), "paid for") for n in range(2)]
        tasks[0].cancel()
        with pytest.raises(asyncio.CancelledError):
            await tasks[0]
        await tasks[1]

    asyncio.run(cancelled())
    assert cache.get(b"\x00") == cache.get(b"\x01") == "paid for"
    cache.close()


def test_one_reply_that_cannot_be_kept_does_not_keep_others_out(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path / "c.sqlite")
    cache.keep([(b"a", "good"), (b"b", "half of a pair: \ud800"), (b"c", "good")])
    assert cache.stats().replies == 2
    assert [cache.get(key) for key in (b"a", b"b", b"c")] == ["good", "half of a pair: \ud800", "good"]
    cache.close()


def test_a_lease_is_taken_by_one_process_of_two(tmp_path: Path) -> None:
    one, other = (ReplyCache(tmp_path / "c.sqlite") for _ in range(2))
    assert one.look([b"a", b"b"]) == [True, True]
    assert other.look([b"a", b"c"]) == [False, True]
    one.keep([(b"a", "reply")])
    one.release(b"b")
    assert other.look([b"a", b"b", b"c"]) == ["reply", True, True]
    one.close()
    other.close()


def test_whoever_waits_for_the_same_request_may_be_cancelled(prompt: Prompt) -> None:
    model = CachedModel(ScriptedModel(["kept"], latency=0.03), ReplyCache())

    async def three() -> list[str]:
        leader, first, second = (asyncio.create_task(model.complete(prompt)) for _ in range(3))
        await asyncio.sleep(0.01)
        first.cancel()
        return [(await task).text for task in (leader, second)]

    assert asyncio.run(three()) == ["kept", "kept"]


def test_a_budget_holds_whatever_is_reserved() -> None:
    budget = Budget(calls=2)
    assert budget.reserve(Usage(1))
    assert budget.reserve(Usage(1))
    assert not budget.reserve(Usage(1))
    budget.settle(Usage(1), Usage())
    assert budget.reserve(Usage(1))
    assert budget.reserved.calls == 2
