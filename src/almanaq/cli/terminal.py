"""What people see: tables, quotes and traces on stdout; progress and warnings on stderr."""

from __future__ import annotations

import math
import re
import sys
from contextlib import contextmanager
from decimal import Decimal
from typing import IO, TYPE_CHECKING

from almanaq.cli.rows import Amount, print_rows, shorten
from almanaq.visible import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.console import Console

    from almanaq.models.protocols import Usage
    from almanaq.suql.accuracy.targets import Inference
    from almanaq.suql.result import Evidence, Result, Trace

QUOTE = 300
"""Longest quote, in characters."""
MESSAGES = 20
"""Most messages about a source that a command prints."""

# BETWEEN is a token so that its AND does not start a line.
_TOKEN = re.compile(
    r"""'(?:[^']|'')*'|"[^"]*"|[()]|\b(?:BETWEEN\s+\S+\s+AND|FROM|WHERE|GROUP\s+BY|HAVING|ORDER\s+BY|LIMIT|OFFSET"""
    r"""|UNION|INTERSECT|EXCEPT|(?:LEFT\s+|RIGHT\s+|FULL\s+|CROSS\s+|INNER\s+)?JOIN|AND|OR)\b""",
    re.IGNORECASE,
)


def console(file: IO[str] | None = None) -> Console:
    """Return a console that fits the terminal, or 100 columns where there is none."""
    from rich.console import Console

    file = file or sys.stdout
    width = None if file.isatty() else 100
    return Console(file=file, width=width, highlight=False, markup=False, emoji=False, soft_wrap=False)


