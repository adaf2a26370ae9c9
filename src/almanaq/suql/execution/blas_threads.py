"""Products of matrices in the caller's own thread: where several threads multiply, BLAS is to start none of its own."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits

_lock = threading.Lock()
_limits: list[threadpool_limits] = []
_inside = 0


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Let a product of matrices use the thread that asks for it, and no other, until the last such block is left.

    BLAS's threads wait for one another without sleeping. On a machine with other work, or with as many callers as
    cores, a product with them takes ten times the processor time of one without.
    """
    global _inside
    with _lock:
        if not _inside:
            _limits.append(threadpool_limits(1, user_api="blas"))
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                _limits.pop().restore_original_limits()
