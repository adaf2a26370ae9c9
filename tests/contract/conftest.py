"""What the contract's tests share: the installed command as a subprocess, JSON schemas, small sources."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]

# A test must not see the settings of whoever runs it, nor fill their cache.
FOREIGN = ("ALMANAQ_", "OPENAI_", "COLUMNS", "LINES", "TERM", "NO_COLOR", "FORCE_COLOR", "TERMINAL_WIDTH")


def command() -> list[str]:
    """Give the installed `almanaq` beside this Python, else the module."""
    script = Path(sys.executable).with_name("almanaq")
    return [str(script)] if script.exists() else [sys.executable, "-m", "almanaq"]


@pytest.fixture
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a bare machine; the lexical embedder, which starts without loading weights."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    if "PYTHONPATH" in kept:
        kept["PYTHONPATH"] = os.pathsep.join(str(Path(p).absolute()) for p in kept["PYTHONPATH"].split(os.pathsep))
    cache = tmp_path_factory.mktemp("cache")
    return kept | {"ALMANAQ_CACHE_DIR": str(cache), "ALMANAQ_EMBEDDER": "lexical", "COLUMNS": "100", "NO_COLOR": "1"}


@pytest.fixture
def almanaq(environment: dict[str, str], tmp_path: Path) -> Run:
    """Run the command in an empty folder; `env` adds to the environment (None removes), `input` goes to stdin."""

    def run(
        *arguments: str | Path, env: dict[str, str | None] | None = None, input: str = "", timeout: float = 120
    ) -> subprocess.CompletedProcess[str]:
        merged: dict[str, str | None] = {**environment, **(env or {})}
        return subprocess.run(
            [*command(), *map(str, arguments)],
            capture_output=True,
            text=True,
            input=input,
            timeout=timeout,
            cwd=tmp_path,
            env={name: value for name, value in merged.items() if value is not None},
            check=False,
        )

    return run


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
