"""`almanaq doctor` and `--version --verbose`: what is there, what is not, and what to do."""

from __future__ import annotations

import json
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from typer.testing import CliRunner

from almanaq.cli import housekeeping
from almanaq.cli.app import app
from almanaq_bench.testing import StandInServer

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))["project"]


def required(_name: str) -> list[str]:
    """What an installation of this checkout says: that of an editable one may be older."""
    extras = PROJECT["optional-dependencies"].items()
    return [*PROJECT["dependencies"], *(f"{line}; extra == '{extra}'" for extra, lines in extras for line in lines)]


@pytest.fixture(autouse=True)
def _alone(tmp_path, monkeypatch):
    monkeypatch.setattr(housekeeping, "requires", required)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ALMANAQ_CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.delenv("ALMANAQ_CACHE", raising=False)
    monkeypatch.setenv("ALMANAQ_LOCAL_SERVERS", "none")
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ALMANAQ_MODEL"):
        monkeypatch.delenv(name, raising=False)


def run(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, [*arguments], catch_exceptions=False)
    return done.exit_code, done.stdout


def test_it_says_what_is_there_and_makes_nothing(tmp_path):
    code, text = run("doctor", "--json")
    found = json.loads(text)
    assert code == 0
    assert found["packages"]["duckdb"] == version("duckdb")
    assert set(found["packages"]) == {each.split(">")[0] for each in PROJECT["dependencies"]}
    assert found["models"]["servers"] == []
    assert found["models"]["auto"] == "local"
    assert [each["bytes"] for each in found["caches"]] == [0, 0]
    assert list(tmp_path.iterdir()) == []


def test_every_extra_that_users_may_want_is_explained():
    assert set(housekeeping.EXTRAS) == set(PROJECT["optional-dependencies"]) - {"test"}
    assert set(housekeeping.extras()) == {*housekeeping.EXTRAS, "bench"}


def test_what_is_missing_is_named_with_what_to_install(monkeypatch):
    def gone(name: str) -> str:
        if name in ("mcp", "duckdb"):
            raise PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(housekeeping, "version", gone)
    code, text = run("doctor")
    assert code == 1
    assert "- mcp         gives tools to editors and assistants (almanaq mcp)" in text
    assert "pip install 'almanaq[NAME]'" in text
    assert "duckdb missing" in text
    assert "Missing: duckdb" in text


def test_an_extra_of_a_package_needs_what_that_extra_names(monkeypatch):
    lines = {"almanaq": ["duckdb>=1", "sqlglot[c]>=30; extra == 'fast'"], "sqlglot": ["compiled==1; extra == 'c'"]}
    there = {"duckdb", "sqlglot"}

    def version_of(name: str) -> str:
        if name not in there:
            raise PackageNotFoundError(name)
        return "1"

    monkeypatch.setattr(housekeeping, "requires", lines.get)
    monkeypatch.setattr(housekeeping, "version", version_of)
    assert not housekeeping.extras()["fast"]["installed"]
    there.add("compiled")
    assert housekeeping.extras()["fast"]["installed"]


def test_a_key_and_a_server_are_seen_and_the_key_is_not_shown(monkeypatch):
    with StandInServer() as server:
        monkeypatch.setenv("ALMANAQ_LOCAL_SERVERS", f"ollama={server.url}")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-this-is-secret")
        code, text = run("doctor")
    assert code == 0
    assert "OPENAI_API_KEY is set" in text
    assert "secret" not in text


def test_the_version_at_length():
    short, long = run("--version"), run("--version", "--verbose")
    assert short[0] == long[0] == 0
    assert long[1].startswith(short[1])
    assert f"duckdb {version('duckdb')}" in long[1]
    assert long == run("--verbose", "--version")
