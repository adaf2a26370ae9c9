"""Write or check the golden help texts, one file per command, under tests/golden/help.

`--write` writes them (`make docs`); without it, exit 1 and a list of the files that have drifted.
"""

from __future__ import annotations

import sys
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "tests" / "golden" / "help"
PLAIN = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}


def commands() -> dict[str, list[str]]:
    """Return the file name and the arguments of every command that the app has, almanaq-bench's included."""
    from typer import Context
    from typer.main import get_command

    from almanaq.cli.app import app

    found = {"almanaq": []}
    waiting = [([], get_command(app))]
    while waiting:
        path, group = waiting.pop()
        if not hasattr(group, "list_commands"):
            continue
        context = Context(group)
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            found[" ".join(["almanaq", *path, name]).replace(" ", "-")] = [*path, name]
            waiting.append(([*path, name], command))
    return dict(sorted(found.items()))


def render() -> dict[Path, str]:
    """Return the help text of every command, at a fixed width."""
    return {FOLDER / f"{name}.txt": _help(arguments) for name, arguments in commands().items()}


def find_drift() -> list[str]:
    """Name the golden files that are missing, stale, or left over from a command that is gone."""
    wanted = render()
    stale = [path.name for path, text in wanted.items() if not path.exists() or path.read_text() != text]
    return sorted(stale + [path.name for path in FOLDER.glob("*.txt") if path not in wanted])


def write() -> None:
    """Make the golden files what the commands print now."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    wanted = render()
    for path in FOLDER.glob("*.txt"):
        if path not in wanted:
            path.unlink()
    for path, text in wanted.items():
        path.write_text(text)


def _help(arguments: list[str]) -> str:
    from typer.testing import CliRunner

    from almanaq.cli.app import app

    run = CliRunner().invoke(
        app, [*arguments, "--help"], prog_name="almanaq", env=PLAIN, terminal_width=98, catch_exceptions=False
    )
    return "\n".join(line.rstrip() for line in run.stdout.splitlines()) + "\n"


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        write()
    elif stale := find_drift():
        sys.exit(f"drifted: {', '.join(stale)}; run `make docs` and read the difference")
