"""Records of prompts and replies: whole runs and turns again without a model, and what is not in them told."""

from __future__ import annotations

import asyncio
import json
import stat
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from small_hybrid import write_hybrid
from small_restaurants import write_restaurants

import almanaq
from almanaq.errors import ModelCallError, ModelError, SourceError
from almanaq.models.embedders.base import LexicalEmbedder
from almanaq.models.protocols import Completion, LanguageModel, Message, Prompt, Usage
from almanaq.testing import ScriptedModel
from almanaq_bench.config import RunRequest
from almanaq_bench.generation.replies import read_replies
from almanaq_bench.replay import RecordingModel, ReplayingModel
from almanaq_bench.runner import run
from almanaq_bench.testing import replies_from

CANDLES = "answer(reviews, 'are there candles?') = 'Yes'"


def prompt(text: str, fence: str = "f" * 16, name: str = "answer") -> Prompt:
    return Prompt(name, "1", (Message("system", "Read."), Message("user", f"<{fence}> {text}")), fence=fence)


def ask(model: LanguageModel, *texts: str) -> list[str]:
    return [asyncio.run(model.complete(prompt(text, f"{n:016}"))).text for n, text in enumerate(texts)]


class Truthful:
    """A language model in one function: it writes queries over the small data sets, and reads texts."""

    name, persistent = "truthful", False

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self._read = replies_from(self.read)

    @staticmethod
    def read(text: str, question: str) -> str | None:
        if "trained" in question:
            return "Liv Dahl" if "Liv Dahl" in text else None
        return "Yes" if "Candles" in text else "No"

    async def complete(self, prompt: Prompt) -> Completion:
        self.calls[prompt.name] += 1
        await asyncio.sleep(0.002 * (self.calls.total() % 3))
        messages = [{"role": m.role, "content": m.content} for m in prompt.messages]
        said = self.reply(prompt.name, messages)
        text = said if isinstance(said, str) else json.dumps(said)
        return Completion(text, Usage(1, 0, sum(len(m["content"]) for m in messages) // 4, len(text) // 4))

    def reply(self, name: str, messages: list[dict[str, str]]) -> Mapping[str, object] | str:
        user = messages[1]["content"]
        if name == "write":
            value = '"Time"' if "time of" in user else "answer(\"Athlete_Info\", 'who trained this person?')"
            return {"reasoning": "", "suql": f'SELECT {value} FROM race_0 WHERE "Rank" < 3 LIMIT 1'}
        if name == "parse":
            suql = None if "Hi!" in user else f"SELECT name, price FROM restaurants WHERE {CANDLES} LIMIT 2"
            return {"reasoning": "", "suql": suql, "needs_data": suql is not None, "clarify": None}
        if name == "short_answer":
            return {"answer": "2:14.10"}
        if name in ("respond", "chat"):
            return "Here you are."
        schema: Any = {"response_format": {"json_schema": {"name": name}}, "messages": messages}
        return self._read(schema)


@pytest.mark.parametrize("task", ["hybrid-qa", "restaurants"])
def test_a_whole_run_is_reproduced_without_a_model(task: str, tmp_path: Path) -> None:
    folder = tmp_path / ("small" if task == "hybrid-qa" else "places")
    split = "test" if task == "hybrid-qa" else "conversations"
    (write_hybrid if task == "hybrid-qa" else write_restaurants)(folder)
    where = (task, folder.name, tmp_path, split, "oracle")
    model = Truthful()
    with RecordingModel(model, tmp_path / "record.jsonl") as recording:
        first = RunRequest(
            *where, tmp_path / "first", LexicalEmbedder, generator="openai:any", model=lambda _: recording
        )
        was = run(first)
    made = model.calls.total()
    assert made > 1
    replaying = ReplayingModel(tmp_path / "record.jsonl")
    assert replaying.name == "truthful"
    again = RunRequest(*where, tmp_path / "again", LexicalEmbedder, generator="openai:any", model=lambda _: replaying)
    now = run(again)
    assert model.calls.total() == made
    assert now.metrics == was.metrics
    assert list(read_replies(tmp_path / "again" / "replies.jsonl")) == list(
        read_replies(tmp_path / "first" / "replies.jsonl")
    )


def test_a_turn_is_reproduced_with_its_evidence_and_counts_by_name(tmp_path: Path) -> None:
    source, file = str(write_restaurants(tmp_path / "places") / "restaurants.parquet"), tmp_path / "record.jsonl"
    schema = str(tmp_path / "places" / "restaurants.parquet.almanaq.toml")
    with RecordingModel(Truthful(), file) as recording, almanaq.connect(source, model=recording, schema=schema) as one:
        was = one.ask("with candles?")
    with almanaq.connect(source, model=f"replay:{file}", schema=schema) as connection:
        now = connection.ask("with candles?")
        assert (now.rows, now.evidence, now.answer, now.suql) == (was.rows, was.evidence, was.answer, was.suql)
        assert now.trace is not None
        assert was.trace is not None
        assert (now.trace.physical_calls, now.trace.text_calls) == (was.trace.physical_calls, was.trace.text_calls)
        other = connection.ask("with a view?")
    assert other.status == "failed"
    assert "holds no reply to this prompt 'parse'; the nearest recorded one is a 'parse' that goes on" in other.answer
    assert "with candles?" in other.answer
    assert "with a view?" in other.answer


def test_the_random_code_of_a_prompt_is_no_part_of_it_and_repeated_prompts_get_their_replies_in_turn(
    tmp_path: Path,
) -> None:
    with RecordingModel(ScriptedModel(["one", "two", "other"]), tmp_path / "r") as recording:
        assert ask(recording, "same", "same", "else") == ["one", "two", "other"]
    assert ask(ReplayingModel(tmp_path / "r"), "else", "same", "same", "same") == ["other", "one", "two", "two"]
    assert stat.S_IMODE((tmp_path / "r").stat().st_mode) == 0o600


def test_an_unseen_prompt_shows_the_nearest_of_its_kind(tmp_path: Path) -> None:
    with RecordingModel(ScriptedModel(["one", "two"]), tmp_path / "r") as recording:
        ask(recording, "are the desserts any good", "is it easy to park")
    with pytest.raises(
        ModelError, match=r"nearest recorded one is a 'answer' that goes on .*easy to park.*hard to park"
    ):
        ask(ReplayingModel(tmp_path / "r"), "is it hard to park")


def test_failures_are_replayed_and_files_of_another_form_refused(tmp_path: Path) -> None:
    with (
        RecordingModel(ScriptedModel([ModelCallError("overloaded")]), tmp_path / "r") as recording,
        pytest.raises(ModelCallError),
    ):
        ask(recording, "x")
    with pytest.raises(ModelCallError, match="overloaded"):
        ask(ReplayingModel(tmp_path / "r"), "x")
    for text in (
        "",
        "{}",
        '{"format": "other", "model": "m"}\n',
        '{"format": "almanaq-prompts-1", "model": "m"}\n{"x": 1}',
    ):
        (tmp_path / "bad").write_text(text)
        with pytest.raises(SourceError, match="not a record of prompts that can be replayed"):
            ReplayingModel(tmp_path / "bad")
    with pytest.raises(SourceError, match="cannot be read"):
        ReplayingModel(tmp_path / "none")
    with pytest.raises(SourceError, match="cannot be written"):
        RecordingModel(ScriptedModel([]), tmp_path / "none" / "r")
    empty = tmp_path / "empty"
    RecordingModel(ScriptedModel([]), empty).close()
    with pytest.raises(ModelError, match="holds no prompts"):
        ask(ReplayingModel(empty), "x")
