"""Ending work that may not end: a session waits a moment for what it stopped, then leaves it to a thread of its own.

An engine looks whether it was interrupted between pieces of work, and some pieces are long (`lpad(x, 2000000000)` is
one). Control goes back to the caller all the same; what runs is interrupted again and again, ends when the engine next
looks, and is tidied up then.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Protocol

GRACE_SECONDS = 0.5
"""How long a session that ends waits for what it has stopped."""


class Lock(Protocol):
    """A lock as `threading` has them."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool: ...

    def release(self) -> None: ...


class Closed(Protocol):
    """What can be closed."""

    def close(self) -> None: ...


_left: set[threading.Thread] = set()


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
    """Say whether an engine still works on what was stopped: a process that ends would wait for it."""
    return any(thread.is_alive() for thread in _left if thread is not but)


def _leave(finish: Callable[[], None]) -> threading.Thread:
    _left.difference_update([thread for thread in _left if not thread.is_alive()])
    thread = threading.Thread(target=finish, name="almanaq-left")
    _left.add(thread)
    thread.start()
    return thread
