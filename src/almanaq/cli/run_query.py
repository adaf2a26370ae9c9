"""Runs one query and writes its rows, those too that are sure when it was stopped, or keeps them in a DuckDB file."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass, field
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
    from almanaq.suql.result import Result, Trace


Query = tuple[str, tuple[str, ...]]
"""A query with the values of its placeholders."""

_INCOMPLETE = "these rows are in the result, but may not be all of it"


@dataclass(frozen=True, slots=True)
class Output:
    """The format and the place of a result, and how many rows a printed table shows.

    Attributes:
        resume: an earlier run may have ended half-way: remove what it left, and report what it has paid for.
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
    run = _run if output.format in (Format.table, Format.json) else _write_as_they_come
    run(connection, query, output)


def _materialize(connection: Connection, query: Query, path: Path) -> None:
    """Run a query and keep its rows with their quotes; nothing is replaced by rows that are not all."""
    from dataclasses import replace

    with show_reading():
        result = connection.sql(*query, options=replace(connection.engine.options, max_result_mb=None))
    materialize(result, path)
    warn_of_result(result.trace, describe_cost(result.trace, len(result)))


def _write_as_they_come(connection: Connection, query: Query, output: Output) -> None:
    """Run a query and write its rows as they come, held nowhere; those that are sure also when a budget stopped it."""
    from almanaq.suql.execution.report import Interrupted
    from almanaq.suql.result import Result

    stopped: BudgetExceeded | DeadlineExceeded | Interrupted | None = None
    with open_out(output.out) as file:
        write = rows_writer(file, output.format, no_formulas=output.no_formulas)
        try:
            with show_reading():
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
        warn([_describe_stop(stopped)])
        raise stopped
    warn_of_result(result.trace)
    if output.resume:
        warn([describe_cost(result.trace)])


def _run(connection: Connection, query: Query, output: Output) -> None:
    """Run a query and write its rows; those that are sure also when a budget stopped it."""
    from almanaq.suql.execution.report import Interrupted
    from almanaq.suql.result import Result

    try:
        with show_reading():
            result = connection.sql(*query)
    except (BudgetExceeded, DeadlineExceeded, Interrupted) as stopped:
        # Nothing at all must not look like a result without rows.
        if isinstance(stopped.partial, Result) and stopped.partial.rows:
            write_result(stopped.partial, output.format, output.out, output.amount)
            warn([_describe_stop(stopped)])
        raise
    warn_of_result(result.trace)
    write_result(result, output.format, output.out, output.amount)
    if output.resume:
        warn([describe_cost(result.trace, len(result))])


def _describe_stop(stopped: BaseException) -> str:
    """Say by what a query was stopped, and that the rows it printed are not all."""
    if isinstance(stopped, BudgetExceeded | DeadlineExceeded):
        return f"stopped by its {'budget' if isinstance(stopped, BudgetExceeded) else 'deadline'}: {_INCOMPLETE}"
    return f"interrupted: {_INCOMPLETE}"


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
    """Write a result over what an earlier run of `--materialize` wrote; readers see the old rows or the new ones.

    Raises:
        SourceError: the file cannot be written.
    """
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
    rows = _number_rows(result.table)
    database.register("given", rows)
    database.execute(f"CREATE TABLE {quote(name)} AS SELECT * FROM given")
    database.register("cited", _evidence_table(result))
    database.execute(f"CREATE TABLE {quote(name + '_evidence')} AS SELECT * FROM cited")
    trace = result.trace
    figures = {
        "text_calls": trace.text_calls,
        "cached_calls": trace.cached_calls,
        "unknown_calls": trace.unknown_calls,
        "money": trace.money,
        "seconds": round(trace.seconds, 3),
        "partial": trace.partial,
        "warnings": list(trace.warnings),
    }
    database.execute(f"CREATE TABLE {_MADE} (suql TEXT, made_at TIMESTAMPTZ, trace JSON)")
    database.execute(f"INSERT INTO {_MADE} VALUES (?, ?, ?)", [result.suql, datetime.now(UTC), json.dumps(figures)])


def _number_rows(table: pa.Table) -> pa.Table:
    """Return rows with their number before them, by which quotes name them."""
    from almanaq.suql.execution.evidence import id_column

    names = {name.casefold() for name in table.column_names}
    if "row" in names:
        raise UsageError('--materialize adds a column "row": rename the one of the query')
    if len(names) < table.num_columns:
        raise UsageError("--materialize needs distinct column names: rename repeated ones with AS …")
    return table.add_column(0, "row", id_column(list(range(1, table.num_rows + 1))))


def _evidence_table(result: Result) -> pa.Table:
    import pyarrow as pa

    from almanaq.suql.execution.evidence import id_column, text_column

    cited = [(number, quote) for number, quotes in enumerate(result.evidence, 1) for quote in quotes]
    columns = {
        "row": id_column([number for number, _ in cited]),
        "relation": text_column([quote.relation for _, quote in cited]),
        "key": text_column([quote.key for _, quote in cited]),
        "column": text_column([quote.column for _, quote in cited]),
        "passage": id_column([quote.passage for _, quote in cited]),
        "start": id_column([quote.start for _, quote in cited]),
        "quote": text_column([quote.quote for _, quote in cited]),
        "question": text_column([quote.question for _, quote in cited]),
    }
    return pa.table(columns)


def _is_ours(path: Path) -> bool:
    import duckdb

    try:
        with duckdb.connect(str(path), read_only=True) as database:
            database.execute(f"SELECT suql FROM {_MADE} LIMIT 1")
            return True
    except duckdb.Error:
        return False