@contextmanager
def progress(message: str) -> Iterator[Callable[[str], None]]:
    """Show a spinner on stderr while the work goes on, and give what changes its words; nothing without a terminal."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    with console(sys.stderr).status(visible(message)) as status:
        yield lambda words: status.update(visible(words))


@contextmanager
def reading() -> Iterator[None]:
    """Show on stderr how many rows a query has read, what that cost, and how long the rest will take.

    Nothing is shown without a terminal. Ctrl-C is Interrupted there, with the rows that are sure.
    """
    from almanaq.suql.execution.watch import watched

    if not sys.stderr.isatty():
        with watched(lambda *_: None):
            yield
        return
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

    from almanaq.models.budget import spending

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(24), TimeRemainingColumn())
    with Progress(*columns, console=console(sys.stderr), transient=True) as shown, spending() as account:
        bar = shown.add_task("running …", total=None)

        def tell(done: int, total: int | None, passed: int) -> None:
            words = course(done, total, passed, account.usage)
            shown.update(bar, completed=done, total=total, description=words)

        with watched(tell):
            yield


def course(done: int, total: int | None, passed: int, spent: Usage) -> str:
    """Say how far a query is: rows, calls, and what they cost so far and will cost in all where that is known."""
    rows = f"{done:,} rows" if total is None else f"{done:,} of {total:,} rows"
    words = f"{rows} read, {passed:,} found"
    if spent.calls:
        words += f", {spent.calls:,} calls"
    if spent.calls and spent.money:
        words += f", ${spent.money:,.2f}"
        words += f" of about ${spent.money / done * total:,.2f}" if total and done else ""
    return words


def say(text: str = "") -> None:
    """Print text for people on stdout; what in it would steer the terminal is written out."""
    print(visible(text), flush=True)


def warn(messages: Sequence[str]) -> None:
    """Print warnings on stderr; what in them would steer the terminal is written out."""
    for message in messages:
        print(f"almanaq: {visible(message)}", file=sys.stderr)


def warn_of_source(messages: Sequence[str], most: int = MESSAGES) -> None:
    """Print what there is to know of how a source was opened, in one list; the rest is counted where it is long."""
    warn(messages[:most])
    if len(messages) > most:
        warn([f"… and {len(messages) - most:,} more of the kind; `almanaq schema SOURCE` lists them all"])


def print_result(result: Result, out: Console, amount: Amount | None = None) -> None:
    """Print rows, the quotes they rest on, and what the query took."""
    amount = amount or Amount()
    print_rows(result.columns, result.rows, out, amount)
    print_evidence(result.evidence[: amount.rows], out)
    out.print(summary_line(len(result.rows), result.trace), style="dim")


def print_evidence(evidence: Sequence[Sequence[Evidence]], out: Console, per_row: int = 2) -> None:
    """Print the first quotes of each row with the place they stand at."""
    from rich.text import Text

    for quotes in evidence:
        for quote in quotes[:per_row]:
            out.print(Text(f'  "{visible(shorten(quote.quote, QUOTE))}"', style="italic"))
            out.print(Text(visible(f"    {quote.place}: {quote.question}"), style="dim"))


def print_query(suql: str, out: Console) -> None:
    """Print a query one clause to a line; what is copied from there is the query itself."""
    from rich.text import Text

    out.print(Text(visible(layout(suql)), style="cyan"), soft_wrap=True)


def layout(suql: str) -> str:
    """Break a query of one line before its clauses and conditions; quoted text and parentheses stay whole."""
    if "\n" in suql.strip():
        return suql.strip()
    lines, depth, start = [], 0, 0
    for match in _TOKEN.finditer(suql):
        token = match.group().upper()
        depth += (token == "(") - (token == ")")
        breaks = token[0].isalpha() and not token.startswith("BETWEEN")
        if breaks and depth == 0 and match.start() > 0:
            lines.append(suql[start : match.start()].strip())
            start = match.start()
    return "\n".join(
        f"  {line}" if line[:3].upper() in ("AND", "OR ") else line for line in [*lines, suql[start:].strip()]
    )


TURN_PROMPTS = frozenset({"parse", "classify_turn", "relax", "respond", "chat", "link"})
"""The prompts of a turn that read no text for a condition."""


def summary_line(rows: int, trace: Trace) -> str:
    """Say in one line how many rows there are and what they took."""
    parts = [_count(rows, "row"), _count(trace.text_calls, "text call")]
    if trace.cached_calls:
        parts.append(f"{trace.cached_calls} from the cache")
    if trace.unknown_calls:
        parts.append(f"{trace.unknown_calls} unknown")
    if others := sum(line.physical for line in trace.spending if line.operator in TURN_PROMPTS):
        parts.append(_count(others, "other call"))
    if trace.input_tokens or trace.output_tokens:
        parts.append(f"{trace.input_tokens:,} + {trace.output_tokens:,} tokens")
    if trace.money and (trace.input_tokens or trace.output_tokens):
        parts.append(dollars(trace.money))
    if trace.cached_input_tokens:
        parts.append(f"{trace.cached_input_tokens:,} of them cached by the server")
    parts.append(f"{trace.seconds:.2f} s")
    if trace.columns_sent:
        sent = ", ".join(f"{column} ({_count(cells, 'cell')})" for column, cells in trace.columns_sent)
        parts.append(f"sent to the model: {visible(sent)}")
    if not trace.exact:
        chosen = "not exact" if trace.unknown_calls else "approximate"
        parts.append(chosen if trace.inference is None else inference_line(trace.inference))
    if trace.partial:
        parts.append("partial")
    return " · ".join(parts)


def dollars(money: float) -> str:
    """Return a sum as it is shown; small ones keep two figures that say something.

    >>> dollars(12.5), dollars(0.29), dollars(0.00026)
    ('$12.50', '$0.29', '$0.00026')
    """
    return f"${money:,.2f}" if money >= 0.01 else f"${Decimal(f'{money:.2g}'):f}"


def inference_line(inference: Inference) -> str:
    """Say what was inferred, and what surely holds of it."""
    known = inference.certificate
    inferred = f"{known.asked:,} of {inference.rows:,} rows asked, {known.accepted:,} accepted unasked"
    if not known.certified:
        return f"{inferred}, not certified"
    sure = f"recall at least {_floor(known.recall)}, precision at least {_floor(known.precision)}"
    return f"{inferred}: {sure}, with probability {1 - inference.targets.delta:g}"


def _floor(share: float) -> str:
    return f"{math.floor(1000 * share) / 1000:g}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
