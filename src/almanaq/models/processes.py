"""Which process holds something: its number alone does not say, as the next process may have the same one.

A container that was killed and started again runs under the number of its dead self.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_STARTED = 19
"""The place of the start time among the fields of `/proc/PID/stat` behind the name, in ticks since the boot."""


def process_mark(pid: int | None = None) -> str:
    """Return the boot and the moment at which a process began: another one of its number has another mark.

    Args:
        pid: None is this process, which the system's table may list under another number.

    Gives "" where there is no such process, or the system does not say.
    """
    with suppress(OSError, ValueError, IndexError):
        fields = Path(f"/proc/{'self' if pid in (None, os.getpid()) else pid}/stat").read_text("utf-8", "replace")
        return f"{_BOOT.read_text().strip()} {int(fields.rpartition(')')[2].split()[_STARTED])}"
    return ""


def process_lives(pid: object, mark: object) -> bool:
    """Return whether the process that had this number and mark on this machine still runs; rather yes than no."""
    if not isinstance(pid, int) or not 0 < pid < 2**31:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # it is another user's
    now = process_mark(pid)
    return not mark or not now or now == mark
