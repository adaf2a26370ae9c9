"""`almanaq sql`: run SUQL queries and write their rows, or keep them in a DuckDB file, or explain them."""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from almanaq.cli.options import Chosen, Db, Source, connect_source, name_source, take_options
from almanaq.cli.output import (
    Format,
    check_not_of_source,
    check_out,
    choose_format,
    open_out,
    remove_left_over,
    rows_writer,
    write_json,
    write_result,
    write_text,
)
from almanaq.cli.terminal import MOST_ROWS, Amount, asking, progress, short_plan, show_reading, warn, warn_of_result
from almanaq.display import visible
from almanaq.errors import AlmanaqError, BudgetExceeded, DeadlineExceeded, SourceError, UsageError
from almanaq.text.sql_literals import quote

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from almanaq.connection import Connection
    from almanaq.suql.result import Result, Trace


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
    kept = _check_kept_rows(
        out, materialize, resume=resume, cache=chosen.get("cache", True), runs=not (explain or analyze)
    )
    if file is not None and source is None and db is None:
        suql, source = None, suql  # --file FILE SOURCE
    db = name_source(source, db, command="sql SUQL")
    check_out(out, db)
    if kept is not None:
        check_not_of_source(f"--materialize {materialize}", kept, db)
    wanted = queries(suql, file, db)
    if len(wanted) > 1 and (param or out or kept):
        flag = "--param" if param else "--out" if out else "--materialize"
        raise UsageError(f"{flag} takes one query, not {len(wanted)}")
    output = Output(written_as, out, no_formulas, Amount(rows=None if all else MOST_ROWS, chart=chart), resume, kept)
    from almanaq.suql.text_functions import DECLARED

    named = "|".join(function.name for function in DECLARED.values() if function.asks_model)
    reads_text = any(re.search(rf"\b({named})\b", query, re.IGNORECASE) for query in wanted)
    with connect_source(db, chosen, looks=reads_text) as connection, ExitStack() as stack:
        if (above := connection.engine.options.confirm_above) is not None:
            stack.enter_context(asking(above))
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


def queries(suql: str | None, file: str | None, source: str) -> list[str]:
    """Return the queries that a command is to run: the argument, or those of a file or of standard input ("-")."""
    if (suql is None) == (file is None):
        raise UsageError("give one query, -f FILE, or - for standard input")
    if suql is not None and suql != "-":
        return [suql]
    if file is None or file == "-":
        if source == "-":
            raise UsageError("standard input can be either the queries or --db -, not both")
        place, text = "standard input", sys.stdin.read()
        if re.search("[\ud800-\udfff]", text):
            raise UsageError("standard input: is not UTF-8 text")
    else:
        place = file
        try:
            text = Path(file).read_text("utf-8-sig")
        except UnicodeDecodeError as problem:
            raise UsageError(f"-f {file}: is not UTF-8 text") from problem
        except OSError as problem:
            raise UsageError(f"-f {file}: cannot be read: {problem.strerror}") from problem
    found = list(split(text))
    if not found:
        raise UsageError(f"{place} holds no query; write a SELECT, or several separated by ;")
    return found


def split(text: str) -> Iterator[str]:
    """Yield the statements of a text, without the semicolons between them; one that is not closed is the last."""
    ended, rest = complete_statements(text)
    yield from ended
    if _says_something(rest):
        yield rest.strip()


def complete_statements(text: str) -> tuple[list[str], str]:
    """Return the statements that a semicolon ends, and what follows the last one."""
    import sqlglot
    from sqlglot.errors import TokenError
    from sqlglot.tokenizer_core import TokenType

    if ";" not in text:
        return [], text
    try:
        tokens = sqlglot.tokenize(text, read="duckdb")
    except TokenError:  # a quotation mark or a comment is still open
        return [], text
    found, start = [], 0
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            found.append(text[start : token.start].strip())
            start = token.end + 1
    return [statement for statement in found if _says_something(statement)], text[start:]


def _says_something(text: str) -> bool:
    lines = [line.strip() for line in text.splitlines()]
    return any(line and not line.startswith("--") for line in lines)


Query = tuple[str, tuple[str, ...]]
"""A query with the values of its placeholders."""


@dataclass(frozen=True, slots=True)
class Output:
    """The format and the place of a result; `resume`: an earlier run may have left half a file, and paid replies."""

    format: Format
    out: str | None = None
    no_formulas: bool = False
    amount: Amount = field(default_factory=Amount)
    resume: bool = False
    materialize: Path | None = None


def run_query(connection: Connection, query: Query, output: Output) -> None:
    """Run a query and write its rows; those that are sure also when a budget stopped it."""
    if output.materialize is not None:
        with show_reading():
            result = connection.sql(*query, options=replace(connection.engine.options, max_result_mb=None))
        materialize(result, output.materialize)  # nothing is replaced by rows that are not all
        warn_of_result(result.trace, describe_cost(result.trace, len(result)))
        return
    if output.resume and output.out is not None:
        remove_left_over(output.out)
    run = _run if output.format in (Format.table, Format.json) else _write_as_they_come
    try:
        run(connection, query, output)
    except (AlmanaqError, KeyboardInterrupt) as stopped:
        if _sure_rows(stopped) is not None:
            limit = "budget" if isinstance(stopped, BudgetExceeded) else "deadline"
            reason = "interrupted" if isinstance(stopped, KeyboardInterrupt) else f"stopped by its {limit}"
            warn([f"{reason}: these rows are in the result, but may not be all of it"])
        raise


