"""`almanaq ask`: one question, one reply with the query and the evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from almanaq.cli.options import Db, Deadline, Embedder, MaxCalls, Model, NoCache, Request, Schema, Strict, connected

if TYPE_CHECKING:
    from rich.console import Console

    from almanaq.agent.conversation import Response


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("ask")(ask)


def ask(
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="A question in plain words.")],
    db: Db,
    json: Annotated[bool, typer.Option("--json", help="Print the whole response as JSON.")] = False,
    model: Model = None,
    embedder: Embedder = None,
    schema: Schema = None,
    max_calls: MaxCalls = None,
    strict: Strict = None,
    deadline: Deadline = None,
    no_cache: NoCache = False,
) -> None:
    """Answer a question about a source.

    Prints the reply, the query that was run, its rows, and the quotes that they rest on.
    """
    from almanaq.cli.output import write_json
    from almanaq.cli.terminal import console, progress, warn
    from almanaq.encode import response_record

    request = Request(db, model, embedder, schema, max_calls, strict=strict, deadline=deadline, cache=not no_cache)
    with connected(request) as connection, progress("thinking …"):
        response = connection.ask(question)
    if json:
        write_json(response_record(response))
    elif response.error is None:
        print_response(response, console())
    if response.trace is not None:
        warn(response.trace.warnings)
    if response.error is not None:
        raise response.error


def print_response(response: Response, out: Console) -> None:
    """Print a reply, the query behind it and the quotes it rests on."""
    from rich.text import Text

    from almanaq.cli.terminal import print_evidence, print_query, print_rows, summary_line

    out.print(Text(response.answer))
    if not response.suql:
        return
    out.print()
    print_query(response.suql, out)
    if response.columns:
        print_rows(response.columns, response.rows, out)
    print_evidence(response.evidence, out)
    if response.trace is not None:
        out.print(Text(summary_line(len(response.rows), response.trace), style="dim"))
