"""`almanaq chat`: a conversation in the terminal."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

import typer

from almanaq.cli.ask import print_stream
from almanaq.cli.options import Chosen, Db, Source, connect_source, name_source, take_options
from almanaq.cli.out_file import check_out
from almanaq.cli.output import choose_format
from almanaq.cli.rows import Amount
from almanaq.cli.run_query import Output, run_query
from almanaq.errors import AlmanaqError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from almanaq.agent.response import Response
    from almanaq.connection import Connection

LEAVE = frozenset({"exit", "quit", "bye", ":q"})
_FIRST = Amount(10, more="“list them all” shows the rest")
_EXPORT = re.compile(
    r"(?:please )?(?:export|save|write|store)"
    r"(?: (?:it|them|these|those|this|that|everything|the (?:list|rows|results?|table)))?"
    r"(?: all)?(?: (?:to|as|into|in))?(?: (?:a |the )?file)? (\S+\.\w+[\"'”]?)[.!]?",
    re.IGNORECASE,
)


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("chat")(chat)


@take_options
def chat(
    source: Source = None,
    db: Db = None,
    *,
    chosen: Chosen,
) -> None:
    """Talk with a source, one question per line.

    Each reply knows what was said before. "List them all", "sort them by COLUMN" and "export to FILE" do what they say
    with the rows of the last reply. Where a reply offers readings, a number chooses one, and an empty line the first;
    "exit", or the end of the input, leaves.
    """
    from almanaq.cli.terminal import console, warn

    out = console()
    with connect_source(name_source(source, db, command="chat"), chosen) as connection:
        conversation = connection.chat()
        last: Response | None = None
        offered: list[bool] = [False]
        for question in _questions(offered):
            if (file := export_wanted(question)) is not None:
                warn([_export(connection, last, file)])
                continue
            response = print_stream(conversation.stream(question), out, _FIRST)
            offered[:] = [bool(response.readings)]
            if response.rows:
                last = response
            if response.error is not None:
                # One question that fails must not lose the conversation.
                warn([str(response.error)])
            else:
                out.print()


def export_wanted(question: str) -> str | None:
    """Return the file that a line asks to write the rows to; None for any other line."""
    found = _EXPORT.fullmatch(question)
    return None if found is None else found[1].strip("\"'“”")


def _export(connection: Connection, response: Response | None, file: str) -> str:
    """Write the rows of a reply to a file, all that there are, and give what is to be told of it."""
    from almanaq.agent.local import without_limit

    if response is None or response.suql is None:
        return "there are no rows to write yet: ask for some first"
    try:
        format = choose_format(None, file)
        check_out(file)
        run_query(connection, (without_limit(response.suql, connection.engine.dialect), ()), Output(format, file))
    except AlmanaqError as problem:
        return str(problem)
    return f"written: {file}"


def _questions(offered: Sequence[bool]) -> Iterator[str]:
    """Yield the lines that ask something, with a prompt where a person types them.

    An empty line chooses the first of the readings that were offered, and is passed over elsewhere.
    """
    prompt = "> " if sys.stdin.isatty() and sys.stdout.isatty() else ""
    while True:
        try:
            line = input(prompt).strip()
        except EOFError:
            return
        if line.casefold() in LEAVE:
            return
        if line or offered[0]:
            yield line or "1"
