"""`almanaq ask`: one question, one reply with the query and the evidence."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Annotated

import typer

from almanaq.cli.options import Chosen, Db, Source, connect_source, name_source, take_options
from almanaq.cli.rows import Amount
from almanaq.visible import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from almanaq.agent.conversation import Response
    from almanaq.agent.events import Event


WIDE = 6
"""A single row of more columns is printed downwards."""
FIRST = Amount(10)
EVERYTHING = Amount(None)


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("ask")(ask)


@take_options
def ask(
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="A question in plain words.")],
    source: Source = None,
    db: Db = None,
    json: Annotated[bool, typer.Option("--json", help="Print the whole response as JSON.")] = False,
    all: Annotated[bool, typer.Option("--all", help="Print every row and column, not the first 10 rows.")] = False,
    *,
    chosen: Chosen,
) -> None:
    """Answer a question about a source.

    Prints the reply, the query that was run, and those rows and quotes that the reply does not show already.
    To see what a query costs before it runs, give it to almanaq sql with --explain.
    """
    from almanaq.cli.output import write_json
    from almanaq.cli.terminal import console, progress, warn
    from almanaq.encode import response_record

    with connect_source(name_source(source, db, command="ask QUESTION"), chosen) as connection:
        if json:
            with progress("thinking …"):
                response = connection.ask(question)
            write_json(response_record(response))
        else:
            response = print_stream(connection.ask_stream(question), console(), EVERYTHING if all else FIRST)
    if response.trace is not None:
        warn(response.trace.warnings)
    if response.error is not None:
        raise response.error


def print_stream(events: Iterator[Event], out: Console, amount: Amount = FIRST) -> Response:
    """Print a reply as it comes, then the query behind it and the quotes it rests on; what goes on shows on stderr.

    Gives the reply. Of one that failed nothing is printed: its error is the caller's to tell.
    """
    from rich.text import Text

    from almanaq.agent.events import Finished, Progress, TextWritten
    from almanaq.agent.local import asks_for_list
    from almanaq.cli.terminal import progress

    with progress("thinking …") as tell:
        for first in events:
            if isinstance(first, Progress):
                tell(first.message + " …")
            elif isinstance(first, TextWritten | Finished):
                break
    for event in chain([first], events):
        if isinstance(event, TextWritten):
            out.print(Text(visible(event.text)), end="")
        elif isinstance(event, Finished):
            last = event.response
    if last.error is None:
        out.print()
        print_grounds(last, out, EVERYTHING if asks_for_list(last.question) else amount)
    return last


def print_grounds(response: Response, out: Console, amount: Amount) -> None:
    """Print the query behind a reply, and the rows and quotes that the reply does not hold already."""
    from rich.text import Text

    from almanaq.agent.told import rows_told, untold
    from almanaq.cli.rows import print_rows
    from almanaq.cli.terminal import print_evidence, print_query, summary_line

    if not response.suql:
        return
    out.print()
    print_query(response.suql, out)
    shown = amount.rows is not None and rows_told(response)
    if shown:
        out.print()
    elif len(response.rows) == 1 and len(response.columns) > WIDE:
        print_rows(("column", "value"), list(zip(response.columns, response.rows[0], strict=True)), out, EVERYTHING)
    elif response.columns:
        print_rows(response.columns, response.rows, out, amount)
    print_evidence([untold(quotes, response.answer) for quotes in response.evidence[: amount.rows]], out)
    if response.trace is not None:
        out.print(Text(summary_line(len(response.rows), response.trace), style="dim"))
