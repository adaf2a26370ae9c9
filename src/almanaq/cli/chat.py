"""`almanaq chat`: a conversation in the terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

from almanaq.cli.ask import print_stream
from almanaq.cli.options import (
    AllowHttp,
    Db,
    Deadline,
    Embedder,
    Examples,
    MaxCalls,
    Model,
    NoCache,
    Request,
    Schema,
    connected,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

LEAVE = frozenset({"exit", "quit", "bye", ":q"})


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("chat")(chat)


def chat(
    db: Db,
    model: Model = None,
    embedder: Embedder = None,
    schema: Schema = None,
    examples: Examples = None,
    max_calls: MaxCalls = None,
    deadline: Deadline = None,
    no_cache: NoCache = False,
    allow_http: AllowHttp = False,
) -> None:
    """Talk with a source, one question per line.

    Each reply knows what was said before. An empty line is passed over; "exit", or the end of the input, leaves.
    """
    from almanaq.cli.terminal import console, warn

    request = Request(
        db,
        model,
        embedder,
        schema,
        max_calls,
        deadline=deadline,
        cache=not no_cache,
        examples=examples,
        allow_http=allow_http,
    )
    out = console()
    with connected(request) as connection:
        conversation = connection.chat()
        for question in _questions():
            response = print_stream(conversation.stream(question), out)
            if response.error is not None:
                # One question that fails must not lose the conversation.
                warn([str(response.error)])
            else:
                out.print()


def _questions() -> Iterator[str]:
    """Yield the lines that ask something, with a prompt where a person types them."""
    prompt = "> " if sys.stdin.isatty() and sys.stdout.isatty() else ""
    while True:
        try:
            line = input(prompt).strip()
        except EOFError:
            return
        if line.casefold() in LEAVE:
            return
        if line:
            yield line
