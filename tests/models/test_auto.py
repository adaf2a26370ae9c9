"""`--model auto`: what is at hand is found quickly, told in one line, and gets no key that was given for another."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from almanaq.cli.app import app
from almanaq.errors import ModelError, UsageError
from almanaq.models import providers
from almanaq.models.model_names import open_models
from almanaq.models.protocols import TextCall
from almanaq.models.providers import (
    DEFAULT_PORTS,
    call_timeout,
    choose_model,
    find_endpoint,
    find_servers,
    server_addresses,
)
from almanaq_bench.testing import StandInServer
from almanaq_bench.testing.outcome import Outcome

SAMPLE = "sample:restaurants"


@pytest.fixture(autouse=True)
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty folder, an environment that names no model and no key, and time for servers to be found in."""
    monkeypatch.setattr(providers, "LIST_SECONDS", 30)
    monkeypatch.setattr(providers, "CONNECT_SECONDS", 10)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own"))
    monkeypatch.setenv("ALMANAQ_LOCAL_SERVERS", "none")
    monkeypatch.setenv("ALMANAQ_CACHE_DIR", str(tmp_path))
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENAI_MODEL", "ALMANAQ_MODEL", "ALMANAQ_TIMEOUT"):
        monkeypatch.delenv(name, raising=False)


@contextmanager
def served(*models: str, body: bytes | None = None, wait: float = 0) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """A server that lists models and says "Yes" to every chat; give its address, and what was asked with which key."""
    said = json.dumps({"value": "Yes", "verdicts": {"Yes": "yes"}, "quotes": []})
    listed = json.dumps({"data": [{"id": name} for name in models]}).encode() if body is None else body

    def twist(path: str, _: object, right: Outcome) -> Outcome:
        asked.append((path, server.ledger.heads[-1][1].get("authorization", "")))
        return replace(right, body=listed if path.endswith("/models") else right.body, wait=wait)

    asked: list[tuple[str, str]] = []
    with StandInServer(lambda _: said, twist=twist) as server:
        yield server.url, asked


def test_the_first_provider_that_answers_is_taken_and_its_first_model_that_writes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-another-server")
    with served("nomic-embed-text", "small", "large") as (first, asked), served("other") as (second, _):
        monkeypatch.setenv("ALMANAQ_LOCAL_SERVERS", f"vllm={second},ollama={first}")
        assert choose_model().name == "vllm:other"
        monkeypatch.setenv("ALMANAQ_LOCAL_SERVERS", f"ollama={first},vllm={second}")
        choice = choose_model()
        assert (choice.name, choice.place) == ("ollama:small", first)
        call = TextCall("answer", ("Candles.",), "is it romantic?", compared=("Yes",))
        models = open_models("auto", embedder="lexical", cache=False)
        assert asyncio.run(models.reader.read(call)).verdicts == {"Yes": True}
    assert models.name == "ollama:small"
    # A key of the environment was given for another server.
    assert {path for path, _ in asked} == {"/v1/models", "/v1/chat/completions"}
    assert {key for _, key in asked} == {"Bearer none"}


