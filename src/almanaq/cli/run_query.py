"""Runs one query and writes its rows, those that are sure also when it was stopped."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from almanaq.cli.out_file import open_out, remove_left_over
from almanaq.cli.output import Format, rows_writer, write_result
from almanaq.cli.rows import Amount
from almanaq.cli.terminal import reading, warn
from almanaq.errors import BudgetExceeded, DeadlineExceeded

if TYPE_CHECKING:
    from almanaq.connection import Connection
    from almanaq.suql.result import Trace

Query = tuple[str, tuple[str, ...]]
"""A query with the values of its placeholders."""

_INCOMPLETE = "these rows are in the result, and are not all of it"


@dataclass(frozen=True, slots=True)
class Output:
    """How rows are written, where, and how many of them where they are printed as a table.

    Attributes:
        resume: an earlier run may have ended half-way: what it left is taken away, and what it paid for is told.
        materialize: a DuckDB file that keeps the rows with their quotes, in place of any other output.
    """

    format: Format
    out: str | None = None
    no_formulas: bool = False
    amount: Amount = field(default_factory=Amount)
    resume: bool = False
    materialize: Path | None = None


def run_query(connection: Connection, query: Query, output: Output) -> None:
    """Run a query and write its rows."""
    if output.materialize is not None:
        _materialize(connection, query, output.materialize)
        return
    if output.resume and output.out is not None:
        remove_left_over(output.out)
    run = _run if output.format in (Format.table, Format.json) else _write
    run(connection, query, output)


def _materialize(connection: Connection, query: Query, path: Path) -> None:
    """Run a query and keep its rows with their quotes; nothing is replaced by rows that are not all."""
    from dataclasses import replace

    from almanaq.cli.materialize import materialize

    with reading():
        result = connection.sql(*query, options=replace(connection.engine.options, max_result_mb=None))
    materialize(result, path)
    warn([*result.trace.warnings, what_it_took(result.trace, len(result))])


def _write(connection: Connection, query: Query, output: Output) -> None:
    """Run a query and write its rows as they come, held nowhere; those that are sure also when a budget stopped it."""
    from almanaq.suql.execution.report import Interrupted
    from almanaq.suql.result import Result

    stopped: BudgetExceeded | DeadlineExceeded | Interrupted | None = None
    with open_out(output.out) as file:
        write = rows_writer(file, output.format, no_formulas=output.no_formulas)
        try:
            with reading():
                result = connection.engine.write(connection.translate(query[0]), query[1], to=write)
        except (BudgetExceeded, DeadlineExceeded, Interrupted) as error:
            # Nothing at all must not look like a result without rows.
            if not (isinstance(error.partial, Result) and error.partial.table.num_rows):
                raise
            stopped = error
            if isinstance(error, DeadlineExceeded):  # what it ended had given nothing yet
                write(error.partial.table)
        write(None)
    if stopped is not None:
        warn([_incomplete(stopped)])
        raise stopped
    warn(result.trace.warnings)
    if output.resume:
        warn([what_it_took(result.trace)])


def _run(connection: Connection, query: Query, output: Output) -> None:
    """Run a query and write its rows; those that are sure also when a budget stopped it."""
    from almanaq.suql.execution.report import Interrupted
    from almanaq.suql.result import Result

    try:
        with reading():
            result = connection.sql(*query)
    except (BudgetExceeded, DeadlineExceeded, Interrupted) as stopped:
        # Nothing at all must not look like a result without rows.
        if isinstance(stopped.partial, Result) and stopped.partial.rows:
            write_result(stopped.partial, output.format, output.out, output.amount)
            warn([_incomplete(stopped)])
        raise
    warn(result.trace.warnings)
    write_result(result, output.format, output.out, output.amount)
    if output.resume:
        warn([what_it_took(result.trace, len(result))])


def _incomplete(stopped: BaseException) -> str:
    """Say by what a query was stopped, and that the rows it printed are not all."""
    if isinstance(stopped, BudgetExceeded | DeadlineExceeded):
        return f"stopped by its {'budget' if isinstance(stopped, BudgetExceeded) else 'deadline'}: {_INCOMPLETE}"
    return f"interrupted: {_INCOMPLETE}"


def what_it_took(trace: Trace, rows: int | None = None) -> str:
    """Say what a run asked for anew, and what earlier ones had asked for."""
    counted = "" if rows is None else f"{rows:,} row{'' if rows == 1 else 's'}; "
    money = f", ${trace.money:,.2f}" if trace.money else ""
    return f"{counted}{trace.text_calls:,} replies asked for{money}; {trace.cached_calls:,} kept from earlier runs"
