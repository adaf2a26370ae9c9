"""Weights on this machine: fetched from a stand-in of the hub, and served by a stand-in of llama.cpp's server."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from typer.testing import CliRunner

from almanaq.cli.app import app
from almanaq.errors import MissingExtraError, ModelError, UsageError
from almanaq.models import llama_server, weights
from almanaq.models.llama_server import LlamaModel, find_or_start, record_of
from almanaq.models.model_names import open_models
from almanaq.models.private_files import is_process_alive
from almanaq.models.protocols import Message, Prompt
from almanaq.models.providers import choose_model
from almanaq.models.weights import OFFERS, Offer, fetch_weights, use_weights

CONTENT = b"GGUF" + os.urandom(300_000)


class Hub:
    """A stand-in of the hub: redirects to where the file lies, and may break off in the middle."""

    def __init__(self) -> None:
        self.content, self.most, self.ranges = CONTENT, len(CONTENT), list[str | None]()
        self.takes_ranges = True
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path.startswith("/them/"):
                    self.send_response(302)
                    self.send_header("location", "/store/file")
                    self.end_headers()
                    return
                asked = self.headers.get("range")
                hub.ranges.append(asked)
                start = int(asked.removeprefix("bytes=").rstrip("-")) if asked and hub.takes_ranges else 0
                self.send_response(206 if start else 200)
                self.send_header("content-length", str(len(hub.content) - start))
                self.end_headers()
                self.wfile.write(hub.content[start : start + hub.most])

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture(autouse=True)
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALMANAQ_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    stand_in = Hub()
    Thread(target=stand_in.server.serve_forever, args=(0.01,), daemon=True).start()
    monkeypatch.setenv("HF_ENDPOINT", stand_in.address)
    yield stand_in
    stand_in.server.shutdown()
    stand_in.server.server_close()


@pytest.fixture
def offer(monkeypatch: pytest.MonkeyPatch) -> Offer:
    made = replace(
        OFFERS[0],
        **{"name": "tiny", "repository": "them/tiny", "file": "tiny.gguf"},
        bytes=len(CONTENT),
        sha256=hashlib.sha256(CONTENT).hexdigest(),
    )
    monkeypatch.setattr(weights, "OFFERS", (made,))
    return made


def test_what_is_on_offer_is_pinned() -> None:
    for each in OFFERS:
        assert (len(each.revision), len(each.sha256)) == (40, 64)
        assert each.revision in each.url
        assert each.licence == "Apache-2.0"
    assert [each.bytes for each in OFFERS] == sorted(each.bytes for each in OFFERS)


def test_a_download_that_broke_off_goes_on_where_it_ended(hub: Hub, offer: Offer) -> None:
    hub.most = 100_000
    with pytest.raises(ModelError, match=r"100,000 of 300,004 bytes are there: run the command again"):
        fetch_weights(offer)
    hub.most = len(CONTENT)
    seen: list[int] = []
    assert fetch_weights(offer, seen.append).read_bytes() == CONTENT
    assert hub.ranges == [None, "bytes=100000-"]
    assert seen[-1] == len(CONTENT)
    fetch_weights(offer)
    assert len(hub.ranges) == 2


def test_a_hub_that_takes_no_ranges_sends_all_again(hub: Hub, offer: Offer) -> None:
    hub.most, hub.takes_ranges = 100_000, False
    with pytest.raises(ModelError):
        fetch_weights(offer)
    hub.most = len(CONTENT)
    assert fetch_weights(offer).read_bytes() == CONTENT


def test_other_bytes_than_those_offered_are_deleted(hub: Hub, offer: Offer) -> None:
    hub.content = CONTENT[:-1] + bytes([CONTENT[-1] ^ 1])
    with pytest.raises(ModelError, match="SHA-256"):
        fetch_weights(offer)
    assert not [file for file in weights.weights_folder().iterdir() if file.suffix in (".gguf", ".part")]


def test_offline_nothing_is_fetched(hub: Hub, offer: Offer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALMANAQ_OFFLINE", "1")
    with pytest.raises(ModelError, match="ALMANAQ_OFFLINE"):
        fetch_weights(offer)
    assert hub.ranges == []


def test_get_asks_first_and_auto_takes_what_came(hub: Hub, offer: Offer) -> None:
    refused = CliRunner().invoke(app, ["models", "get"])
    assert isinstance(refused.exception, UsageError)
    assert "tiny  0 MB  Apache-2.0" in refused.stdout
    assert (hub.ranges, choose_model().name) == ([], "local")
    assert CliRunner().invoke(app, ["models", "get", "--yes"]).exit_code == 0
    assert (choose_model().name, choose_model().place) == ("gguf:tiny", str(offer.path))
    listed = json.loads(CliRunner().invoke(app, ["models", "--json"]).stdout)
    assert [entry["name"] for entry in listed["models"]] == ["gguf:tiny", "local"]
    assert listed["auto"] == "gguf:tiny"
    with pytest.raises(UsageError, match="did you mean 'tiny'"):
        raise CliRunner().invoke(app, ["models", "get", "tny"]).exception or AssertionError


def test_use_takes_a_file_where_it_lies_and_local_none(tmp_path: Path) -> None:
    file = tmp_path / "mine.gguf"
    file.write_bytes(b"ZIP!")
    with pytest.raises(UsageError, match="no GGUF file"):
        use_weights("mine.gguf")
    file.write_bytes(CONTENT)
    assert CliRunner().invoke(app, ["models", "use", "mine.gguf"]).exit_code == 0
    assert choose_model().name == "gguf:mine"
    assert open_models(f"gguf:{file}", embedder="lexical").name == f"gguf:{file}"
    with pytest.raises(ModelError, match=r"almanaq models get qwen2\.5-coder-0\.5b"):
        open_models("gguf:qwen2.5-coder-0.5b", embedder="lexical")
    assert CliRunner().invoke(app, ["models", "use", "local"]).exit_code == 0
    assert choose_model().name == "local"


# The server.

STAND_IN = """
import json, os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import SimpleNamespace

