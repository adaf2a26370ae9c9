"""`--materialize FILE.duckdb`: the rows of a query kept as a table, with the quotes that they rest on."""

from __future__ import annotations

import json
import os
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from almanaq.errors import SourceError, UsageError

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from almanaq.suql.result import Result

_MADE = "almanaq_made"
"""The table that marks a file as one of ours, and says of what query it is."""
_ENDING = ".duckdb"


def check_place(name: str) -> Path:
    """Return the file; raise UsageError before any work is done for one that is not ours to write."""
    path = Path(name)
    if path.suffix != _ENDING or not path.stem:
        raise UsageError(f"--materialize {name}: name a file that ends in {_ENDING}; its table is called like it")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"--materialize {name}: there is no folder {path.absolute().parent}")
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise UsageError(f"--materialize {name}: this is no regular file")
    if path.exists() and not _is_ours(path):
        raise UsageError(f"--materialize {name}: the file is there, and was not made by --materialize: name another")
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
            _write(database, result, path.stem)
        os.chmod(temporary, 0o600)
        os.replace(temporary, path)
    except (OSError, duckdb.Error) as error:
        raise SourceError(f"--materialize {path}: cannot be written: {str(error).splitlines()[0]}") from error
    finally:
        Path(temporary).unlink(missing_ok=True)


def _write(database: duckdb.DuckDBPyConnection, result: Result, name: str) -> None:
    rows = _numbered(result.table)
    database.register("given", rows)
    database.execute(f"CREATE TABLE {_quoted(name)} AS SELECT * FROM given")
    database.register("cited", _evidence(result))
    database.execute(f"CREATE TABLE {_quoted(name + '_evidence')} AS SELECT * FROM cited")
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


def _numbered(table: pa.Table) -> pa.Table:
    """Return rows with their number before them, by which quotes name them."""
    from almanaq.suql.execution.stage_rows import id_column

    names = {name.casefold() for name in table.column_names}
    if "row" in names:
        raise UsageError('--materialize numbers the rows in a column "row": call the one of the query otherwise')
    if len(names) < table.num_columns:
        raise UsageError("--materialize needs columns with names of their own: write AS … after those that are alike")
    return table.add_column(0, "row", id_column(list(range(1, table.num_rows + 1))))


def _evidence(result: Result) -> pa.Table:
    import pyarrow as pa

    from almanaq.suql.execution.stage_rows import id_column, text_column

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


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
