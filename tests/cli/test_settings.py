"""Flags before environment before file; errors name the place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from almanaq.errors import UsageError
from almanaq.settings import Settings, read_settings, trust


@pytest.fixture(autouse=True)
def bare(tmp_path, monkeypatch):
    """An empty folder, and an environment without settings."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own"))
    for name in ("MODEL", "EMBEDDER", "CACHE_DIR", "ORDER", "SPECULATION", "MAX_CALLS"):
        monkeypatch.delenv(f"ALMANAQ_{name}", raising=False)
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_defaults():
    settings = read_settings()
    assert (settings.model, settings.embedder, settings.order, settings.max_calls) == (
        "auto",
        None,
        "similarity",
        None,
    )


def write_and_allow(folder, text):
    """Write the file of settings of a folder, and allow it."""
    (folder / "almanaq.toml").write_text(text)
    trust(folder / "almanaq.toml", text.encode())


def test_precedence(bare, monkeypatch):
    write_and_allow(bare, 'model = "openai:file"\nembedder = "lexical"\nopenai_base_url = "http://file"\n')
    assert read_settings().model == "openai:file"
    monkeypatch.setenv("ALMANAQ_MODEL", "openai:environment")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://environment")
    settings = read_settings(model=None)
    assert (settings.model, settings.embedder) == ("openai:environment", "lexical")
    assert settings.openai_base_url == "http://environment"
    assert read_settings(model="local").model == "local"


def test_an_empty_variable_is_no_setting(monkeypatch):
    monkeypatch.setenv("ALMANAQ_MODEL", "")
    assert read_settings().model == "auto"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('embeder = "lexical"\n', r"almanaq.toml: unknown setting 'embeder'; did you mean 'embedder'"),
        ("order = 'sideways'\n", r"almanaq.toml: order: .*sideways"),
        ("max_calls = -3\n", r"almanaq.toml: max_calls: .*-3"),
        ("max_calls = 'many'\n", r"almanaq.toml: max_calls: .*many"),
        ("speculation = nan\n", r"almanaq.toml: speculation: .*nan"),
        ("model = \n", r"almanaq.toml: not valid TOML"),
    ],
)
def test_a_faulty_file_is_named(bare, text, message):
    (bare / "almanaq.toml").write_text(text)
    with pytest.raises(UsageError, match=message):
        read_settings()


def test_a_faulty_variable_or_flag_is_named(monkeypatch):
    monkeypatch.setenv("ALMANAQ_SPECULATION", "fast")
    with pytest.raises(UsageError, match="ALMANAQ_SPECULATION"):
        read_settings()
    with pytest.raises(UsageError, match="--max-calls"):
        read_settings(max_calls=-1, speculation=1)


def test_export_hands_file_settings_to_the_model_layer(bare, monkeypatch):
    import os

    for name in ("OPENAI_API_KEY", "ALMANAQ_CACHE_DIR"):
        monkeypatch.setenv(name, "")
    write_and_allow(bare, 'openai_api_key = "k"\ncache_dir = "c"\n')
    settings = read_settings()
    settings.export()
    assert (os.environ["OPENAI_API_KEY"], os.environ["ALMANAQ_CACHE_DIR"]) == ("k", "c")
    assert "'k'" not in repr(settings)


def test_ones_own_file_comes_last_and_may_say_all(bare):
    own = bare / "own" / "almanaq"
    own.mkdir(parents=True)
    (own / "almanaq.toml").write_text('model = "openai:own"\norder = "table"\nopenai_base_url = "http://own"\n')
    (bare / "almanaq.toml").write_text('order = "similarity"\n')
    settings = read_settings()
    assert (settings.model, settings.order, settings.openai_base_url) == ("openai:own", "similarity", "http://own")
    (own / "almanaq.toml").write_text("ordr = 1\n")
    with pytest.raises(UsageError, match=r"own/almanaq/almanaq\.toml: unknown setting 'ordr'"):
        read_settings()


def test_the_page_on_models_names_every_setting() -> None:
    page = (Path(__file__).parents[2] / "docs/models.md").read_text()
    listed = page.partition("The settings of an `almanaq.toml` are ")[2].partition(". ")[0]
    assert set(re.findall("`([a-z_]+)`", listed)) == set(Settings.model_fields)