class CommonParams:
    def __init__(self):
        self.model, self.cpuparams, self.cpuparams_batch = SimpleNamespace(), SimpleNamespace(), SimpleNamespace()

class Server:
    def __init__(self, settings):
        if open(settings.model.path, "rb").read(4) != b"GGUF":
            raise SystemExit("these are no weights")
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["content-length"]))
                known = self.headers["authorization"] == "Bearer " + settings.api_keys[0]
                said = {"choices": [{"message": {"content": str(os.getpid())}, "finish_reason": "stop"}]}
                content = json.dumps(said if known else {"error": "no"}).encode()
                self.send_response(200 if known else 401)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)
            def log_message(self, *_): pass
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        Thread(target=self.server.serve_forever, daemon=True).start()
        self.listening_address = f"http://127.0.0.1:{self.server.server_port}"
"""
PROMPT = Prompt("t", "1", (Message("user", "Hello"),))


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Weights, and a stand-in of the package that serves them."""
    (tmp_path / "packages").mkdir()
    (tmp_path / "packages" / "xllamacpp.py").write_text(STAND_IN)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "packages"))
    monkeypatch.setattr(llama_server, "llm_is_installed", lambda: True)
    made = tmp_path / "mine.gguf"
    made.write_bytes(CONTENT)
    yield made
    record = record_of(made)
    if record.exists():
        os.kill(json.loads(record.read_text())["pid"], 15)


def say_hello(file: Path) -> str:
    return asyncio.run(LlamaModel("mine", file).complete(PROMPT)).text


def test_the_first_question_starts_a_server_that_later_ones_share(file: Path) -> None:
    first = say_hello(file)
    record = json.loads(record_of(file).read_text())
    assert (first, say_hello(file)) == (str(record["pid"]), first)
    assert record_of(file).stat().st_mode & 0o077 == 0
    # Whoever does not know the key is not served.
    assert find_or_start(file) == (record["address"], record["key"])


def test_a_server_that_was_killed_is_started_again(file: Path) -> None:
    first = say_hello(file)
    mark = json.loads(record_of(file).read_text())["mark"]
    os.kill(int(first), 9)
    wait_for(lambda: not is_process_alive(int(first), mark))
    assert say_hello(file) != first


def test_it_ends_once_nobody_asks(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llama_server, "IDLE_SECONDS", 0.4)
    pid = int(say_hello(file))
    wait_for(lambda: not record_of(file).exists())
    wait_for(lambda: not is_process_alive(pid, ""))


def test_a_call_under_way_keeps_it(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llama_server, "IDLE_SECONDS", 0.2)
    find_or_start(file, busy_for=3600)
    time.sleep(0.6)
    assert record_of(file).exists()


def test_a_server_that_does_not_start_says_why(file: Path) -> None:
    file.write_bytes(b"nothing")
    with pytest.raises(ModelError, match="these are no weights"):
        say_hello(file)


def test_without_the_extra_the_error_names_it(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llama_server, "llm_is_installed", lambda: False)
    with pytest.raises(MissingExtraError, match=r"almanaq\[llm\]"):
        say_hello(file)


def wait_for(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)
