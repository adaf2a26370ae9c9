"""A key stands in no output, no error and no file: neither that of the environment nor one in an address."""

from __future__ import annotations

import asyncio
import contextlib
import io
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from almanaq.cli.app import app
from almanaq.errors import AlmanaqError, ModelError, UsageError
from almanaq.models.http import address_identity, find_secrets, redact_address
from almanaq.models.model_names import ModelSettings, open_models
from almanaq.models.openai import OpenAIEmbedder, OpenAIModel
from almanaq.models.protocols import Message, Prompt
from almanaq.settings import Settings, read_settings
from almanaq_bench.testing import Faults, StandInServer, replies_from
from almanaq_bench.testing.hostile import HOSTILE

KEY, QUERY = "canary-key-6f1d0b7a2c", "canary-query-90aa%2Bb"
SUQL = "SELECT name FROM places WHERE answer(notes, 'are dogs welcome?') = 'Yes'"
COMMANDS = [
    ["sql", SUQL, "--db", "places.csv"],
    ["sql", SUQL, "--db", "places.csv", "--analyze", "--verbose"],
    ["sql", SUQL, "--db", "places.csv", "--format", "json", "--no-cache"],
    ["sql", SUQL, "--db", "places.csv", "--explain", "--format", "json"],
    ["ask", "where are dogs welcome?", "--db", "places.csv", "--json"],
    ["find", "dogs", "--corpus", "places.csv", "--embedder", "openai:m", "--json"],
    ["index", "places.csv", "--out", "index", "--embedder", "openai:m"],
    ["find", "dogs", "--index", "index", "--embedder", "openai:m"],
    ["cache", "stats"],
    ["cache", "stats", "--json"],
]


@pytest.fixture(autouse=True)
def _user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("places.csv").write_text("id,name,notes\n1,Coda,Dogs get a bowl of water before their owners get a menu.\n")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("ALMANAQ_MODEL", "openai:m")
    monkeypatch.setenv("ALMANAQ_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@contextlib.contextmanager
def served(monkeypatch: pytest.MonkeyPatch, **options: object) -> Iterator[StandInServer]:
    with StandInServer(replies_from(lambda *_: "Yes"), **options) as server:  # type: ignore[arg-type]
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}?code={QUERY}")
        yield server


def output_of(command: list[str]) -> str:
    """Run a command; give all that it prints, its error and the traceback that ALMANAQ_DEBUG would show."""
    out = io.StringIO()
    with contextlib.redirect_stderr(out):
        run = CliRunner().invoke(app, command)
    told = run.output + out.getvalue()
    if run.exception is not None and not isinstance(run.exception, SystemExit):
        assert isinstance(run.exception, AlmanaqError), run.exception
        told += str(run.exception) + "".join(traceback.format_exception(run.exception))
    return told


def assert_nowhere(told: str, folder: Path) -> None:
    assert "canary" not in told
    for file in folder.rglob("*"):
        if file.is_file():
            assert b"canary" not in file.read_bytes(), file


def test_no_command_shows_or_keeps_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(monkeypatch) as server:
        told = "".join(output_of(command) for command in COMMANDS)
        assert server.ledger.calls > 4
    assert "Coda" in told
    assert "openai:m" in told
    assert_nowhere(told, tmp_path)
    assert (tmp_path / "cache/replies.sqlite").stat().st_size > 0


