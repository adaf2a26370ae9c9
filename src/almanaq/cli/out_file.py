"""Where a result is written: stdout, a file that is replaced whole, or a pipe or device that is written to.

A file is written beside its place and then takes it, so that it is either the old one or the whole new one. A symbolic
link is refused: what it leads to is somebody's choice, and need not be that of whoever names it.
"""

from __future__ import annotations

import io
import os
import re
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from almanaq.errors import SourceError, UsageError

_OPEN_HERE = re.compile(r"/dev/(?:stdin|stdout|stderr|fd/\d+)|/proc/(?:self|\d+)/fd/\d+")
"""Names of what this process has open already: links that lead nowhere else."""


def check_out(out: str | None) -> None:
    """Raise UsageError before any work is done when the file could not be written."""
    if out is None:
        return
    path = Path(out)
    folder = path.absolute().parent
    if not folder.is_dir():
        raise UsageError(f"--out {out}: there is no folder {folder}")
    if path.is_dir():
        raise UsageError(f"--out {out}: this is a folder; name a file")
    if _OPEN_HERE.fullmatch(str(path.absolute())):
        return
    if path.is_symlink():
        raise UsageError(f"--out {out}: this is a symbolic link to {os.readlink(path)}; name the file itself")
    if path.exists() and not (path.is_file() or path.is_fifo() or path.is_char_device()):
        raise UsageError(f"--out {out}: this is no file, pipe or terminal; name a file")


@contextmanager
def open_out(out: str | None) -> Iterator[BinaryIO]:
    """Give what to write a result to; a file takes its place when the block ends without an error.

    Raises:
        UsageError: `out` is what no result is written to; SourceError: it cannot be written.
    """
    if out is None and not hasattr(sys.stdout, "buffer"):  # a caller has put something of its own there
        held = io.BytesIO()
        yield held
        sys.stdout.write(held.getvalue().decode("utf-8", "surrogateescape"))
        return
    if out is None:
        sys.stdout.flush()
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
            with _replacing(path) as file:
                yield file
    except BrokenPipeError:
        raise
    except OSError as error:
        raise SourceError(f"--out {out}: cannot be written: {error.strerror or error}") from error


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name[:100]}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
        os.chmod(temporary, _rights(path))
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _rights(path: Path) -> int:
    """Give the rights of the file that is replaced, else those of any new file: mkstemp's are for the owner only."""
    try:
        return stat.S_IMODE(path.lstat().st_mode)
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask
