"""What people see at a terminal: progress, warnings, rows cut to what can be read, quotes, queries and short plans."""

from __future__ import annotations

import hashlib
import math
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import IO, TYPE_CHECKING, Any

from almanaq.display import cell_text, describe_progress, visible
from almanaq.event_loops import set_within
from almanaq.models.private_files import default_cache_folder
from almanaq.options import DEFAULT_CONFIRM_ABOVE

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress
    from rich.status import Status
    from rich.text import Text

    from almanaq.charts.chart import Chart
    from almanaq.models.protocols import Usage
    from almanaq.suql.accuracy import Inference
    from almanaq.suql.execution.forecast import Forecast
    from almanaq.suql.explain.explain import Explanation
    from almanaq.suql.result import Evidence, Result, Trace


MOST_ROWS = 40
CELL = 400
"""Longest cell, in characters, where there is room for it."""
_LEAST_WIDTH = 12
"""Narrowest column of longer cells."""
_GAP = 3
_BAR = 20
"""Longest bar beside a row, in characters."""
_LINES = 4
"""Lines that a cell takes at most where columns stand side by side."""
_BLOCKS = 3
"""So few rows are printed one below the other where their columns do not fit."""


@dataclass(frozen=True, slots=True)
class Amount:
    """How much of a result is printed.

    Attributes:
        rows: at most so many rows; None: every row and column, with their cells whole.
        lines: one row in a block of lines, however few its columns.
        chart: draw the chart of the result below its rows.
        more: how to see the rest, printed where something is left out.
    """

    rows: int | None = MOST_ROWS
    lines: bool = False
    chart: bool = False
    more: str = "--all prints everything"


def print_rows(
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    out: Console,
    amount: Amount | None = None,
    chart: Chart | None = None,
) -> None:
    """Print rows as a table, or one below the other; a NULL is empty, and what is left out is said."""
    amount = amount or Amount()
    if not rows:
        out.print("no rows")
        return
    shown = rows if amount.rows is None else rows[: amount.rows]
    fitting = _count_fitting(columns, shown, out.width)
    if amount.lines or (fitting < len(columns) and (amount.rows is None or len(shown) <= _BLOCKS)):
        _print_blocks(columns, shown, out, None if amount.rows is None else CELL)
        fitting = len(columns)
    else:
        _print_table(columns[:fitting], shown, out, amount, chart if fitting == len(columns) else None)
    left = []
    if len(shown) < len(rows):
        left.append(f"first {len(shown):,} of {len(rows):,} rows")
    if fitting < len(columns):
        left.append(f"first {fitting:,} of {len(columns):,} columns")
    if left:
        out.print(f"{', '.join(left)}: {amount.more}", style="dim")
    if amount.chart:
        print_chart(chart, out)


def print_chart(chart: Chart | None, out: Console) -> None:
    lines = ["no chart fits these columns"] if chart is None else [chart.title, *chart.lines(out.width)]
    out.print(style_text("\n".join(lines)), end="\n\n")


def _count_fitting(columns: Sequence[str], rows: Sequence[Sequence[Any]], width: int) -> int:
    taken = 0
    for index, name in enumerate(columns):
        longest = max(len(visible(name)), *(len(cell_text(row[index], _LEAST_WIDTH)) for row in rows))
        taken += min(longest, _LEAST_WIDTH) + (_GAP if index else 0)
        if taken > width and index:
            return index
    return len(columns)


