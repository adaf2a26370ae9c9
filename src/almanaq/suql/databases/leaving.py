"""Ending work that may not end: a session waits a moment for what it stopped, then leaves it to a thread of its own.

An engine looks whether it was interrupted between pieces of work, and some pieces are long (`lpad(x, 2000000000)` is
one). Control goes back to the caller all the same; what runs is interrupted again and again, ends when the engine next
looks, and is tidied up then. No exit of the interpreter waits for it.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

GRACE_SECONDS = 0.5
"""How long a session that ends waits for what it has stopped."""


class Lock(Protocol):
    """A lock as `threading` has them."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool: ...

    def release(self) -> None: ...


class Closed(Protocol):
    """What can be closed."""

    def close(self) -> None: ...


Kind = TypeVar("Kind", bound=threading.Thread)
_left: set[threading.Thread] = set()
_helpers: set[threading.Thread] = set()
_guard = threading.Lock()


def end(finish: Callable[[], None], locks: Iterable[Lock]) -> None:
    """Run `finish`, which takes these locks: here when they come free in time, else in a thread that is left behind."""
    until = time.monotonic() + GRACE_SECONDS
    for lock in locks:
        if not lock.acquire(timeout=max(0.0, until - time.monotonic())):
            _leave(finish)
            return
        lock.release()
    finish()


def finish(work: Callable[[], None]) -> None:
    """Do what may take long in a thread, wait for it a moment, and leave it behind."""
    _leave(work).join(GRACE_SECONDS)


def close(connection: Closed, busy: type[Exception]) -> None:
    """Close a connection; where work that was left is still on it, when that has ended."""

    def wait() -> None:
        while work_was_left(but=threading.current_thread()):
            time.sleep(GRACE_SECONDS)
        connection.close()

    try:
        connection.close()
    except busy:
        _leave(wait)


def work_was_left(*, but: threading.Thread | None = None) -> bool:
    """Return whether an engine still works on what was stopped: a process that ends would wait for it."""
    return any(thread.is_alive() for thread in _left if thread is not but)


def _leave(finish: Callable[[], None]) -> threading.Thread:
    _left.difference_update([thread for thread in _left if not thread.is_alive()])
    thread = threading.Thread(target=finish, name="almanaq-left", daemon=True)
    _left.add(thread)
    helped(thread).start()
    return thread


def helped(thread: Kind) -> Kind:
    """Return a thread that holds what is an engine's: the interpreter's exit waits a moment for it, and no longer."""
    thread.daemon = True
    with _guard:
        if not _helpers:
            atexit.unregister(_exit)
            atexit.register(_exit)
        _helpers.difference_update([known for known in _helpers if known.ident is not None and not known.is_alive()])
        _helpers.add(thread)
    return thread


def _exit() -> None:
    """Wait a moment for threads that are about to end; where one does not, what DuckDB says of it is nobody's concern.

    Its binding prints pages about every object that a thread still holds when the interpreter is gone.
    """
    until = time.monotonic() + GRACE_SECONDS
    for thread in [*_helpers]:
        if thread.is_alive():
            thread.join(max(0.0, until - time.monotonic()))
    if any(thread.is_alive() for thread in _helpers):
        silence()


def silence() -> None:
    """Print nothing more: the interpreter ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
