"""`almanaq sql`: run a SUQL query, or explain it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from almanaq.cli.options import Chosen, Db, Source, connect_source, name_source, take_options
from almanaq.cli.output import Format, check_out, choose_format, write_json, write_text
from almanaq.cli.run_query import Output, Query, check_place, run_query
from almanaq.cli.shell import queries
from almanaq.cli.terminal import MOST_ROWS, Amount
from almanaq.display import visible
from almanaq.errors import UsageError

if TYPE_CHECKING:
    from almanaq.connection import Connection


@take_options
def sql(
    suql: Annotated[
        str | None,
        typer.Argument(metavar="SUQL", help="One SELECT; answer() and summary() read text columns. -: standard input."),
    ] = None,
    source: Source = None,
    db: Db = None,
    file: Annotated[
        str | None, typer.Option("--file", "-f", metavar="FILE", help="Run the queries of a file, separated by ;.")
    ] = None,
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
        Format | None, typer.Option("--format", help="Default: table, or by the ending of --out.")
    ] = None,
    out: Annotated[str | None, typer.Option("--out", metavar="FILE", help="Write to a file instead of stdout.")] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="With --out: continue a stopped run without repeating its calls."),
    ] = False,
    materialize: Annotated[
        str | None,
        typer.Option(
            "--materialize",
            metavar="NAME.duckdb",
            help="Keep the rows and their quotes as the table NAME of a DuckDB file; run it again to refresh them.",
        ),
    ] = None,
    all: Annotated[bool, typer.Option("--all", help="Print every row and column, not the first 40 rows.")] = False,
    chart: Annotated[bool, typer.Option("--chart", help="Draw the chart of the rows below them.")] = False,
    no_formulas: Annotated[
        bool, typer.Option("--no-formulas", help="CSV: put ' before text that a spreadsheet would run as a formula.")
    ] = False,
    *,
    chosen: Chosen,
) -> None:
    """Run a SUQL query, or explain it.

    SUQL is SQL with answer(text, 'question') and summary(text), which may stand anywhere an expression may.
    """
    if explain and analyze:
        raise UsageError("--explain and --analyze cannot be combined: only --analyze runs the query")
    if verbose and not explain:
        raise UsageError("--verbose needs --explain")
    written_as = choose_format(format, out)
    if no_formulas and written_as is not Format.csv:
        raise UsageError("--no-formulas needs --format csv")
    if chart and written_as is not Format.table:
        raise UsageError("--chart needs --format table; --format json holds the chart as Vega-Lite")
    check_out(out)
    kept = _check_kept_rows(
        out, materialize, resume=resume, cache=chosen.get("cache", True), runs=not (explain or analyze)
    )
    if file is not None and source is None and db is None:
        suql, source = None, suql  # --file FILE SOURCE
    db = name_source(source, db, command="sql SUQL")
    wanted = queries(suql, file, db)
    if len(wanted) > 1 and (param or out or kept):
        flag = "--param" if param else "--out" if out else "--materialize"
        raise UsageError(f"{flag} takes one query, not {len(wanted)}")
    output = Output(written_as, out, no_formulas, Amount(rows=None if all else MOST_ROWS, chart=chart), resume, kept)
    from almanaq.suql.text_functions import DECLARED

    named = "|".join(function.name for function in DECLARED.values() if function.asks_model)
    reads_text = any(re.search(rf"\b({named})\b", query, re.IGNORECASE) for query in wanted)
    with connect_source(db, chosen, looks=reads_text) as connection:
        for query in wanted:
            if explain or analyze:
                _explain(connection, (query, tuple(param or ())), written_as, out, analyze=analyze, verbose=verbose)
            else:
                run_query(connection, (query, tuple(param or ())), output)


def _check_kept_rows(out: str | None, materialize: str | None, *, resume: bool, cache: bool, runs: bool) -> Path | None:
    if resume and not (out or materialize):
        raise UsageError("--resume needs --out FILE or --materialize NAME.duckdb")
    if (resume or materialize) and not cache:
        flag = "--resume" if resume else "--materialize"
        raise UsageError(f"{flag} cannot be combined with --no-cache, which keeps no replies")
    if materialize and (out or not runs):
        raise UsageError("--materialize cannot be combined with --out, --explain or --analyze")
    return None if materialize is None else check_place(materialize)


def _explain(
    connection: Connection, query: Query, format: Format, out: str | None, *, analyze: bool, verbose: bool
) -> None:
    from almanaq.cli.terminal import progress, short_plan
    from almanaq.encode import plain

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
        brief = [] if analyze else ["In short:", *(f"    {line}" for line in short_plan(explanation)), "", "In full:"]
        write_text(visible("\n".join([*brief, str(explanation)])).rstrip("\n") + "\n", out)
