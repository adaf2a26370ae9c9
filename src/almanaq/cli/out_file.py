"""Where a result is written: stdout, a file that is replaced whole, or a pipe or device that is written to.

A file is written beside its place and then takes it, so that it is either the old one or the whole new one. A symbolic
link is refused: what it leads to is somebody's choice, and need not be that of whoever names it.
"""

from __future__ import annotations

import contextlib
import glob
import io
import os
import re
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO

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


def remove_left_over(out: str) -> None:
    """Remove what a run that was killed left beside a file: half of what was to take its place.

    Only files that no process holds are taken: a run that goes on has its own locked.
    """
    path = Path(out).absolute()
    for left in path.parent.glob(glob.escape(_prefix(path)) + "*"):
        if left.is_symlink() or not left.is_file():
            continue
        with contextlib.suppress(OSError), left.open("rb+") as file:
            _lock(file)
            left.unlink()


def _prefix(path: Path) -> str:
    return f".{path.name[:100]}."


def _lock(file: IO[bytes]) -> None:
    """Hold a file as long as it is open; raises OSError where another process holds it."""
    try:
        import fcntl
    except ImportError:  # Windows, where a file that is open cannot be removed anyway
        return
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    handle, temporary = tempfile.mkstemp(prefix=_prefix(path), dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            _lock(file)
            yield file
            file.flush()
        os.chmod(temporary, _rights(path))
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _rights(path: Path) -> int:
    """Return the rights of the file that is replaced; a new one, as it holds cells, is its owner's alone."""
    try:
        return stat.S_IMODE(path.lstat().st_mode)
    except FileNotFoundError:
        return 0o600
