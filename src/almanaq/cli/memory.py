"""A bound on the memory of a command: a query that needs more fails, where the machine would end some process."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_SHARE = 0.8
_CGROUP = Path("/sys/fs/cgroup/memory.max")
_ALLOCATOR = ("DUCKDB_JE_MALLOC_CONF", "retain:false")
"""DuckDB's own allocator keeps the addresses of what it has freed. They count towards the bound of a process, so that a
few queries that ran into it would leave no memory to any other, though hardly any is in use."""


def give_freed_memory_back() -> None:
    """Have DuckDB give memory that it has freed to the system; of effect where it is not loaded yet."""
    os.environ.setdefault(*_ALLOCATOR)


def bound_memory(model: str, embedder: str | None) -> None:
    """Let this process hold four fifths of the machine's memory, or of the container's, where the system can say so.

    Models that run in this process reserve far more than they use, on a GPU above all: with one there is no bound.
    """
    far = embedder in (None, "lexical", "static") or embedder.startswith("openai:")
    if model.startswith("local:") or not far:
        return
    with suppress(ImportError, OSError, ValueError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
        most = int(_SHARE * _memory())
        if soft == resource.RLIM_INFINITY or soft > most:
            resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


def _memory() -> int:
    held = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(OSError, ValueError):
        return min(held, int(_CGROUP.read_text()))
    return held
