"""An option that a command does not have is answered with the one that was meant; two sources are refused."""

from __future__ import annotations

import pytest
from typer.main import get_command

from almanaq.cli.app import COMMANDS, app

PROGRAM = get_command(app)
NAMES = list(COMMANDS)


def said_of(*args: str) -> str:
    with pytest.raises(Exception, match="No such option") as caught:
        PROGRAM.main(list(args), standalone_mode=False)
    return caught.value.format_message()  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", [name for name in NAMES if not hasattr(PROGRAM.commands[name], "commands")])  # type: ignore[attr-defined]
def test_every_option_with_two_letters_swapped_is_offered(name: str) -> None:
    command = PROGRAM.commands[name]  # type: ignore[attr-defined]
    options = {opt for param in command.params for opt in param.opts if opt.startswith("--") and len(opt) > 7}
    wrong = []
    for option in options:
        middle = len(option) // 2 + 1
        swapped = option[:middle] + option[middle + 1] + option[middle] + option[middle + 2 :]
        if swapped not in options and f"did you mean {option}?" not in said_of(name, swapped):
            wrong.append(swapped)
    assert wrong == []


def test_an_option_of_another_command_is_told_with_its_name() -> None:
    assert said_of("ask", "x", "--explain").endswith("that is an option of almanaq sql and find")
    assert "did you mean --explain? That is an option of almanaq sql and find" in said_of("ask", "x", "--explian")
    assert said_of("--verison").endswith("did you mean --version?")
    assert said_of("bench", "run", "--spilt", "test").endswith("did you mean --split?")
    assert said_of("sql", "--xyzzy") == "No such option: --xyzzy"


@pytest.mark.parametrize("args", [("--db", "a", "--db", "b"), ("--db=a", "--db", "b"), ("--db=a", "--db=b")])
def test_a_second_source_is_refused_and_not_taken_in_silence(args: tuple[str, ...]) -> None:
    with pytest.raises(Exception, match=r"--db is given 2 times \(.*a.*\)"):
        PROGRAM.main(["sql", "SELECT 1", *args], standalone_mode=False)


def test_the_same_source_twice_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    PROGRAM.main(
        ["sql", "SELECT 1 AS x", "--db", "sample:restaurants", "--db=sample:restaurants"], standalone_mode=False
    )
    assert "1" in capsys.readouterr().out
