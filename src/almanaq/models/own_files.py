"""Files that hold what was asked and answered: read and written by the user alone."""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def make_own(file: Path) -> None:
    """Make a file, empty, that only its owner may read, with its folder; one that is there is closed to others.

    A file of another user's is left as it is. Raises OSError where it cannot be made.
    """
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        found = file.stat()
    except FileNotFoundError:
        _make(file)
        return
    if found.st_mode & _OTHERS and stat.S_ISREG(found.st_mode) and found.st_uid == getattr(os, "getuid", lambda: -1)():
        with suppress(OSError):
            file.chmod(stat.S_IMODE(found.st_mode) & ~_OTHERS)


def own_temporary() -> Path:
    """Return a folder for temporary files that others can neither read nor have put there: one for each user."""
    user = getattr(os, "getuid", lambda: "user")()
    folder = Path(tempfile.gettempdir()) / f"almanaq-{user}"
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        if stat.S_ISDIR(found.st_mode) and not found.st_mode & _OTHERS and found.st_uid == user:
            return folder
    return Path(tempfile.mkdtemp(prefix="almanaq-"))


def open_own(path: str, flags: int) -> int:
    """Open a file as `open` does, a new one for its owner alone: for the argument `opener`."""
    return os.open(path, flags, 0o600)


def _make(file: Path) -> None:
    # Made under another name and linked: to close a file that SQLite has open meanwhile would end SQLite's locks.
    handle, draft = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    os.close(handle)
    try:
        with suppress(FileExistsError):
            os.link(draft, file)
    except OSError:
        # A file system without links: whoever uses the file makes it.
        if not file.parent.is_dir():
            raise
    finally:
        os.unlink(draft)
