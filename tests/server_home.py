"""Where servers that the tests start keep their data, and at what port they listen."""

from __future__ import annotations

import shutil
import socket
import tempfile
from pathlib import Path

_MEMORY = Path("/dev/shm")
_ROOM = 4 * 2**30
PORTS_TRIED = 5
"""Between the choice of a free port and the server's start another process may take it."""


def new_home(prefix: str) -> Path:
    """Make a folder for a server: in memory where there is room.

    A disk that has written thousands of files takes up to a minute to delete them.
    """
    roomy = _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > _ROOM
    return Path(tempfile.mkdtemp(prefix=prefix, dir=_MEMORY if roomy else None))


def free_port() -> int:
    """Return a port that nobody listens at now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
