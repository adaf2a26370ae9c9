"""Threads for questions that are answered side by side: they wait for a model most of the time, whatever the cores."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
MOST = 64
"""More than a run asks at once (generation/run.py: 16); asyncio's own pool has six threads on two cores."""


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do what `asyncio.to_thread` does, in a pool of our own."""
    context = contextvars.copy_context()
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_pool(), lambda: context.run(work, *args, **kwargs))


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(MOST, thread_name_prefix="question")
