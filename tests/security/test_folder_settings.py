"""A file found in a folder sends no document, no key and no money anywhere: not until the user has allowed it."""

from __future__ import annotations

import contextvars
import importlib
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from almanaq.cli.app import app
from almanaq.errors import AlmanaqError, SourceError, UsageError
from almanaq.settings import Settings, find_reaching, is_trusted, read_settings
from almanaq.suql.catalog.schema_file import parse_schema
from almanaq_bench.retrievers.adapters import import_object, look_here
from almanaq_bench.testing import StandInServer, replies_from

CANARY = "sk-canary-6f1d0b7a2c"
QUERY = "SELECT name FROM places WHERE answer(notes, 'are dogs welcome?') = 'Yes'"

REACHING = {
    "model": ["openai:m", "auto", "other"],
    "embedder": ["openai:m", "someone/model", "./model", "/tmp/model"],
    "openai_base_url": ["http://127.0.0.1:9/v1", "https://api.openai.com/v1"],
    "openai_api_key": ["sk-of-somebody-else"],
    "cache_dir": ["cache", "/tmp/elsewhere"],
    "max_calls": [1001, 10**9],
    "max_money": [0.5, 10**9],
    "max_result_mb": [10**9],
}
HARMLESS = {
    "timeout": [30.0],
    "confidence": [0.9],
    "model": ["local"],
    "embedder": ["lexical", "static", "local"],
    "max_calls": [0, 1000],
    "max_result_mb": [1],
    "speculation": [1.5],
    "order": ["table"],
    "strict": ["true"],
    "deadline": [5],
    "concurrency": [3],
    "batch": [4],
    "dialect": ["mysql"],
    "context_tokens": [8000],
}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that somebody sent, and a user whose key stands in the environment."""
    (tmp_path / "sent").mkdir()
    monkeypatch.chdir(tmp_path / "sent")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))  # not the user's, where replies of other runs are
    for name in [name for name in os.environ if name.startswith("ALMANAQ_") and name != "ALMANAQ_CACHE_DIR"]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("ALMANAQ_CACHE_DIR", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)


def write(name: str, value: object) -> str:
    text = f"{name} = {value if not isinstance(value, str) or value == 'true' else repr(value)}\n"
    Path("almanaq.toml").write_text(text)
    return text


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in REACHING.items() for value in values])
def test_what_reaches_out_is_refused_until_it_is_allowed(
    name: str, value: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")  # it stands before the file's
    text = write(name, value)
    with pytest.raises(UsageError, match="almanaq trust") as caught:
        read_settings()
    assert name in str(caught.value)
    assert "sk-of-somebody-else" not in str(caught.value)
    assert CliRunner().invoke(app, ["trust"]).exit_code == 0
    assert getattr(read_settings(), name) == value
    # What is allowed is this file as it is, not whatever stands there later.
    Path("almanaq.toml").write_text(text + "order = 'table'\n")
    with pytest.raises(UsageError, match="almanaq trust"):
        read_settings()


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in HARMLESS.items() for value in values])
def test_what_stays_on_this_machine_needs_no_leave(name: str, value: object) -> None:
    write(name, value)
    assert getattr(read_settings(), name) == (True if value == "true" else value)


def test_every_setting_is_one_or_the_other() -> None:
    """A setting that is new is not harmless until somebody has thought about it."""
    assert all(find_reaching({name: "x"}) for name in {*Settings.model_fields, "new"} - {*HARMLESS})


def test_a_flag_or_the_environment_stands_before_the_file_so_that_nothing_is_to_be_allowed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Path("almanaq.toml").write_text("model = 'openai:m'\nopenai_base_url = 'http://127.0.0.1:9/v1'\n")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:8/v1")
    assert read_settings(model="local").openai_base_url == "http://127.0.0.1:8/v1"
    monkeypatch.delenv("OPENAI_BASE_URL")
    with pytest.raises(UsageError, match="openai_base_url"):
        read_settings(model="local")


def test_no_command_calls_a_server_that_a_folder_names() -> None:
    Path("places.csv").write_text("id,name,notes\n1,Coda,Dogs get a bowl of water before their owners get a menu.\n")
    commands = [
        ["sql", QUERY, "--db", "places.csv"],
        ["ask", "where are dogs welcome?", "--db", "places.csv"],
        ["find", "dogs", "--corpus", "places.csv"],
        ["index", "places.csv", "--out", "index", "--embedder", "static"],
    ]
    with StandInServer(replies_from(lambda *_: "Yes")) as server:
        lines = ["model = 'openai:m'", "embedder = 'openai:m'", f"openai_base_url = '{server.url}'"]
        Path("almanaq.toml").write_text("\n".join(lines))
        for command in commands:
            with pytest.raises(AlmanaqError):
                CliRunner().invoke(app, command, catch_exceptions=False)
        assert server.ledger.calls == 0
        assert CliRunner().invoke(app, ["trust"], catch_exceptions=False).exit_code == 0
        assert CliRunner().invoke(app, commands[0], catch_exceptions=False).exit_code == 0
        assert server.ledger.calls > 0


def test_leave_can_be_taken_back_and_is_of_one_place_alone(tmp_path: Path) -> None:
    text = write("model", "openai:m").encode()
    assert CliRunner().invoke(app, ["trust"]).exit_code == 0
    assert is_trusted(Path("almanaq.toml"), text)
    assert not is_trusted(tmp_path / "almanaq.toml", text)
    assert CliRunner().invoke(app, ["trust", "--revoke"]).exit_code == 0
    assert not is_trusted(Path("almanaq.toml"), text)


@pytest.mark.parametrize(("said", "allowed"), [("y\n", True), ("yes\n", True), ("\n", False), ("no\n", False)])
def test_a_person_at_a_terminal_is_asked_once(said: str, allowed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    write("model", "openai:m")
    terminal = _Terminal(said)
    monkeypatch.setattr(sys, "stdin", terminal)
    monkeypatch.setattr(sys, "stderr", terminal)
    if not allowed:
        with pytest.raises(UsageError, match="almanaq trust"):
            read_settings()
        return
    assert read_settings().model == "openai:m"
    assert "openai:m" in terminal.shown
    assert read_settings().model == "openai:m"
    assert terminal.shown.count("[y/N]") == 1


class _Terminal(io.StringIO):
    """Says what a person would, and keeps what was shown."""

    def __init__(self, said: str) -> None:
        super().__init__(said)
        self.shown = ""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.shown += text
        return len(text)


def test_what_a_file_says_cannot_steer_the_terminal_that_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("almanaq.toml").write_text('model = "openai:m\\u001b[2K\\u202eharmless"\n')
    terminal = _Terminal("\n")
    monkeypatch.setattr(sys, "stdin", terminal)
    monkeypatch.setattr(sys, "stderr", terminal)
    with pytest.raises(UsageError):
        read_settings()
    assert "\x1b" not in terminal.shown
    assert "\u202e" not in terminal.shown


@pytest.mark.parametrize(
    "line", ["model = 'openai:m'", "openai_base_url = 'http://x'", "embedder = 'a/b'", "[almanaq]\nmodel = 'openai:m'"]
)
def test_the_file_beside_a_source_names_columns_and_nothing_else(line: str) -> None:
    with pytest.raises(SourceError):
        parse_schema(line)


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "long"])
def test_what_is_no_file_of_settings_is_refused_at_once(kind: str) -> None:
    file = Path("almanaq.toml")
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "device":
        file.symlink_to("/dev/zero")
    elif kind == "folder":
        file.mkdir()
    else:
        file.write_bytes(b"#" * (2**20 + 1))
    with pytest.raises(UsageError, match="not a settings file"):
        read_settings()


@pytest.mark.nightly
def test_a_model_folder_runs_no_code_of_its_own(tmp_path: Path) -> None:
    """sentence-transformers before 6 imported what a local folder's modules.json names."""
    pytest.importorskip("sentence_transformers")
    from almanaq.models.hub_models import HubEmbedder

    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\nclass Evil: pass\n")
    (folder / "modules.json").write_text('[{"idx": 0, "name": "0", "path": "", "type": "evil.Evil"}]')
    with pytest.raises((AlmanaqError, ImportError)):
        HubEmbedder(str(folder)).embed_documents(["a"] * 100)
    assert not (tmp_path / "ran").exists()


