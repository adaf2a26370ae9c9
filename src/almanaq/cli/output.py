"""Writes a result in the format that was asked for, to stdout or to a file that is never half-written."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from almanaq.cli.out_file import open_out
from almanaq.cli.rows import Amount
from almanaq.cli.terminal import console, print_result
from almanaq.csv_rows import CsvWriter, encoded
from almanaq.encode import result_record
from almanaq.errors import UsageError
from almanaq.visible import visible_json

if TYPE_CHECKING:
    import pyarrow as pa

    from almanaq.suql.result import Result

_ROWS_AT_ONCE = 10_000
_ENDINGS = ("", "txt", "csv", "json", "parquet", "table")


class Format(StrEnum):
    """How rows are written."""

    table = "table"
    json = "json"
    csv = "csv"
    parquet = "parquet"


def choose_format(wanted: Format | None, out: str | None) -> Format:
    """Return the format that was asked for, else the one of the file's suffix, else `table`."""
    suffix = "" if out is None else Path(out).suffix.lstrip(".").lower()
    if suffix in ("xlsx", "xls", "ods"):
        raise UsageError(f"--out {out}: no spreadsheets are written; a spreadsheet opens FILE.csv as it is")
    if wanted is None and suffix not in _ENDINGS:
        raise UsageError(
            f"--out {out}: what is .{suffix}? Name a file that ends in .csv, .json, .parquet or .txt (a table), or say "
            "--format"
        )
    if wanted is None and suffix in Format.__members__:
        wanted = Format(suffix)
    if wanted is Format.parquet and out is None:
        raise UsageError("--format parquet is binary: name a file with --out FILE")
    return wanted or Format.table


def write_result(result: Result, format: Format, out: str | None, amount: Amount | None = None) -> None:
    """Write a result as JSON or as a table for people, to stdout or to the file `out`, which gets all of it."""
    if out is None and format is Format.table:
        print_result(result, console(), amount)
    elif format is Format.json:
        write_json(result_record(result), out)
    else:
        buffer = io.StringIO()
        print_result(result, console(buffer), Amount(rows=None))
        write_text(buffer.getvalue(), out)


def rows_writer(file: BinaryIO, format: Format, *, no_formulas: bool = False) -> Callable[[pa.Table | None], None]:
    """Return what writes rows as CSV or Parquet, a table of some at a time; None ends them."""
    if format is Format.parquet:
        return _ParquetWriter(file).write
    from almanaq.suql.row_values import python_rows

    writer = CsvWriter(file, no_formulas=no_formulas, terminal=file.isatty())
    begun = False

    def write(table: pa.Table | None) -> None:
        nonlocal begun
        if table is None:
            return
        if not begun:
            writer.write([table.column_names])
            begun = True
        for batch in table.to_batches(max_chunksize=_ROWS_AT_ONCE):
            writer.write(python_rows(batch, exact=True))

    return write


class _ParquetWriter:
    """Writes tables of one schema, that of the first, as one Parquet file."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._writer: Any = None

    def write(self, table: pa.Table | None) -> None:
        import pyarrow.parquet

        if table is None:
            self._writer.close()
            return
        if self._writer is None:
            self._writer = pyarrow.parquet.ParquetWriter(self._file, table.schema)
        self._writer.write_table(table.cast(self._writer.schema))


def write_json(value: Any, out: str | None = None, *, allow_nan: bool = False) -> None:
    """Write a JSON value; every part of it must already be plain. On a terminal nothing of it steers."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=allow_nan) + "\n"
    write_text(visible_json(text) if out is None and sys.stdout.isatty() else text, out)


def write_text(text: str, out: str | None = None) -> None:
    """Write text to stdout or to the file `out`, in UTF-8."""
    with open_out(out) as file:
        # A lone surrogate or a terminal of another encoding must not lose the whole result.
        file.write(encoded(text))
