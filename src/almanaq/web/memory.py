"""Memory of a server that is to stay up: what queries took is given back, and one that takes too much is ended in time.

A command has a bound on its memory (`cli/memory.py`), and DuckDB one of half of that. A query that takes more beside
DuckDB's own, as texts of gigabytes do, could leave nothing for anybody else: before that, what runs is ended.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_STATUS = Path("/proc/self/status")
_FULL = 0.85
"""The share of the bound at which what runs is ended."""
_TOO_MUCH = 0.4
"""The share of the bound that a server with nothing to do may hold; with more it ends, to be started again."""
_LOOK_SECONDS = 0.1
_SHED_SECONDS = 3.0
"""What a job that was ended has to let go of its memory, before the next one is ended."""
_IDLE_SECONDS = 20.0
_GROWN = 100_000_000
"""Bytes more than after the last time at which it is worth giving memory back."""


class MemoryWatch:
    """Watches the memory of this process while it serves.

    Args:
        jobs: how many jobs are under way.
        shed: ends the one that goes on for longest.
        leave: ends the process, which is started again; None where nobody would do that.
    """

    def __init__(self, jobs: Callable[[], int], shed: Callable[[], None], leave: Callable[[], None] | None) -> None:
        self._jobs, self._shed, self._leave = jobs, shed, leave
        self._bound, self._shed_next = _bound(), 0.0
        self._least, self._idle_since = _held("VmRSS"), time.monotonic()

    async def look(self) -> None:
        """Look at it again and again, where the system says what is held."""
        while self._least:
            await asyncio.sleep(_LOOK_SECONDS)
            now = time.monotonic()
            if self._bound and now >= self._shed_next and _held("VmData") > _FULL * self._bound:
                self._shed()
                self._shed_next = now + _SHED_SECONDS
            if self._jobs():
                self._idle_since = now
                continue
            held = _held("VmRSS")
            if held > self._least + _GROWN:
                await asyncio.to_thread(give_back)
                self._least = _held("VmRSS")
            too_much = self._bound and self._least > _TOO_MUCH * self._bound
            if too_much and self._leave is not None and now - self._idle_since > _IDLE_SECONDS:
                self._leave()
                return


def give_back() -> None:
    """Give the memory to the system that this process holds and does not use."""
    gc.collect()
    with suppress(ImportError, AttributeError):
        import pyarrow as pa

        pa.default_memory_pool().release_unused()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def _bound() -> int:
    """Return the bytes that this process may hold; 0 where there is no bound."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_DATA)
        return 0 if soft == resource.RLIM_INFINITY else soft
    return 0


def _held(name: str) -> int:
    """Return the bytes that the system counts under a name; 0 where it does not say."""
    with suppress(OSError, ValueError):
        for line in _STATUS.read_bytes().splitlines():
            if line.startswith(name.encode()):
                return int(line.split()[1]) * 1024
    return 0