def _sure_rows(stopped: AlmanaqError | KeyboardInterrupt) -> Result | None:
    from almanaq.suql.result import Result

    partial = getattr(stopped, "partial", None)
    # Nothing at all must not look like a result without rows.
    return partial if isinstance(partial, Result) and len(partial) else None


def _write_as_they_come(connection: Connection, query: Query, output: Output) -> None:
    stopped: AlmanaqError | KeyboardInterrupt | None = None
    with open_out(output.out) as file:
        write = rows_writer(file, output.format, no_formulas=output.no_formulas)
        try:
            with show_reading():
                result = connection.engine.write(connection.translate(query[0]), query[1], to=write)
        except (AlmanaqError, KeyboardInterrupt) as error:
            if (rows := _sure_rows(error)) is None:
                raise
            stopped = error
            if isinstance(error, DeadlineExceeded):  # what it ended had given nothing yet
                write(rows.table)
        write(None)
    if stopped is not None:
        raise stopped
    warn_of_result(result.trace)
    if output.resume:
        warn([describe_cost(result.trace)])


def _run(connection: Connection, query: Query, output: Output) -> None:
    try:
        with show_reading():
            result = connection.sql(*query)
    except (AlmanaqError, KeyboardInterrupt) as stopped:
        if (rows := _sure_rows(stopped)) is not None:
            write_result(rows, output.format, output.out, output.amount)
        raise
    warn_of_result(result.trace)
    write_result(result, output.format, output.out, output.amount)
    if output.resume:
        warn([describe_cost(result.trace, len(result))])


def describe_cost(trace: Trace, rows: int | None = None) -> str:
    """Return how many replies a run asked for, and how many earlier runs had asked for."""
    counted = "" if rows is None else f"{rows:,} row{'' if rows == 1 else 's'}; "
    money = f", ${trace.money:,.2f}" if trace.money else ""
    return f"{counted}{trace.text_calls:,} replies requested{money}; {trace.cached_calls:,} from earlier runs"


_MADE = "almanaq_made"
"""The table that marks a file as one of ours, and says of what query it is."""
_ENDING = ".duckdb"


def check_place(name: str) -> Path:
    """Return the file; raise UsageError before any work is done for one that is not ours to write."""
    path = Path(name)
    if path.suffix != _ENDING or not path.stem:
        raise UsageError(f"--materialize {name}: name a file that ends in {_ENDING}; its table gets the same name")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"--materialize {name}: there is no folder {path.absolute().parent}")
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise UsageError(f"--materialize {name}: is not a regular file")
    if path.exists() and not _is_ours(path):
        raise UsageError(f"--materialize {name}: the file exists and was not made by --materialize: name another")
    return path


def materialize(result: Result, path: Path) -> None:
    """Write a result over what an earlier run of `--materialize` wrote; readers see the old rows or the new ones."""
    import duckdb

    handle, temporary = tempfile.mkstemp(prefix=f".{path.stem[:80]}.", suffix=_ENDING, dir=path.absolute().parent)
    os.close(handle)
    os.unlink(temporary)
    try:
        with duckdb.connect(temporary) as database:
            _write_tables(database, result, path.stem)
        os.chmod(temporary, 0o600)
        os.replace(temporary, path)
    except (OSError, duckdb.Error) as error:
        raise SourceError(f"--materialize {path}: cannot be written: {str(error).splitlines()[0]}") from error
    finally:
        Path(temporary).unlink(missing_ok=True)


def _write_tables(database: duckdb.DuckDBPyConnection, result: Result, name: str) -> None:
    names = {name.casefold() for name in result.table.column_names}
    if "row" in names:
        raise UsageError('--materialize adds a column "row": rename the one of the query')
    if len(names) < result.table.num_columns:
        raise UsageError("--materialize needs distinct column names: rename repeated ones with AS …")
    rows = result.table.add_column(0, "row", [list(range(1, len(result) + 1))])
    database.register("given", rows)
    database.execute(f"CREATE TABLE {quote(name)} AS SELECT * FROM given")
    database.register("cited", _evidence_table(result))
    database.execute(f"CREATE TABLE {quote(name + '_evidence')} AS SELECT * FROM cited")
    trace = result.trace
    counted = ("text_calls", "cached_calls", "unknown_calls", "money", "partial")
    figures = {each: getattr(trace, each) for each in counted}
    figures |= {"seconds": round(trace.seconds, 3), "warnings": list(trace.warnings)}
    database.execute(f"CREATE TABLE {_MADE} (suql TEXT, made_at TIMESTAMPTZ, trace JSON)")
    database.execute(f"INSERT INTO {_MADE} VALUES (?, ?, ?)", [result.suql, datetime.now(UTC), json.dumps(figures)])


def _evidence_table(result: Result) -> pa.Table:
    import pyarrow as pa

    names = ("relation", "key", "column", "passage", "start", "quote", "question")
    cited = [(number, quote) for number, quotes in enumerate(result.evidence, 1) for quote in quotes]
    columns = {"row": [number for number, _ in cited]}
    columns |= {name: [getattr(quote, name) for _, quote in cited] for name in names}
    numbers = ("row", "passage", "start")
    return pa.table(columns, pa.schema([(name, pa.int64() if name in numbers else pa.string()) for name in columns]))


def _is_ours(path: Path) -> bool:
    import duckdb

    try:
        with duckdb.connect(str(path), read_only=True) as database:
            database.execute(f"SELECT suql FROM {_MADE} LIMIT 1")
            return True
    except duckdb.Error:
        return False