def _print_table(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], out: Console, amount: Amount, chart: Chart | None
) -> None:
    from rich import box
    from rich.table import Table

    limit = None
    if amount.rows is not None:
        limit = min(CELL, max(4 * _LEAST_WIDTH, _LINES * out.width // max(1, len(columns))))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for index, name in enumerate(columns):
        numeric = all(isinstance(row[index], int | float) for row in rows if row[index] is not None)
        table.add_column(style_text(name), justify="right" if numeric else "left", overflow="fold")
    bars = _bars_beside(columns, rows, chart) if out.is_terminal and not amount.chart else []
    if bars:
        table.add_column("", no_wrap=True)
    for number, row in enumerate(rows):
        cells = [style_text(cell_text(value, limit)) for value in row[: len(columns)]]
        table.add_row(*cells, *bars[number : number + 1])
    out.print(table)


def _bars_beside(columns: Sequence[str], rows: Sequence[Sequence[Any]], chart: Chart | None) -> list[str]:
    if chart is None or chart.kind not in ("bar", "line", "share") or len(chart.y) != 1 or len(rows) < 2:
        return []
    from almanaq.charts.chart import draw_bars

    place = list(columns).index(chart.y[0])
    return [] if chart.kind == "line" and chart.colour else draw_bars([row[place] for row in rows], _BAR)


def _print_blocks(columns: Sequence[str], rows: Sequence[Sequence[Any]], out: Console, limit: int | None) -> None:
    from rich.table import Table

    for number, row in enumerate(rows, 1):
        out.print(f"— row {number:,} —", style="dim")
        block = Table(box=None, show_header=False, pad_edge=False)
        block.add_column(overflow="fold", max_width=max(_LEAST_WIDTH, out.width // 3))
        block.add_column(overflow="fold")
        for name, value in zip(columns, row, strict=True):
            block.add_row(style_text(name, "dim"), style_text(cell_text(value, limit)))
        out.print(block)


QUOTE = 300
"""Longest quote, in characters."""

# BETWEEN is a token so that its AND does not start a line.
_TOKEN = re.compile(
    r"""'(?:[^']|'')*'|"[^"]*"|[()]|\b(?:BETWEEN\s+\S+\s+AND|FROM|WHERE|GROUP\s+BY|HAVING|ORDER\s+BY|LIMIT|OFFSET"""
    r"""|UNION|INTERSECT|EXCEPT|(?:LEFT\s+|RIGHT\s+|FULL\s+|CROSS\s+|INNER\s+)?JOIN|AND|OR)\b""",
    re.IGNORECASE,
)


def console(file: IO[str] | None = None, width: int = 100) -> Console:
    """Return a console that fits the terminal, or so many columns where there is none."""
    from rich.console import Console

    class OurConsole(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # Rich would exit with 1

    file = file or sys.stdout
    fitting = None if file.isatty() else width
    return OurConsole(file=file, width=fitting, highlight=False, markup=False, emoji=False, soft_wrap=False)


def style_text(words: str, style: str = "") -> Text:
    """Return words as Rich prints them: they hold no markup, and nothing in them steers the terminal."""
    from rich.text import Text

    return Text(visible(words), style=style)


def asking(above: int | None) -> AbstractContextManager[None]:
    """Have the questions of this block ask before they take more requests than that; None: DEFAULT_CONFIRM_ABOVE."""
    from almanaq.suql.execution.forecast import confirming

    limit = DEFAULT_CONFIRM_ABOVE if above is None else above
    return confirming(limit, partial(confirm, strictly=above is not None))


def confirm(forecast: Forecast, *, strictly: bool = False) -> bool:
    """Say on stderr what a question takes, and ask whether to go on.

    Without a terminal nobody can be asked: it goes on, unless the limit is to be kept `strictly`.
    """
    warn([f"{'by its replies so far, ' if forecast.begun else ''}the question takes {forecast}"])
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return not strictly
    status = _status.get()
    if status is not None:
        status.stop()
    print("Go on? [y/N] ", end="", file=sys.stderr, flush=True)
    agreed = sys.stdin.readline().strip().lower() in ("y", "yes")
    if status is not None:
        status.start()
    return agreed


_status: ContextVar[Status | Progress | None] = ContextVar("status", default=None)


@contextmanager
def progress(message: str) -> Iterator[Callable[[str], None]]:
    """Show a spinner on stderr while the work goes on, and give what changes its words; nothing without a terminal.

    Queries of this block show how far they are.
    """
    from almanaq.jobs import show_progress

    if not sys.stderr.isatty():
        yield lambda _: None
        return
    with (
        console(sys.stderr).status(visible(message)) as status,
        set_within(_status, status),
        show_progress(lambda *reached: status.update(visible(describe_progress(*reached)))),
    ):
        yield lambda words: status.update(visible(words))


@contextmanager
def show_reading() -> Iterator[None]:
    """Show on a terminal how far a query is and what it cost; Ctrl-C there gives the rows that are sure."""
    from almanaq.suql.execution.forecast import watched

    if not sys.stderr.isatty():
        with watched(lambda *_: None):
            yield
        return
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

    from almanaq.models.budget import spending

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(24), TimeRemainingColumn())
    with Progress(*columns, console=console(sys.stderr), transient=True) as shown, spending() as account:
        bar = shown.add_task("running …", total=None)

        def tell(done: int, total: int | None, passed: int, forecast: Forecast | None) -> None:
            words = describe_course(done, total, passed, account.usage, forecast)
            shown.update(bar, completed=done, total=total, description=words)

        with watched(tell), set_within(_status, shown):
            yield


def describe_course(done: int, total: int | None, passed: int, spent: Usage, forecast: Forecast | None = None) -> str:
    """Say how far a query is: rows, calls, and what they cost so far, and what it is expected to take in all."""
    words = describe_progress(done, total, passed)
    if spent.calls:
        words += f", {spent.calls:,}{'' if forecast is None else f' of about {forecast.requests:,}'} calls"
    if spent.calls and spent.money:
        words += f", ${spent.money:,.2f}"
        words += "" if forecast is None or forecast.money is None else f" of about ${forecast.money:,.2f}"
    return words


def say(text: str = "") -> None:
    """Print text for people on stdout; characters that would steer the terminal are escaped."""
    print(visible(text), flush=True)


def warn(messages: Sequence[str]) -> None:
    """Print warnings on stderr; characters that would steer the terminal are escaped."""
    for message in messages:
        print(f"almanaq: {visible(message)}", file=sys.stderr)


def warn_of_result(trace: Trace, *more: str) -> None:
    """Print the warnings of a query on stderr, the first of its unknown answers, and what else is to be said."""
    from almanaq.suql.result import UNKNOWN_SHOWN, describe_unknown

    warn([*trace.warnings, *(f"unknown: {line}" for line in describe_unknown(trace, UNKNOWN_SHOWN)), *more])


_quiet: ContextVar[bool] = ContextVar("almanaq_quiet", default=False)


def silence_notes(quiet: bool) -> AbstractContextManager[None]:
    """Leave out the notes about sources within the block, if `quiet`."""
    return set_within(_quiet, quiet)


def warn_of_source(messages: Sequence[str], source: str) -> None:
    """Print one line on the notes of opening a source, and in full those that a change of its files has added."""
    if _quiet.get():
        return
    added = _find_new_notes(messages, source)
    warn(added)
    if len(messages) < 2:
        warn([] if added else messages)
        return
    missing = sum(": not opened: " in message for message in messages)
    left_out = f" ({missing:,} not opened)" if missing else ""
    warn([f"{len(messages):,} notes about these files{left_out}: almanaq schema {shlex.quote(source)}"])


def _find_new_notes(messages: Sequence[str], source: str) -> list[str]:
    """Return the notes that a source did not have when it was opened last; none the first time. Hashes are kept."""
    name, *marks = (hashlib.sha256(text.encode()).hexdigest()[:32] for text in (os.path.abspath(source), *messages))
    file = default_cache_folder() / "notes" / name
    with suppress(OSError):
        seen = file.read_text().split() if file.exists() else marks
        if marks != seen or not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            file.write_text("\n".join(marks))
        return [message for message, mark in zip(messages, marks, strict=True) if mark not in seen]
    return []


def print_result(result: Result, out: Console, amount: Amount | None = None) -> None:
    amount = amount or Amount()
    print_rows(result.columns, result.rows, out, amount, result.chart() if out.is_terminal or amount.chart else None)
    print_evidence(result.evidence[: amount.rows], out)
    out.print(summary_line(len(result.rows), result.trace), style="dim")


def print_evidence(evidence: Sequence[Sequence[Evidence]], out: Console, per_row: int = 2) -> None:
    for quotes in evidence:
        for quote in quotes[:per_row]:
            out.print(style_text(f'  "{cell_text(quote.quote, QUOTE)}"', "italic"))
            out.print(style_text(f"    {quote.place}: {quote.question}", "dim"))


def print_query(suql: str, out: Console) -> None:
    """Print a query one clause to a line; what is copied from there is the query itself."""
    out.print(style_text(break_query(suql), "cyan"), soft_wrap=True)


def break_query(suql: str) -> str:
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


def summary_line(rows: int, trace: Trace) -> str:
    """Say in one line how many rows there are and what they took."""
    parts = [_count_noun(rows, "row"), _count_noun(trace.text_calls, "text call")]
    if trace.cached_calls:
        parts.append(f"{trace.cached_calls} from the cache")
    if trace.unknown_calls:
        parts.append(f"{trace.unknown_calls} unknown")
    if requests := sum(line.usage.calls for line in trace.spending):
        parts.append(_count_noun(requests, "request"))
    if trace.input_tokens or trace.output_tokens:
        parts.append(f"{trace.input_tokens:,} + {trace.output_tokens:,} tokens")
    if trace.money and (trace.input_tokens or trace.output_tokens):
        parts.append(dollars(trace.money))
    if trace.cached_input_tokens:
        parts.append(f"{trace.cached_input_tokens:,} of them cached by the server")
    parts.append(f"{trace.seconds:.2f} s")
    if trace.columns_sent:
        sent = ", ".join(f"{column} ({_count_noun(cells, 'cell')})" for column, cells in trace.columns_sent)
        parts.append(f"sent to the model: {visible(sent)}")
    if not trace.exact:
        chosen = "not exact" if trace.unknown_calls or trace.unknown_answers else "approximate"
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
    known = inference.certificate
    inferred = f"{known.asked:,} of {inference.rows:,} rows read, {known.accepted:,} accepted unread"
    if not known.certified:
        return f"{inferred}, not certified"
    recall, precision = (f"{math.floor(1000 * share) / 1000:g}" for share in (known.recall, known.precision))
    sure = f"recall at least {recall}, precision at least {precision}"
    return f"{inferred}: {sure}, with probability {1 - inference.targets.delta:g}"


def _count_noun(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def short_plan(explanation: Explanation) -> list[str]:
    """Return what a plan asks of texts, when it stops and what it is expected to take; all of it is `--explain`."""
    lines = [f"link: {stage.what}" for stage in explanation.stages if stage.stage == "link"]
    for stage in explanation.stages:
        if stage.stage.startswith("text"):
            _, *asked = stage.what.splitlines()  # the first says in SQL which rows are read
            lines += [*asked, f"expected: about {stage.predicted['calls']:,} text calls"]
    return lines or ["the database runs the whole query"]
