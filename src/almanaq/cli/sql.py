"""`almanaq sql`: run a SUQL query, or explain it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from almanaq.cli.options import (
    AllowHttp,
    Batch,
    Db,
    Deadline,
    Embedder,
    MaxCalls,
    MaxResult,
    Model,
    NoCache,
    NoLink,
    OrderOption,
    Request,
    Schema,
    Speculation,
    Strict,
    connected,
)
from almanaq.cli.out_file import check_out, open_out
from almanaq.cli.output import Format, choose_format, rows_writer, write_json, write_result, write_text
from almanaq.errors import BudgetExceeded, UsageError
from almanaq.visible import visible

if TYPE_CHECKING:
    from almanaq.connection import Connection


_INTERRUPTED = "interrupted: these rows are in the result, and are not all of it"


@dataclass(frozen=True, slots=True)
class Output:
    """How rows are written, and where."""

    format: Format
    out: str | None
    no_formulas: bool = False


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("sql")(sql)


def sql(
    suql: Annotated[str, typer.Argument(metavar="SUQL", help="One SELECT; answer() and summary() read text columns.")],
    db: Db,
    explain: Annotated[bool, typer.Option("--explain", help="Print the plan; run nothing.")] = False,
    analyze: Annotated[
        bool, typer.Option("--analyze", help="Run the query; print the plan with predicted and actual figures.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="With --explain: the plan after each rule.")] = False,
    param: Annotated[
        list[str] | None,
        typer.Option("--param", metavar="VALUE", help="The value of the next ? in the query, as text; repeatable."),
    ] = None,
    format: Annotated[
        Format | None, typer.Option("--format", help="Default: table, or what the suffix of --out says.")
    ] = None,
    out: Annotated[str | None, typer.Option("--out", metavar="FILE", help="Write to a file instead of stdout.")] = None,
    model: Model = None,
    embedder: Embedder = None,
    schema: Schema = None,
    max_calls: MaxCalls = None,
    speculation: Speculation = None,
    order: OrderOption = None,
    strict: Strict = None,
    deadline: Deadline = None,
    passages: Annotated[
        int | None, typer.Option("--passages", metavar="K", min=1, help="Approximate: read the best K passages only.")
    ] = None,
    candidates: Annotated[
        int | None,
        typer.Option("--candidates", metavar="K", min=1, help="Approximate: try the K most similar rows only."),
    ] = None,
    batch: Batch = None,
    no_cache: NoCache = False,
    no_link: NoLink = False,
    allow_http: AllowHttp = False,
    no_formulas: Annotated[
        bool, typer.Option("--no-formulas", help="CSV: put ' before text that a spreadsheet would compute.")
    ] = False,
    max_result_mb: MaxResult = None,
) -> None:
    """Run a SUQL query, or explain it.

    SUQL is SQL with answer(text, 'question') and summary(text), which may stand anywhere an expression may.
    """
    if explain and analyze:
        raise UsageError("--explain and --analyze exclude each other: one runs the query, the other does not")
    if verbose and not explain:
        raise UsageError("--verbose goes with --explain")
    chosen = choose_format(format, out)
    if no_formulas and chosen is not Format.csv:
        raise UsageError("--no-formulas goes with --format csv")
    check_out(out)
    request = Request(
        db, model, embedder, schema, max_calls, speculation, order, strict, deadline,
        not no_cache, not no_link, passages, candidates, batch, allow_http=allow_http, max_result_mb=max_result_mb,
    )  # fmt: skip
    with connected(request) as connection:
        if explain or analyze:
            _explain(connection, (suql, tuple(param or ())), (analyze, verbose), chosen, out)
        else:
            run = _run if chosen in (Format.table, Format.json) else _write
            run(connection, (suql, tuple(param or ())), Output(chosen, out, no_formulas=no_formulas))


def _write(connection: Connection, query: tuple[str, tuple[str, ...]], output: Output) -> None:
    """Run a query and write its rows as they come, held nowhere; those that are sure also when a budget stopped it."""
    from almanaq.cli.terminal import reading, warn
    from almanaq.suql.execution.watch import Interrupted
    from almanaq.suql.result import Result

    stopped: BudgetExceeded | Interrupted | None = None
    with open_out(output.out) as file:
        write = rows_writer(file, output.format, no_formulas=output.no_formulas)
        try:
            with reading():
                result = connection.engine.write(*query, to=write)
        except (BudgetExceeded, Interrupted) as error:
            # Nothing at all must not look like a result without rows.
            if not (isinstance(error.partial, Result) and error.partial.table.num_rows):
                raise
            stopped = error
        write(None)
    if isinstance(stopped, Interrupted):
        warn([_INTERRUPTED])
    if stopped is not None:
        raise stopped
    warn(result.trace.warnings)


def _run(connection: Connection, query: tuple[str, tuple[str, ...]], output: Output) -> None:
    """Run a query and write its rows; those that are sure also when a budget stopped it."""
    from almanaq.cli.terminal import reading, warn
    from almanaq.suql.execution.watch import Interrupted
    from almanaq.suql.result import Result

    try:
        with reading():
            result = connection.sql(*query)
    except (BudgetExceeded, Interrupted) as stopped:
        # Nothing at all must not look like a result without rows.
        if isinstance(stopped.partial, Result) and stopped.partial.rows:
            write_result(stopped.partial, output.format, output.out)
            if isinstance(stopped, Interrupted):
                warn([_INTERRUPTED])
        raise
    warn(result.trace.warnings)
    write_result(result, output.format, output.out)


def _explain(
    connection: Connection,
    query: tuple[str, tuple[str, ...]],
    mode: tuple[bool, bool],
    format: Format,
    out: str | None,
) -> None:
    """Write the plan of a query as text or as JSON."""
    from almanaq.cli.terminal import progress
    from almanaq.encode import plain

    analyze, verbose = mode
    if format not in (Format.table, Format.json):
        raise UsageError(f"--format {format}: a plan is printed as table (text) or json")
    if analyze:
        with progress("running …"):
            explanation = connection.analyze(*query)
    else:
        explanation = connection.explain(*query, verbose=verbose)
    if format is Format.json:
        write_json({"stages": plain(explanation.to_json())}, out)
    else:
        write_text(visible(str(explanation)).rstrip("\n") + "\n", out)
