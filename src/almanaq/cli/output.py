"""Writes a result in the format that was asked for, to stdout or to a file that is never half-written."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
import tempfile
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from almanaq.cli.terminal import console, print_result
from almanaq.encode import plain, result_record
from almanaq.errors import SourceError, UsageError

if TYPE_CHECKING:
    from almanaq.suql.result import Result


class Format(StrEnum):
    """How rows are written."""

    table = "table"
    json = "json"
    csv = "csv"
    parquet = "parquet"


def choose_format(wanted: Format | None, out: str | None) -> Format:
    """Give the format that was asked for, else the one of the file's suffix, else `table`."""
    if wanted is None and out is not None:
        suffix = Path(out).suffix.lstrip(".").lower()
        wanted = Format(suffix) if suffix in Format.__members__ else None
    if wanted is Format.parquet and out is None:
        raise UsageError("--format parquet is binary: name a file with --out FILE")
    return wanted or Format.table


def check_out(out: str | None) -> None:
    """Raise UsageError before any work is done when the file could not be written."""
    if out is None:
        return
    folder = Path(out).absolute().parent
    if not folder.is_dir():
        raise UsageError(f"--out {out}: there is no folder {folder}")
    if Path(out).is_dir():
        raise UsageError(f"--out {out}: this is a folder; name a file")


def write_result(result: Result, format: Format, out: str | None) -> None:
    """Write a result to stdout or to the file `out`."""
    if format is Format.parquet:
        import pyarrow.parquet

        buffer = io.BytesIO()
        pyarrow.parquet.write_table(result.table, buffer)
        _write_bytes(buffer.getvalue(), out)
    elif out is None and format is Format.table:
        print_result(result, console())
    else:
        write_text(_render(result, format), out)


def write_json(value: Any, out: str | None = None) -> None:
    """Write a JSON value; every part of it must already be plain."""
    write_text(json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n", out)


def write_text(text: str, out: str | None = None) -> None:
    """Write text to stdout or to the file `out`, in UTF-8."""
    if out is None:
        sys.stdout.flush()
        # A lone surrogate or a terminal of another encoding must not lose the whole result.
        sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape"))
        sys.stdout.buffer.flush()
    else:
        _write_bytes(text.encode("utf-8", "surrogateescape"), out)


def _render(result: Result, format: Format) -> str:
    if format is Format.json:
        return json.dumps(result_record(result), ensure_ascii=False, allow_nan=False) + "\n"
    buffer = io.StringIO()
    if format is Format.csv:
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(result.columns)
        writer.writerows([_csv_cell(value) for value in row] for row in result.rows)
    else:
        print_result(result, console(buffer))
    return buffer.getvalue()


def _csv_cell(value: Any) -> Any:
    """Give a CSV cell: NULL is empty, arrays and structures are JSON, the rest as in JSON."""
    shown = plain(value)
    if isinstance(shown, list | dict):
        return json.dumps(shown, ensure_ascii=False)
    return str(shown).lower() if isinstance(shown, bool) else shown


def _write_bytes(content: bytes, out: str | None) -> None:
    """Replace the file `out` in one step, so that it is either the old file or the whole new one."""
    assert out is not None
    path = Path(out).absolute()
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            # mkstemp makes files that only the owner reads; a result gets the rights of any new file.
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(temporary, 0o666 & ~mask)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise SourceError(f"--out {out}: cannot be written: {error.strerror or error}") from error
