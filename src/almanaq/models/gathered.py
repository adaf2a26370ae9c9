"""GatheredVectors: texts that many calls need at the same time are embedded together, in a thread beside them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from almanaq.models.vector_store import Vectors, VectorStore

_AT_ONCE = 256
"""Texts that are embedded between two looks at what else is wanted: a fraction of a second."""


@dataclass(eq=False)
class _Wanted:
    """What the calls of one event loop wait for."""

    vectors: dict[str, asyncio.Future[Vectors]] = field(default_factory=dict)
    task: asyncio.Task[None] | None = None


class GatheredVectors:
    """Gives calls the vectors of their texts; what comes up in several calls is embedded once.

    A vector hangs on its text alone (minilm.py), so it is the same whatever calls happen to be under way.
    """

    def __init__(self, store: VectorStore) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _Wanted] = WeakKeyDictionary()

    async def have(self, texts: Sequence[str]) -> Mapping[str, Vectors]:
        """Return the unit vector of each text. Raises as VectorStore.vectors does."""
        loop = asyncio.get_running_loop()
        with self._lock:
            wanted = self._loops.setdefault(loop, _Wanted())
        waiting = {
            text: wanted.vectors.get(text) or wanted.vectors.setdefault(text, loop.create_future()) for text in texts
        }
        if wanted.task is None or wanted.task.done():
            wanted.task = loop.create_task(self._embed(wanted))
        await asyncio.wait(waiting.values())
        return {text: vector.result() for text, vector in waiting.items()}

    async def _embed(self, wanted: _Wanted) -> None:
        """Embed what is wanted until nothing is."""
        await asyncio.sleep(0)  # the calls that were begun along with the first say what they need
        try:
            while wanted.vectors:
                # Texts of like length together: an embedder pads those of a batch to the longest.
                chunk = sorted(wanted.vectors, key=len)[:_AT_ONCE]
                try:
                    found = await asyncio.to_thread(self._store.vectors, chunk)
                except Exception as problem:
                    for text in chunk:
                        _fail(wanted.vectors.pop(text), problem)
                    continue
                for text, vector in zip(chunk, found, strict=True):
                    wanted.vectors.pop(text).set_result(vector)
        finally:
            for left in wanted.vectors.values():
                left.cancel()
            wanted.vectors.clear()


def _fail(waiting: asyncio.Future[Vectors], problem: Exception) -> None:
    waiting.set_exception(problem)
    waiting.exception()  # looked at, so that asyncio does not report one that nobody waits for any more