@pytest.mark.parametrize(
    "options", [{"key": "another"}, {"models": ("other",)}, {"faults": Faults(rates={"error": 1.0}, retry_after=0.0)}]
)
def test_no_error_shows_a_key(options: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(monkeypatch, **options):
        told = output_of(["sql", SUQL, "--db", "places.csv", "--strict"])
    assert "127.0.0.1" in told or "answered 500" in told
    assert_nowhere(told, tmp_path)


@pytest.mark.parametrize(
    "address",
    ["http://127.0.0.1:9/v1", "ftp://x/v1", "http://[::1/v1", "localhost:8000", "http:///v1", "http://h:99999999/v1"],
)
def test_an_address_that_fails_is_shown_without_its_key(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", f"{address}?key={QUERY}")
    told = output_of(["sql", SUQL, "--db", "places.csv", "--strict"])
    assert "OPENAI_BASE_URL" in told
    assert_nowhere(told, tmp_path)


def test_an_address_with_a_password_is_refused_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://canary-user:canary-password@127.0.0.1:9/v1")
    told = output_of(["sql", SUQL, "--db", "places.csv"])
    assert "holds a user or a password" in told
    assert_nowhere(told, tmp_path)


@pytest.mark.parametrize("fault", HOSTILE)
def test_no_reply_has_a_key_shown(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    prompt = Prompt("p", "1", (Message("user", "x"),))
    told = ""
    with served(monkeypatch, faults=Faults([fault])):
        try:
            asyncio.run(OpenAIModel("m").complete(prompt))
        except ModelError as problem:
            told = "".join(traceback.format_exception(problem))
    assert "canary" not in told


def test_no_representation_shows_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    address = f"http://127.0.0.1:9/v1?key={QUERY}"
    monkeypatch.setenv("OPENAI_BASE_URL", address)
    settings = ModelSettings(address, KEY)
    models = open_models("openai:m", embedder="lexical", settings=settings, cache=False)
    model, embedder = OpenAIModel("m", address, KEY), OpenAIEmbedder("m", address, KEY)
    shown = [settings, models, model, embedder, read_settings(), model.identity, model.name, embedder.name]
    for value in shown:
        assert "canary" not in repr(value)
        assert "canary" not in str(value)


@pytest.mark.parametrize(
    "line",
    [
        f"openai_api_key = ['{KEY}']",
        f"openai_api_key = {{key = '{KEY}'}}",
        f"openai_base_url = ['http://x?key={KEY}']",
        "max_calls = 'sk-canary-0123456789'",
        "order = 'sk-canary-0123456789'",
    ],
)
@pytest.mark.parametrize("own", [True, False])
def test_a_wrong_type_shows_no_key(line: str, own: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ALMANAQ_ORDER"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "config/almanaq" if own else tmp_path
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "almanaq.toml").write_text(line)
    with pytest.raises(UsageError) as caught:
        read_settings()
    assert line.partition(" ")[0] in str(caught.value)
    assert "canary" not in "".join(traceback.format_exception(caught.value))


def test_settings_of_the_environment_show_no_key() -> None:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - pydantic's own, which hides what it was given
        Settings(openai_api_key=[KEY])
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://api.example/v1", "https://api.example/v1"),
        ("https://api.example/v1?api-version=2026-01-01", "https://api.example/v1?api-version=2026-01-01"),
        ("https://api.example/v1?key=abc&x=y", "https://api.example/v1?key=[key]&x=[key]"),
        ("https://u:p@api.example/v1#frag", "https://[key]@api.example/v1"),
        ("https://api.example/v1?abc", "https://api.example/v1?abc=[key]"),
        ("http://[::1/v1?key=abc", "an address that cannot be read"),
    ],
)
def test_what_is_shown_of_an_address(address: str, shown: str) -> None:
    assert redact_address(address) == shown


def test_addresses_that_differ_in_more_than_a_key_do_not_share_replies() -> None:
    base = "https://api.example/v1"
    assert address_identity(f"{base}?key=one-key") == address_identity(f"{base}?key=another-key")
    assert (
        len({address_identity(f"{base}{query}") for query in ("", "?x=1", "?x=2", "?api-version=1", "?key=one")}) == 5
    )
    assert "value-that-chooses" not in address_identity(f"{base}?x=value-that-chooses")
    assert find_secrets(f"{base}?key={QUERY}&api-version=2026-01-01") == (QUERY.replace("%2B", "+"), QUERY)
