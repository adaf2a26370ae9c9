"""`almanaq cache`: shows what is kept, empties it, and makes no file by looking."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from almanaq.cli.app import app
from almanaq.models.cached import ReplyCache


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ALMANAQ_CACHE", raising=False)
    monkeypatch.setenv("ALMANAQ_CACHE_DIR", str(tmp_path / "kept"))
    return tmp_path / "kept" / "replies.sqlite"


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["cache", *arguments], catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def test_looking_at_no_cache_makes_none(file):
    tables = {"folder": str(file.parent / "tables"), "sources": 0, "bytes": 0}
    assert json.loads(run("stats", "--json")) == {
        "file": str(file), "replies": 0, "by_model": {}, "bytes": 0, "tables": tables
    }  # fmt: skip
    assert "0 replies deleted" in run("clear")
    assert not file.exists()


def test_stats_and_clear(file):
    cache = ReplyCache(file)
    for n in range(3):
        cache.keep([(bytes([n]), "text")], model="a" if n else "b")
    cache.close()
    assert json.loads(run("stats", "--json"))["by_model"] == {"a": 2, "b": 1}
    assert "3 replies" in run("stats")
    assert "replies" not in run("clear", "--tables")
    assert "3 replies deleted" in run("clear")
    assert json.loads(run("stats", "--json"))["replies"] == 0
