"""Settings, servers and files that are at fault: each ends in a message that names what to change."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from almanaq.errors import BudgetExceeded, ModelCallError, ModelError, SourceError
from almanaq.models.budget import Budget
from almanaq.models.cached import ReplyCache
from almanaq.models.http import JsonServer
from almanaq.models.model_names import ModelSettings, open_models, wrap_model
from almanaq.models.openai import OpenAIEmbedder, OpenAIModel
from almanaq.models.prompted_reader import PromptedReader
from almanaq.models.protocols import Price, Prompt, TextCall
from almanaq.models.retrying import raise_public_errors
from almanaq_bench.testing import Faults, StandInServer, replies_from
from almanaq_bench.testing.outcome import Outcome

CALL = TextCall("answer", ("Candles everywhere.",), "is it romantic?", compared=("Yes",))


@contextmanager
def other_server(status: int, body: bytes, kind: str = "application/json") -> Iterator[str]:
    """Serve the same reply to every request, as something that is no server of the protocol would."""
    with StandInServer(twist=lambda *_: Outcome(status, body, {"content-type": kind})) as server:
        yield server.url


@pytest.mark.parametrize(
    ("status", "body", "setting"),
    [
        (200, b"<html>Welcome to nginx</html>", "OPENAI_BASE_URL"),
        (200, b'{"response": "Yes", "done": true}', "OPENAI_BASE_URL"),
        (200, b'["Yes"]', "OPENAI_BASE_URL"),
        (404, b"404 page not found", "OPENAI_BASE_URL"),
        (405, b"", "OPENAI_BASE_URL"),
        (422, b'{"detail": [{"loc": ["body", "prompt"], "msg": "field required"}]}', "OPENAI_BASE_URL"),
        (400, b'{"error": {"message": "The model `m` does not exist", "code": "model_not_found"}}', "--model"),
        (401, b'{"error": {"message": "Incorrect API key provided: sk-abcdefghijkl"}}', "OPENAI_API_KEY"),
        (403, b"forbidden", "OPENAI_API_KEY"),
        (429, b'{"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}}', "OPENAI_API_KEY"),
    ],
)
def test_a_server_of_another_dialect_or_mind(prompt: Prompt, status: int, body: bytes, setting: str) -> None:
    with other_server(status, body) as url:
        model = wrap_model(OpenAIModel("m", url, "k"), ModelSettings(), cache=False)
        with pytest.raises(ModelError, match=setting) as caught, raise_public_errors():
            asyncio.run(model.complete(prompt))
    assert not isinstance(caught.value, ModelCallError)
    assert "sk-abcdefghijkl" not in str(caught.value)


@pytest.mark.parametrize("refused", [("response_format",), ("temperature", "response_format", "max_completion_tokens")])
def test_a_schema_that_is_refused_is_left_out_and_read_strictly_all_the_same(refused: tuple[str, ...]) -> None:
    with StandInServer(replies_from(lambda *_: "Yes"), refuses=refused, faults=Faults(["not_json"])) as server:
        models = open_models("openai:m", settings=ModelSettings(server.url, "k"), cache=False, embedder="lexical")
        reply = asyncio.run(models.reader.read(CALL))
    assert reply.verdicts == {"Yes": True}
    assert reply.usage.calls == server.ledger.calls == len(refused) + 2


@pytest.mark.parametrize("key", ["two\nlines", "clé"])
def test_a_key_that_cannot_be_one(key: str) -> None:
    with pytest.raises(ModelError, match="OPENAI_API_KEY"):
        OpenAIModel("m", "http://127.0.0.1:9", key)


@pytest.mark.parametrize("url", ["localhost:8000", "http://", "ftp://host/v1"])
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(ModelError, match="OPENAI_BASE_URL"):
        OpenAIModel("m", url, "k")


def test_the_query_of_an_address_is_kept_and_azure_gets_its_header(
    prompt: Prompt, monkeypatch: pytest.MonkeyPatch
) -> None:
    with StandInServer(lambda _: "fine", key="k") as server:
        model = OpenAIModel("m", server.url + "/?api-version=2026-01-01", "k")
        assert asyncio.run(model.complete(prompt)).text == "fine"
    sent: list[object] = []
    monkeypatch.setattr(JsonServer, "__init__", lambda self, address, headers, **_: sent.append(headers))
    OpenAIModel("m", "https://x.openai.azure.com/openai/v1", "k")
    assert sent == [{"api-key": "k"}]


def test_an_embedder_behind_another_dialect() -> None:
    with other_server(200, b"<html>") as url, pytest.raises(ModelError, match="OPENAI_BASE_URL"):
        OpenAIEmbedder("m", url, "k").embed_documents(["a"])


@pytest.mark.parametrize("budget", [{"calls": 0}, {"tokens": 0}, {"money": 0.0}])
def test_a_budget_of_zero_makes_no_call(prompt: Prompt, budget: dict[str, int]) -> None:
    limit = Budget(**budget, setting="ModelSettings.budget")  # type: ignore[arg-type]
    chosen = ModelSettings(budget=limit, price=Price(1.0, 1.0))
    with StandInServer() as server, pytest.raises(BudgetExceeded, match=r"raise ModelSettings\.budget"):
        asyncio.run(wrap_model(OpenAIModel("m", server.url, "k"), chosen, cache=False).complete(prompt))
    assert server.ledger.calls == 0


def test_a_damaged_page_in_the_cache_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "c.sqlite"
    cache = ReplyCache(file)
    for n in range(400):
        cache.keep([(n.to_bytes(32, "big"), "text " * 40)], model="m")
    cache.close()
    content = bytearray(file.read_bytes())
    content[4096 : len(content)] = b"\xff" * (len(content) - 4096)
    file.write_bytes(content)
    damaged = ReplyCache(file)
    with pytest.raises(SourceError, match=r"c\.sqlite.*ALMANAQ_CACHE"):
        damaged.get((7).to_bytes(32, "big"))
    damaged.close()


def test_a_cache_that_can_only_be_read_still_serves(tmp_path: Path, prompt: Prompt) -> None:
    """A full disk, or a file of another user: replies are used and asked for, with one warning, and nothing breaks."""
    file = tmp_path / "c.sqlite"
    code = f"""
import asyncio, resource, signal, sys
from dataclasses import replace
from pathlib import Path
from almanaq.models.cached import CachedModel
from almanaq.models.protocols import Message, Prompt
from almanaq.models.cached import ReplyCache
from almanaq.testing import ScriptedModel
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
cache = ReplyCache(Path({str(file)!r}))
inner = ScriptedModel(lambda p: "word " * 2000)
model = CachedModel(inner, cache)
async def main():
    for n in range(40):
        prompt = Prompt("p", str(n), (Message("user", "x"),))
        first = await model.complete(prompt)
        again = await model.complete(prompt)
        assert first.text == again.text == "word " * 2000
asyncio.run(main())
assert inner.calls == 40, inner.calls
cache.close()
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=_environment())
    assert run.returncode == 0, run.stderr
    assert run.stderr.count("ALMANAQ_CACHE") == 1
    with sqlite3.connect(file) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def test_a_reply_that_was_of_no_use_is_asked_for_anew(tmp_path: Path) -> None:
    """Failures are not cached (semantics 15), though each of the two bad replies was a whole reply."""
    with StandInServer(replies_from(lambda *_: "Yes"), faults=Faults(["not_json"] * 2)) as server:
        settings = ModelSettings(server.url, "k", cache_file=tmp_path / "c.sqlite")
        models = open_models("openai:m", settings=settings, embedder="lexical")
        with pytest.raises(ModelCallError, match="twice"):
            asyncio.run(models.reader.read(CALL))
        assert asyncio.run(models.reader.read(CALL)).value == "Yes"
    assert server.ledger.calls == 3


def test_unknown_prices_leave_money_unknown_and_tokens_counted() -> None:
    with StandInServer(replies_from(lambda *_: "Yes")) as server:
        model = OpenAIModel("never-heard-of", server.url, "k")
        usage = asyncio.run(PromptedReader(model).read(replace(CALL, compared=()))).usage
    assert usage.money is None
    assert (usage.input_tokens, usage.output_tokens) == (server.ledger.input_tokens, server.ledger.output_tokens)