@pytest.mark.parametrize(
    "body", [b"<html>", b"[]", b"{}", b'{"data": [{"name": "x"}]}', b'{"data": [{"id": "a\\u001b[2J"}]}']
)
def test_whatever_else_listens_there_is_no_model_server(body: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(body=body) as (address, asked):
        monkeypatch.setenv("ALMANAQ_LOCAL_SERVERS", f"llamacpp={address}")
        assert choose_model().name == "local"
        assert asked


def test_silent_and_closed_ports_cost_less_than_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(providers, "LIST_SECONDS", 1)
    monkeypatch.setattr(providers, "CONNECT_SECONDS", 0.5)
    with socket.socket() as silent, served("m", wait=20) as (slow, _), served("quick") as (quick, _):
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        find_servers({"ollama": quick})  # the client is loaded
        places = {
            "ollama": f"http://127.0.0.1:{silent.getsockname()[1]}/v1",
            "llamacpp": slow,
            "lmstudio": "http://127.0.0.1:1/v1",
            "vllm": quick,
        }
        start = time.perf_counter()
        found = find_servers(places)
        taken = time.perf_counter() - start
    assert [server.models for server in found] == [("quick",)]
    assert taken < 15  # 1 s of waiting; the rest is room for a busy machine, and less than the slow server takes


def test_an_address_in_the_environment_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    with served("only") as (address, asked), served("near") as (near, unasked):
        monkeypatch.setenv("ALMANAQ_LOCAL_SERVERS", f"ollama={near}")
        monkeypatch.setenv("OPENAI_BASE_URL", address)
        monkeypatch.setenv("OPENAI_API_KEY", "its-own-key")
        assert (choose_model().name, choose_model().place) == ("openai:only", address)
        assert {key for _, key in asked} == {"Bearer its-own-key"}
        count = len(asked)
        monkeypatch.setenv("OPENAI_MODEL", "named")
        assert choose_model().name == "openai:named"
        assert (len(asked), unasked) == (count, [])


QUERY = "SELECT name FROM restaurants WHERE answer(reviews, 'is it romantic?') = 'Yes' LIMIT 1"


@pytest.mark.parametrize(
    ("listed", "said"),
    [
        (b'{"data": [{"id": "dear"}, {"id": "cheap"}]}', r"lists 2 models \(dear, cheap\): set OPENAI_MODEL"),
        (b'{"data": []}', "lists 0 models: set OPENAI_MODEL"),
        (b"<html>", "its reply is no list of models.*check OPENAI_API_KEY"),
        (b"[" * 100_000, "its reply is no list of models"),
        (b'{"data": [{"name": "x"}]}', "its reply is no list of models"),
        (None, "gives no reply.*start the server"),
    ],
)
def test_an_address_that_leads_to_no_model_is_an_error_and_nothing_takes_its_place(
    monkeypatch: pytest.MonkeyPatch, listed: bytes | None, said: str
) -> None:
    with served(body=listed) as (address, asked):
        monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1" if listed is None else address)
        with pytest.raises(ModelError, match=f"{said}.*--model local"):
            choose_model()
        result = CliRunner().invoke(app, ["sql", QUERY, "--db", SAMPLE])
        assert (type(result.exception), result.stdout) == (ModelError, "")
        models = CliRunner().invoke(app, ["models"])
        assert (models.exit_code, "auto takes none" in models.stdout) == (0, True)
        assert CliRunner().invoke(app, ["sql", QUERY, "--db", SAMPLE, "--model", "local"]).exit_code == 0
    assert {path for path, _ in asked} <= {"/v1/models"}


def test_a_key_that_the_address_refuses_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with StandInServer(twist=lambda *_: Outcome.error(401, "wrong key")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "wrong")
        with pytest.raises(ModelError, match=r"it answers 401.*OPENAI_API_KEY"):
            choose_model()


def test_a_key_alone_sends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    choice = choose_model()
    assert (choice.name, choice.place) == ("local", None)
    assert "OPENAI_BASE_URL" in choice.reason


def test_the_command_line_says_what_it_took_and_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    with served("small") as (address, asked):
        monkeypatch.setenv("ALMANAQ_LOCAL_SERVERS", f"ollama={address}")
        plain = CliRunner().invoke(app, ["sql", "SELECT count(*) FROM restaurants", "--db", SAMPLE])
        assert (plain.exit_code, plain.stderr, asked) == (0, "", [])
        result = CliRunner().invoke(app, ["sql", QUERY, "--db", SAMPLE, "--max-calls", "50", "--format", "csv"])
        assert result.exit_code == 0, result.stderr
        line = f"almanaq: model ollama:small at {address} (answers on this machine); at most 50 calls per query"
        assert result.stderr.startswith(line)
        listed = json.loads(CliRunner().invoke(app, ["models", "--json"]).stdout)
    assert listed["auto"] == "ollama:small"
    assert [entry["name"] for entry in listed["models"]] == ["ollama:small", "local"]


def test_aliases_are_the_users_own(tmp_path: Path) -> None:
    own = tmp_path / "own" / "almanaq"
    own.mkdir(parents=True)
    (own / "almanaq.toml").write_text('[aliases]\nfast = "local"\n')
    result = CliRunner().invoke(app, ["sql", "SELECT 1 AS one", "--db", SAMPLE, "--model", "fast"])
    assert result.exit_code == 0
    assert "your alias of local" in CliRunner().invoke(app, ["models"]).stdout
    (own / "almanaq.toml").write_text('[aliases]\n"openai:x" = "local"\n')
    refused = CliRunner().invoke(app, ["models"])
    assert isinstance(refused.exception, UsageError)
    (own / "almanaq.toml").unlink()
    (tmp_path / "almanaq.toml").write_text('[aliases]\nlocale = "openai:x"\n')
    assert isinstance(CliRunner().invoke(app, ["models"]).exception, UsageError)


def test_places_and_their_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALMANAQ_LOCAL_SERVERS", "")
    assert list(server_addresses()) == list(DEFAULT_PORTS)
    assert find_endpoint("ollama").address == "http://127.0.0.1:11434/v1"
    with pytest.raises(ModelError, match="AZURE_OPENAI_ENDPOINT"):
        find_endpoint("azure")
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-another-server")
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://mine.openai.azure.com/")
    with pytest.raises(ModelError, match="AZURE_OPENAI_API_KEY"):
        find_endpoint("azure")
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "k")
    place = find_endpoint("azure")
    assert (place.address, place.key) == ("https://mine.openai.azure.com/openai/v1", "k")
    monkeypatch.setenv("ALMANAQ_LOCAL_SERVERS", "olama=http://127.0.0.1:1/v1")
    with pytest.raises(UsageError, match="ALMANAQ_LOCAL_SERVERS"):
        server_addresses()


def test_how_long_a_call_may_take(monkeypatch: pytest.MonkeyPatch) -> None:
    assert call_timeout(60) == 60
    monkeypatch.setenv("ALMANAQ_TIMEOUT", "900")
    assert call_timeout(60) == 900
    for wrong in ("0", "-1", "nan", "inf", "soon"):
        monkeypatch.setenv("ALMANAQ_TIMEOUT", wrong)
        with pytest.raises(ModelError, match="ALMANAQ_TIMEOUT"):
            call_timeout(60)
