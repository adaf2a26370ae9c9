"""Opening a source so that a deadline or Ctrl-C ends it at once: it is read in a thread of its own, which is left."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from almanaq.corpus.read_cancellation import ReadCancellation, cancellable_by
from almanaq.errors import DeadlineExceeded
from almanaq.suql.databases import leaving

_LOOK_SECONDS = 0.05
Opened = TypeVar("Opened", bound=leaving.Closed)


class _Opening(threading.Thread):
    """A source on its way: what was opened, or why it was not."""

    def __init__(self, work: Callable[[], object], cancellation: ReadCancellation) -> None:
        super().__init__(name="almanaq-opening")
        self.opened: list[object] = []
        self.failed: list[BaseException] = []
        self._work, self._cancellation = work, cancellation

    def run(self) -> None:
        cancellable_by(self._cancellation)
        try:
            self.opened.append(self._work())
        except BaseException as error:
            self.failed.append(error)


def open_within(work: Callable[[], Opened], seconds: float | None) -> Opened:
    """Return what `work` opens.

    Raises:
        DeadlineExceeded: it takes more than so many seconds; None: it may take any time.
    """
    cancellation = ReadCancellation()
    thread = leaving.helped(_Opening(work, cancellation))
    started = time.monotonic()
    thread.start()
    try:
        while thread.is_alive():
            thread.join(_wait(started, seconds, cancellation))
            if (
                thread.is_alive()
                and seconds is not None
                and time.monotonic() - started > seconds + cancellation.granted
            ):
                raise DeadlineExceeded(
                    f"the source was not opened within the deadline of {seconds:g} s: give it more, or open less of it"
                )
    except BaseException:
        _cancel(thread, cancellation)
        raise
    if thread.failed:
        raise thread.failed[0]
    return thread.opened[0]  # type: ignore[return-value]  # what the work gave


def _wait(started: float, seconds: float | None, cancellation: ReadCancellation) -> float | None:
    """Return how long to wait until the deadline may be over."""
    if seconds is None:
        return None
    return max(_LOOK_SECONDS, started + seconds + cancellation.granted - time.monotonic())


def _cancel(thread: _Opening, cancellation: ReadCancellation) -> None:
    """Ask a thread to end, wait a moment, and leave it else; what it opens all the same is closed."""

    def end() -> None:
        while thread.is_alive():
            cancellation.cancel()
            thread.join(_LOOK_SECONDS)
        for opened in thread.opened:
            opened.close()  # type: ignore[attr-defined]  # as above

    leaving.finish(end)
