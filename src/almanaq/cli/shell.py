"""`almanaq SOURCE`: queries and questions at a prompt, or from standard input."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from almanaq.cli.options import SOURCE_HELP, Chosen, connect_source, take_options
from almanaq.cli.terminal import say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from almanaq.cli.session import Session

PROMPT, MORE = "almanaq> ", "     ...> "


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("shell")(shell)


@take_options
def shell(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help=SOURCE_HELP)],
    *,
    chosen: Chosen,
) -> None:
    """Type queries; `almanaq SOURCE` does the same.

    A query ends with a semicolon and may take several lines; lines that start with a dot are commands (.help). Names
    are completed by the Tab key, and earlier lines come back with the arrow keys. Queries from a pipe are run one
    after another up to the first that fails.
    """
    from almanaq.cli.session import Session

    interactive = sys.stdin.isatty()
    with connect_source(source, chosen) as connection:
        session = Session(connection, stops=not interactive)
        if interactive:
            say(f"{source}: queries end with a semicolon, .help lists the commands, .quit leaves")
        for line in _typed(session) if interactive else sys.stdin:
            if not session.feed(line):
                return
        session.finish()


def _typed(session: Session) -> Iterator[str]:
    """Yield the lines that a person types; Ctrl-C takes back what was begun."""
    from almanaq.cli.editing import editing

    with editing(session):
        while True:
            try:
                yield input(MORE if session.unfinished else PROMPT)
            except EOFError:
                print()
                return
            except KeyboardInterrupt:
                print()
                session.forget()
