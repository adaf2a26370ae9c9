"""Every command takes its source as an argument or as --db, and once."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

import almanaq
from almanaq.cli.app import app
from almanaq.errors import UsageError

COMMANDS = {
    "schema": ["schema"],
    "sql": ["sql", "SELECT count(*) FROM dogs"],
    "ask": ["ask", "How many dogs are there?"],
    "find": ["find", "dogs"],
}


@pytest.fixture
def dogs(tmp_path: Path) -> str:
    file = tmp_path / "dogs.csv"
    file.write_text("name,age\nRex,3\nBo,5\n")
    return str(file)


def said_by(*args: str) -> str:
    result = CliRunner().invoke(app, list(args))
    assert result.exit_code == 0, result.output
    return result.stdout.split("·")[0]  # without the seconds


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_source_is_an_argument_or_an_option(command: list[str], dogs: str) -> None:
    assert said_by(*command, dogs) == said_by(*command, "--db", dogs)


def test_queries_of_a_file_leave_the_argument_to_the_source(dogs: str, tmp_path: Path) -> None:
    queries = tmp_path / "queries.sql"
    queries.write_text("SELECT max(age) FROM dogs")
    assert said_by("sql", "--file", str(queries), dogs) == said_by("sql", "SELECT max(age) FROM dogs", dogs)


@pytest.mark.parametrize("command", [*COMMANDS.values(), ["chat"]], ids=[*COMMANDS, "chat"])
def test_a_source_is_named_once(command: list[str], dogs: str) -> None:
    for named in ([], [dogs, "--db", dogs]):
        result = CliRunner().invoke(app, [*command, *named])
        assert result.exception is not None
        assert "once: " in str(result.exception)


@pytest.mark.parametrize("command", [*COMMANDS.values(), ["chat"], ["index", "--out", "ix"]])
def test_an_empty_text_is_no_source(command: list[str]) -> None:
    result = CliRunner().invoke(app, [*command, "--db", ""])
    assert isinstance(result.exception, UsageError)


def test_an_empty_text_is_no_source_in_python() -> None:
    for read in (almanaq.connect, almanaq.tables, lambda source: almanaq.connect([source])):
        with pytest.raises(UsageError, match="name the source"):
            read("")
