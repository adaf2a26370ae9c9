"""How far a long run is, in a file of its folder: a line a minute, also while a retriever indexes and says nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from almanaq_bench.search import Progress

FILE = "progress.log"
_SECONDS = 60.0


@contextmanager
def logged(folder: Path, progress: Progress | None, *, seconds: float = _SECONDS) -> Iterator[Progress]:
    """Give what is told how many of how many questions are done, and passes it on; the file is begun after a minute."""
    started, ended = time.monotonic(), threading.Event()
    state = ["indexing"]

    def tell(done: int, total: int) -> None:
        state[0] = f"{done:,} of {total:,} questions"
        if progress is not None:
            progress(done, total)

    def write() -> None:
        while not ended.wait(seconds):
            with (folder / FILE).open("a", encoding="utf-8") as out:
                out.write(f"{time.strftime('%H:%M:%S')}  {time.monotonic() - started:,.0f} s  {state[0]}\n")

    thread = threading.Thread(target=write, name="progress of a run", daemon=True)
    thread.start()
    try:
        yield tell
    finally:
        ended.set()
        thread.join()
