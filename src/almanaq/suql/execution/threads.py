"""Blocking work off the event loop, in threads that are kept from one query to the next."""

from __future__ import annotations

import asyncio
import contextvars
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
_MOST_THREADS = 64


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Give what a function gives, run in a thread; like `asyncio.to_thread`, whose threads end with the event loop."""
    call = partial(contextvars.copy_context().run, work, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_pool(), call)


@cache
def _pool() -> ThreadPoolExecutor:
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not survive a fork
    return ThreadPoolExecutor(_MOST_THREADS, thread_name_prefix="almanaq")