def test_no_module_of_the_folder_is_run_but_one_that_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is imported late must not come from where the command was started."""
    for name in ("openai", "colorsys", "mine"):
        Path(f"{name}.py").write_text(f"open({str(tmp_path / name)!r}, 'w').close()\nclass Mine: pass\n")
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place not in ("", os.getcwd())])
    for module in ("colorsys", "mine"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    wanted = [
        "bench",
        "run",
        "--task",
        "table-retrieval",
        "--dataset",
        "x",
        "--data-dir",
        str(tmp_path),
        "--split",
        "test",
    ]
    for retriever in ("bm25", "openai:m"):
        CliRunner().invoke(app, [*wanted, "--split", "test", "--retriever", retriever, "--out", str(tmp_path / "run")])
        assert os.getcwd() not in sys.path

    def named() -> object:
        look_here()
        return import_object("mine:Mine", "retriever")

    assert type(contextvars.copy_context().run(named)).__name__ == "Mine"
    assert importlib.import_module("colorsys").__file__ != str(Path("colorsys.py").resolve())
    assert sorted(file.name for file in tmp_path.glob("*") if file.is_file()) == ["mine"]


def test_pip_is_the_installed_one(tmp_path: Path) -> None:
    from almanaq.models.embedders.minilm import _find_installer

    Path("pip.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n")
    subprocess.run([*_find_installer(), "--version"], capture_output=True, check=True)
    assert not (tmp_path / "ran").exists()
