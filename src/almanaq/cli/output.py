"""Writes a result in the format that was asked for: to stdout, a pipe or device, or a file that is replaced whole.

A file is written beside its place and then takes it, so that it is either the old one or the whole new one. A symbolic
link is refused: what it leads to is somebody's choice, and need not be that of whoever names it.
"""

from __future__ import annotations

import contextlib
import glob
import io
import json
import os
import re
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO

from almanaq.cli.terminal import Amount, console, print_result
from almanaq.display import visible_json
from almanaq.encode import CsvWriter, encode_text, result_record
from almanaq.errors import SourceError, UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from almanaq.suql.result import Result


_OPEN_HERE = re.compile(r"/dev/(?:stdin|stdout|stderr|fd/\d+)|/proc/(?:self|\d+)/fd/\d+")
"""Names of what this process has open already: links that lead nowhere else."""


def check_out(out: str | None, source: str | None = None) -> None:
    """Raise UsageError before any work is done when the file could not be written, or is one of the source's."""
    if out is None:
        return
    if out == "-":
        raise UsageError("--out -: leave --out out, and the result goes to standard output")
    path = Path(out)
    folder = path.absolute().parent
    if not folder.is_dir():
        raise UsageError(f"--out {out}: there is no folder {folder}")
    if path.is_dir():
        raise UsageError(f"--out {out}: is a folder; name a file")
    if _OPEN_HERE.fullmatch(str(path.absolute())):
        return
    if path.is_symlink():
        raise UsageError(f"--out {out}: is a symbolic link to {os.readlink(path)}; name the file itself")
    if path.exists() and not (path.is_file() or path.is_fifo() or path.is_char_device()):
        raise UsageError(f"--out {out}: is not a file, pipe or terminal; name a file")
    if source is not None:
        check_not_of_source(f"--out {out}", path, source)


def check_not_of_source(named: str, path: Path, source: str) -> None:
    """Raise UsageError for a file that the source is read from: to write there would lose it."""
    if path.is_file():
        from almanaq.engines.open_source import list_source_files

        if any(os.path.samefile(path, each) for each in list_source_files(source) if each.exists()):
            raise UsageError(f"{named}: is a file of the source: name another, or remove this one first")


@contextmanager
def open_out(out: str | None) -> Iterator[BinaryIO]:
    """Give what to write a result to; a file takes its place when the block ends without an error."""
    if out is None and not hasattr(sys.stdout, "buffer"):  # a caller has put something of its own there
        held = io.BytesIO()
        yield held
        sys.stdout.write(held.getvalue().decode("utf-8", "surrogateescape"))
        return
    if out is None:
        sys.stdout.flush()
        if isinstance(sys.stdout.buffer, io.RawIOBase):  # PYTHONUNBUFFERED: a write may take less than it is given
            with open(sys.stdout.fileno(), "wb", closefd=False) as file:
                yield file
            return
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    check_out(out)
    path = Path(out).absolute()
    try:
        if _OPEN_HERE.fullmatch(str(path)) or (path.exists() and not path.is_file()):
            sys.stdout.flush()
            with open(os.open(path, os.O_WRONLY | os.O_APPEND), "wb") as file:
                yield file
        else:
            with _open_replacement(path) as file:
                yield file
    except BrokenPipeError:
        raise
    except OSError as error:
        raise SourceError(f"--out {out}: cannot be written: {error.strerror or error}") from error


def remove_left_over(out: str) -> None:
    """Remove what a run that was killed left beside a file; a run that goes on has its own locked."""
    path = Path(out).absolute()
    for left in path.parent.glob(glob.escape(f".{path.name[:100]}.") + "*"):
        if left.is_symlink() or not left.is_file():
            continue
        with contextlib.suppress(OSError), left.open("rb+") as file:
            _lock(file)
            left.unlink()


def _lock(file: IO[bytes]) -> None:
    """Hold a file as long as it is open; raises OSError where another process holds it."""
    try:
        import fcntl
    except ImportError:  # Windows, where a file that is open cannot be removed anyway
        return
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def _open_replacement(path: Path) -> Iterator[BinaryIO]:
    # A new file is its owner's alone, as it holds cells; one that is replaced keeps its rights.
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name[:100]}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            _lock(file)
            yield file
        if path.exists():
            os.chmod(temporary, stat.S_IMODE(path.stat().st_mode))
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


_ROWS_AT_ONCE = 10_000
_ENDINGS = ("", "txt", "csv", "json", "parquet", "table")


class Format(StrEnum):
    table = "table"
    json = "json"
    csv = "csv"
    parquet = "parquet"


def choose_format(wanted: Format | None, out: str | None) -> Format:
    """Return the format that was asked for, else the one of the file's suffix, else `table`."""
    suffix = "" if out is None else Path(out).suffix.lstrip(".").lower()
    if suffix in ("xlsx", "xls", "ods"):
        raise UsageError(f"--out {out}: spreadsheets cannot be written; write FILE.csv, which they open")
    if wanted is None and suffix not in _ENDINGS:
        raise UsageError(
            f"--out {out}: unknown ending .{suffix}: use one of .csv, .json, .parquet or .txt (a table), or say "
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
    from almanaq.suql.result import python_rows

    csv = CsvWriter(file, no_formulas=no_formulas, terminal=file.isatty())
    parquet: Any = None
    begun = False

    def write_csv(table: pa.Table | None) -> None:
        nonlocal begun
        if table is None:
            return
        if not begun:
            csv.write([table.column_names])
            begun = True
        for batch in table.to_batches(max_chunksize=_ROWS_AT_ONCE):
            csv.write(python_rows(batch, exact=True))

    def write_parquet(table: pa.Table | None) -> None:
        import pyarrow.parquet

        nonlocal parquet
        if table is None:
            parquet.close()
            return
        parquet = parquet or pyarrow.parquet.ParquetWriter(file, table.schema)
        parquet.write_table(table.cast(parquet.schema))

    return write_parquet if format is Format.parquet else write_csv


def write_json(value: Any, out: str | None = None, *, allow_nan: bool = False) -> None:
    """Write a JSON value; every part of it must already be plain. On a terminal nothing of it steers."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=allow_nan) + "\n"
    write_text(visible_json(text) if out is None and sys.stdout.isatty() else text, out)


def write_text(text: str, out: str | None = None) -> None:
    with open_out(out) as file:
        # A lone surrogate or a terminal of another encoding must not lose the whole result.
        file.write(encode_text(text))
