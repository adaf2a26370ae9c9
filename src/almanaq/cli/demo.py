"""`almanaq demo`: three questions on the bundled sample, with everything between question and quote shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from almanaq.cli.options import Chosen, connect_source, take_options
from almanaq.visible import visible

if TYPE_CHECKING:
    from rich.console import Console

    from almanaq.connection import Connection

SOURCE = "sample:restaurants"

QUESTIONS = (
    "Which Italian restaurants in Palo Alto are romantic?",
    "Find a dog-friendly place in San Francisco rated at least 4",
    "What is the best rated Thai restaurant in San Francisco with easy parking?",
)


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("demo")(demo)


@take_options
def demo(
    *,
    chosen: Chosen,
) -> None:
    """Ask three questions of the bundled sample.

    It holds restaurants and their reviews, and needs no key and no network. Printed for each question: the query in
    SUQL, its plan, the rows, and a quoted review.
    """
    from almanaq.cli.terminal import console

    out = console()
    with connect_source(SOURCE, chosen, looks=False) as connection:
        for number, question in enumerate(QUESTIONS, 1):
            _show(connection, f"{number}. {question}", question, out)
    out.print(f'Ask your own:  almanaq ask "…" --db {SOURCE}')


def _show(connection: Connection, title: str, question: str, out: Console) -> None:
    """Ask one question and print each step on the way to its reply."""
    from rich.rule import Rule
    from rich.text import Text

    from almanaq.cli.rows import print_rows
    from almanaq.cli.short_plan import short_plan
    from almanaq.cli.terminal import print_evidence, print_query, progress, summary_line

    with progress(question):
        response = connection.ask(question)
    if response.error is not None:
        raise response.error
    out.print(Rule(Text(title, style="bold"), align="left"))
    if response.suql:
        _heading("SUQL", out)
        print_query(response.suql, out)
        _heading("Plan", out)
        out.print(
            Text(
                visible("\n".join(short_plan(connection.explain(response.suql, dialect=connection.engine.dialect)))),
                style="dim",
            )
        )
        _heading("Rows", out)
        print_rows(response.columns, response.rows, out)
        _heading("Evidence", out)
        print_evidence(response.evidence, out, per_row=1)
    _heading("Reply", out)
    out.print(Text(visible(response.answer)))
    if response.trace is not None:
        out.print(Text(summary_line(len(response.rows), response.trace), style="dim"))
    out.print()


def _heading(text: str, out: Console) -> None:
    out.print(text, style="bold")
