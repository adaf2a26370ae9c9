"""What the contract's tests share: the installed command as a subprocess, JSON schemas, small sources."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

TIMEOUT = 120
"""Seconds after which a command is killed."""

Run = Callable[..., "subprocess.CompletedProcess[str]"]

# A test must not see the settings of whoever runs it, nor fill their cache.
FOREIGN = ("ALMANAQ_", "OPENAI_", "COLUMNS", "LINES", "TERM", "NO_COLOR", "FORCE_COLOR", "TERMINAL_WIDTH")


def command() -> list[str]:
    """Return the installed `almanaq` beside this Python, else the module."""
    script = Path(sys.executable).with_name("almanaq")
    return [str(script)] if script.exists() else [sys.executable, "-m", "almanaq"]


@pytest.fixture
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a bare machine; the lexical embedder, which starts without loading weights."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    if "PYTHONPATH" in kept:
        kept["PYTHONPATH"] = os.pathsep.join(str(Path(p).absolute()) for p in kept["PYTHONPATH"].split(os.pathsep))
    cache, config = tmp_path_factory.mktemp("cache"), tmp_path_factory.mktemp("config")
    own = {"ALMANAQ_CACHE_DIR": str(cache), "XDG_CONFIG_HOME": str(config)}
    return kept | own | {"ALMANAQ_EMBEDDER": "lexical", "COLUMNS": "100", "NO_COLOR": "1"}


class Warm:
    """The process of warm.py, which forks for every command."""

    def __init__(self) -> None:
        script = Path(__file__).with_name("warm.py")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
        self._process = subprocess.Popen(
            [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=kept
        )

    def run(self, arguments: list[str], env: dict[str, str], cwd: Path, streams: dict[str, str]) -> int:
        """Run one command and give its exit code."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"arguments": arguments, "env": env, "cwd": str(cwd), **streams}) + "\n")
        self._process.stdin.flush()
        child = self._reply()["pid"]
        overtime = threading.Timer(TIMEOUT, os.kill, (child, signal.SIGKILL))
        overtime.start()
        try:
            return self._reply()["code"]
        finally:
            overtime.cancel()

    def _reply(self) -> dict[str, int]:
        assert self._process.stdout is not None
        reply: dict[str, int] = json.loads(self._process.stdout.readline())
        return reply

    def close(self) -> None:
        """End the process."""
        with self._process:
            assert self._process.stdin is not None
            self._process.stdin.close()


@pytest.fixture(scope="session")
def warm() -> Iterator[Warm | None]:
    """The process that forks, None where every command is to be started from nothing."""
    if os.environ.get("ALMANAQ_TEST_PROCESSES") or not hasattr(os, "fork"):
        yield None
        return
    process = Warm()
    yield process
    process.close()


@pytest.fixture
def installed(environment: dict[str, str], tmp_path: Path) -> Run:
    """Start the installed command in an empty folder; arguments as for `almanaq`."""

    def run(
        *arguments: str | Path, env: dict[str, str | None] | None = None, input: str = ""
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command(), *map(str, arguments)],
            capture_output=True,
            text=True,
            input=input,
            timeout=TIMEOUT,
            cwd=tmp_path,
            env=merged(environment, env),
            check=False,
        )

    return run


@pytest.fixture
def almanaq(
    environment: dict[str, str], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, warm: Warm | None,
    installed: Run,
) -> Run:  # fmt: skip
    """Run the command in an empty folder; `env` adds to the environment (None removes), `input` goes to stdin."""
    if warm is None:
        return installed

    def run(
        *arguments: str | Path, env: dict[str, str | None] | None = None, input: str = ""
    ) -> subprocess.CompletedProcess[str]:
        folder = tmp_path_factory.mktemp("streams")
        files = {name: folder / name for name in ("stdin", "stdout", "stderr")}
        for file in files.values():
            file.write_text("")
        files["stdin"].write_text(input)
        typed = [str(argument) for argument in arguments]
        streams = {name: str(file) for name, file in files.items()}
        code = warm.run(typed, merged(environment, env), tmp_path, streams)
        return subprocess.CompletedProcess(typed, code, files["stdout"].read_text(), files["stderr"].read_text())

    return run


def merged(environment: dict[str, str], more: dict[str, str | None] | None) -> dict[str, str]:
    """Return an environment with more in it, and without what is None."""
    both: dict[str, str | None] = {**environment, **(more or {})}
    return {name: value for name, value in both.items() if value is not None}


@pytest.fixture
def conforms() -> Callable[[str, Any], None]:
    """Check a value against the contract's JSON schema of that name."""

    def check(name: str, value: Any) -> None:
        schema = json.loads((Path(__file__).parent / "schemas" / f"{name}.json").read_text())
        jsonschema.validate(value, schema, cls=jsonschema.Draft202012Validator)

    return check


@pytest.fixture
def refused() -> Callable[..., str]:
    """Check that a run ended with an exit code and one clean message; give the message."""

    def check(run: subprocess.CompletedProcess[str], code: int, *parts: str) -> str:
        assert run.returncode == code, run.stdout + run.stderr
        assert run.stdout == ""
        assert run.stderr.strip()
        assert "Traceback" not in run.stderr
        assert "unexpected" not in run.stderr
        folded = " ".join(run.stderr.split()).casefold()
        for part in parts:
            assert part.casefold() in folded, run.stderr
        return run.stderr

    return check


@pytest.fixture
def places(tmp_path: Path) -> Path:
    """A folder with two CSV files: places with prose about them, and the cities they lie in."""
    folder = tmp_path / "places"
    folder.mkdir()
    folder.joinpath("places.csv").write_text(
        "id,name,city,rating,opened,notes\n"
        '1,Alba,Paris,4.5,2001-02-03,"Candles on every table, and the pianist takes requests after ten."\n'
        '2,Brio,Lyon,3.5,2011-05-06,"The queue reaches the corner at noon; the soup is worth half of it."\n'
        '3,Coda,Paris,4.0,2020-12-31,"Dogs get a bowl of water before their owners get a menu."\n'
        "4,Duna,Lyon,,2019-01-01,\n"
    )
    folder.joinpath("cities.csv").write_text("city,country\nParis,France\nLyon,France\n")
    return folder
