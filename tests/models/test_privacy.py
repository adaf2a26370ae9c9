"""What leaves: the debug log is off, without keys, and without texts unless asked; spans carry none."""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path

import pytest

from almanaq.errors import ModelCallError, SourceError
from almanaq.models.logged import DebugLog, redact_keys
from almanaq.models.model_names import ModelSettings, wrap_model
from almanaq.models.openai import OpenAIModel
from almanaq.models.protocols import Message, Prompt
from almanaq_bench.testing import Faults, StandInServer

KEY = "sk-very-secret-1234567890"
ROW = "Ada's diary"
PROMPT = Prompt("answer", "1", (Message("user", f"{ROW} and a password: {KEY}"),))


def run(tmp_path: Path, faults: Faults | None = None, **settings: object) -> str:
    log = tmp_path / "calls.jsonl"
    with StandInServer(lambda _: f"{ROW}, said", key=KEY, faults=faults) as server:
        model = OpenAIModel("m", server.url, KEY)
        chosen = ModelSettings(attempts=1, **settings)  # type: ignore[arg-type]
        with contextlib.suppress(ModelCallError):
            asyncio.run(wrap_model(model, chosen, cache=False).complete(PROMPT))
    return log.read_text() if log.exists() else ""


def test_nothing_is_logged_unless_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(tmp_path) == ""
    monkeypatch.setenv("ALMANAQ_DEBUG_LOG", str(tmp_path / "calls.jsonl"))
    assert json.loads(run(tmp_path))["prompt"] == "answer"


@pytest.mark.parametrize("fault", [None, "error", "empty", "malformed", "off_schema"])
def test_a_log_has_costs_but_neither_rows_nor_keys(tmp_path: Path, fault: str | None) -> None:
    text = run(tmp_path, Faults([fault]), debug_log=DebugLog(tmp_path / "calls.jsonl"))
    line = json.loads(text)
    assert (line["model"], line["calls"], line["error"]) == ("openai:m", 1, line["error"])
    assert bool(line["error"]) == (fault in ("error", "empty", "malformed"))
    assert ROW not in text
    assert KEY not in text


def test_texts_are_logged_when_asked_and_keys_never(tmp_path: Path) -> None:
    text = run(tmp_path, debug_log=DebugLog(tmp_path / "calls.jsonl", texts=True))
    assert text.count(ROW) == 2
    assert KEY not in text
    assert "[key]" in text


def test_what_looks_like_a_key_is_no_longer_there() -> None:
    assert redact_keys("Incorrect API key: sk-abcdef123456") == "Incorrect API key: sk-[key]"
    assert "hunter22" not in redact_keys("the key is hunter22", ("hunter22",))


def test_a_log_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="ALMANAQ_DEBUG_LOG"):
        run(tmp_path, debug_log=DebugLog(tmp_path / "no" / "such" / "folder.jsonl"))
