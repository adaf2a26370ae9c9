"""Where servers that the tests start keep their data."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

_MEMORY = Path("/dev/shm")
_ROOM = 4 * 2**30


def new_home(prefix: str) -> Path:
    """Make a folder for a server: in memory where there is room.

    A disk that has written thousands of files takes up to a minute to delete them.
    """
    roomy = _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > _ROOM
    return Path(tempfile.mkdtemp(prefix=prefix, dir=_MEMORY if roomy else None))
