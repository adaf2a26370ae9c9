"""Writing an index on disk: by one process at a time, and so that a crash leaves the old one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from almanaq.errors import SourceError
from almanaq.models.private_files import open_private

LOCK = ".lock"


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold a folder for writing, made if need be; the hold ends with the process, however that ends.

    A second writer would take the first one's files for leftovers of a crash. Where the system has no such locks
    (Windows) nothing is held.

    Raises:
        SourceError: another process holds it, or it cannot be written.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = (folder / LOCK).open("w")
    except OSError as error:
        raise SourceError(f"cannot write the index {folder}: {error}") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise SourceError(f"another process is writing the index {folder}: wait until it is done") from error
        try:
            yield
        finally:
            if [path.name for path in folder.iterdir()] == [LOCK]:
                # Nothing came of it: leave no trace.
                (folder / LOCK).unlink()
                with suppress(OSError):
                    folder.rmdir()


def replace_file(file: Path, text: str) -> None:
    """Put a file in the old one's place in one step; it is on the disk when this returns."""
    fresh = file.with_name(f".{file.name}.{os.getpid()}")
    with open(fresh, "w", encoding="utf-8", opener=open_private) as opened:
        opened.write(text)
        opened.flush()
        os.fsync(opened.fileno())
    fresh.replace(file)
    with suppress(OSError):  # a folder cannot be flushed on Windows
        folder = os.open(file.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
