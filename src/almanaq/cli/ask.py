"""`almanaq ask`, `chat` and `demo`: questions in plain words, with the query and the evidence of each reply."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Annotated

import typer

from almanaq.cli.options import Chosen, Db, Source, connect_source, is_source, name_source, take_options
from almanaq.cli.output import check_out, choose_format, write_json
from almanaq.cli.sql import Output, run_query
from almanaq.cli.terminal import (
    Amount,
    asking,
    console,
    print_chart,
    print_evidence,
    print_query,
    print_rows,
    progress,
    short_plan,
    style_text,
    summary_line,
    warn,
    warn_of_result,
)
from almanaq.errors import AlmanaqError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from almanaq.agent.response import Event, Response
    from almanaq.connection import Connection


WIDE = 6
"""A single row with more columns is printed vertically."""
FIRST = Amount(10)
EVERYTHING = Amount(None)


@take_options
def ask(
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="A question in plain words.")],
    source: Source = None,
    db: Db = None,
    json: Annotated[bool, typer.Option("--json", help="Print the whole response as JSON.")] = False,
    all: Annotated[bool, typer.Option("--all", help="Print every row and column, not the first 10 rows.")] = False,
    chart: Annotated[bool, typer.Option("--chart", help="Draw the chart of the rows below them.")] = False,
    *,
    chosen: Chosen,
) -> None:
    """Answer a question about a source; the two may stand in either order.

    Prints the reply, the query that was run, and those rows and quotes that the reply does not show already.
    To see what a query costs before it runs, give it to almanaq sql with --explain.
    """
    from almanaq.encode import response_record

    if source is not None and is_source(question) and not is_source(source):
        question, source = source, question
    opened = connect_source(name_source(source, db, command="ask QUESTION"), chosen)
    with opened as connection, asking(connection.engine.options.confirm_above):
        if json:
            with progress("thinking …"):
                response = connection.ask(question)
            write_json(response_record(response))
        else:
            response = print_stream(
                connection.ask_stream(question), console(), replace(EVERYTHING if all else FIRST, chart=chart)
            )
    if response.trace is not None:
        warn_of_result(response.trace)
    if response.error is not None:
        raise response.error


def print_stream(events: Iterator[Event], out: Console, amount: Amount = FIRST) -> Response:
    """Print a reply as it comes, then the query behind it and the quotes it rests on; what goes on shows on stderr.

    Returns the reply. Of a failed one nothing is printed: the caller reports its error.
    """
    from almanaq.agent.local import asks_for_list
    from almanaq.agent.response import Finished, Progress, TextWritten

    with progress("thinking …") as tell:
        for first in events:
            if isinstance(first, Progress):
                tell(first.message + " …")
            elif isinstance(first, TextWritten | Finished):
                break
    for event in chain([first], events):
        if isinstance(event, TextWritten):
            out.print(style_text(event.text), end="")
        elif isinstance(event, Finished):
            last = event.response
    if last.error is None:
        out.print()
        print_evidence_of_reply(last, out, replace(amount, rows=None) if asks_for_list(last.question) else amount)
    return last


def print_evidence_of_reply(response: Response, out: Console, amount: Amount) -> None:
    """Print the query behind a reply, and the rows and quotes that the reply does not hold already."""
    from almanaq.agent.responder import quotes_not_shown, shows_all_rows

    if not response.suql:
        return
    out.print()
    print_query(response.suql, out)
    chart = response.chart() if out.is_terminal or amount.chart else None
    if amount.rows is not None and shows_all_rows(response):
        out.print()
        if amount.chart:
            print_chart(chart, out)
    elif len(response.rows) == 1 and len(response.columns) > WIDE:
        print_rows(("column", "value"), list(zip(response.columns, response.rows[0], strict=True)), out, EVERYTHING)
    elif response.columns:
        print_rows(response.columns, response.rows, out, amount, chart)
    print_evidence([quotes_not_shown(quotes, response.answer) for quotes in response.evidence[: amount.rows]], out)
    if response.trace is not None:
        out.print(style_text(summary_line(len(response.rows), response.trace), "dim"))


LEAVE = frozenset({"exit", "quit", "bye", ":q"})
_FIRST = Amount(10, more="“list them all” shows the rest")
_EXPORT = re.compile(
    r"(?:please )?(?:export|save|write|store)"
    r"(?: (?:it|them|these|those|this|that|everything|the (?:list|rows|results?|table)))?"
    r"(?: all)?(?: (?:to|as|into|in))?(?: (?:a |the )?file)? (\S+\.\w+[\"'”]?)[.!]?",
    re.IGNORECASE,
)


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
    out = console()
    named = name_source(source, db, command="chat")
    with connect_source(named, chosen) as connection:
        conversation = connection.chat()
        last: Response | None = None
        prompt = "> " if sys.stdin.isatty() and sys.stdout.isatty() else ""
        offered = False
        while (question := _read_question(prompt, offered)) is not None:
            if (export := _EXPORT.fullmatch(question)) is not None:
                warn([_export(connection, named, last, export[1].strip("\"'“”"))])
                continue
            response = print_stream(conversation.stream(question), out, _FIRST)
            offered = bool(response.readings)
            if response.rows:
                last = response
            if response.error is not None:
                # One question that fails must not lose the conversation.
                warn([str(response.error)])
            else:
                out.print()


def _export(connection: Connection, source: str, response: Response | None, file: str) -> str:
    """Write all rows of a reply to a file; return a message about it."""
    from almanaq.agent.local import without_limit

    if response is None or response.suql is None:
        return "there are no rows to export yet: ask a question first"
    try:
        format = choose_format(None, file)
        check_out(file, source)
        run_query(connection, (without_limit(response.suql, connection.engine.dialect), ()), Output(format, file))
    except AlmanaqError as problem:
        return str(problem)
    return f"written: {file}"


def _read_question(prompt: str, offered: bool) -> str | None:
    """Return the next line that asks something, None for one that leaves; an empty one chooses the first reading."""
    while True:
        try:
            line = input(prompt).strip()
        except EOFError:
            return None
        if line.casefold() in LEAVE:
            return None
        if line or offered:
            return line or "1"


SOURCE = "sample:restaurants"

QUESTIONS = (
    "Which Italian restaurants in Palo Alto are romantic?",
    "Find a dog-friendly place in San Francisco rated at least 4",
    "What is the best rated Thai restaurant in San Francisco with easy parking?",
)


@take_options
def demo(
    *,
    chosen: Chosen,
) -> None:
    """Ask three questions of the bundled sample.

    It holds restaurants and their reviews, and needs no key and no network. Printed for each question: the query in
    SUQL, its plan, the rows, and a quoted review.
    """
    out = console()
    with connect_source(SOURCE, chosen, looks=False) as connection:
        for number, question in enumerate(QUESTIONS, 1):
            _show_steps(connection, f"{number}. {question}", question, out)
    out.print(f'Ask your own:  almanaq ask "…" --db {SOURCE}')


def _show_steps(connection: Connection, title: str, question: str, out: Console) -> None:
    from rich.rule import Rule

    with progress(question):
        response = connection.ask(question)
    if response.error is not None:
        raise response.error
    out.print(Rule(style_text(title, "bold"), align="left"))
    if response.suql:
        plan = short_plan(connection.explain(response.suql, dialect=connection.engine.dialect))
        out.print("SUQL", style="bold")
        print_query(response.suql, out)
        out.print("Plan", style="bold")
        out.print(style_text("\n".join(plan), "dim"))
        out.print("Rows", style="bold")
        print_rows(response.columns, response.rows, out)
        out.print("Evidence", style="bold")
        print_evidence(response.evidence, out, per_row=1)
    out.print("Reply", style="bold")
    out.print(style_text(response.answer))
    if response.trace is not None:
        out.print(style_text(summary_line(len(response.rows), response.trace), "dim"))
    out.print()
