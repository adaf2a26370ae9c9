"""Runs one query and writes its rows, those too that are sure when it was stopped, or keeps them in a DuckDB file."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from almanaq.cli.output import Format, open_out, remove_left_over, rows_writer, write_result
from almanaq.cli.terminal import Amount, show_reading, warn, warn_of_result
from almanaq.errors import BudgetExceeded, DeadlineExceeded, SourceError, UsageError
from almanaq.text.sql_literals import quote

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from almanaq.connection import Connection
    from almanaq.suql.execution.report import Interrupted
    from almanaq.suql.result import Result, Trace


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
    from almanaq.suql.execution.report import Interrupted

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
    except (BudgetExceeded, DeadlineExceeded, Interrupted) as stopped:
        if _sure_rows(stopped) is not None:
            limit = "budget" if isinstance(stopped, BudgetExceeded) else "deadline"
            reason = "interrupted" if isinstance(stopped, Interrupted) else f"stopped by its {limit}"
            warn([f"{reason}: these rows are in the result, but may not be all of it"])
        raise


def _sure_rows(stopped: BudgetExceeded | DeadlineExceeded | Interrupted) -> Result | None:
    from almanaq.suql.result import Result

    # Nothing at all must not look like a result without rows.
    return stopped.partial if isinstance(stopped.partial, Result) and len(stopped.partial) else None


def _write_as_they_come(connection: Connection, query: Query, output: Output) -> None:
    from almanaq.suql.execution.report import Interrupted

    stopped: BudgetExceeded | DeadlineExceeded | Interrupted | None = None
    with open_out(output.out) as file:
        write = rows_writer(file, output.format, no_formulas=output.no_formulas)
        try:
            with show_reading():
                result = connection.engine.write(connection.translate(query[0]), query[1], to=write)
        except (BudgetExceeded, DeadlineExceeded, Interrupted) as error:
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
    from almanaq.suql.execution.report import Interrupted

    try:
        with show_reading():
            result = connection.sql(*query)
    except (BudgetExceeded, DeadlineExceeded, Interrupted) as stopped:
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
