"""Opening a source so that a deadline or Ctrl-C ends it at once: it is read in a thread of its own, which is left."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from almanaq.corpus.stopping import Stop, stoppable_by
from almanaq.errors import DeadlineExceeded
from almanaq.suql.databases import leaving

_LOOK_SECONDS = 0.05
Opened = TypeVar("Opened", bound=leaving.Closed)


class _Opening(threading.Thread):
    """A source on its way: what was opened, or why it was not."""

    def __init__(self, work: Callable[[], object], stop: Stop) -> None:
        super().__init__(name="almanaq-opening")
        self.opened: list[object] = []
        self.failed: list[BaseException] = []
        self._work, self._stop_asked = work, stop

    def run(self) -> None:
        stoppable_by(self._stop_asked)
        try:
            self.opened.append(self._work())
        except BaseException as error:
            self.failed.append(error)


def open_within(work: Callable[[], Opened], seconds: float | None) -> Opened:
    """Give what `work` opens.

    Raises:
        DeadlineExceeded: it takes more than so many seconds; None: it may take any time.
    """
    stop = Stop()
    thread = leaving.helped(_Opening(work, stop))
    started = time.monotonic()
    thread.start()
    try:
        while thread.is_alive():
            thread.join(_wait(started, seconds, stop))
            if thread.is_alive() and seconds is not None and time.monotonic() - started > seconds + stop.granted:
                raise DeadlineExceeded(
                    f"the source was not opened within the deadline of {seconds:g} s: give it more, or open less of it"
                )
    except BaseException:
        _stop(thread, stop)
        raise
    if thread.failed:
        raise thread.failed[0]
    return thread.opened[0]  # type: ignore[return-value]  # what the work gave


def _wait(started: float, seconds: float | None, stop: Stop) -> float | None:
    """Give how long to wait until the deadline may be over."""
    if seconds is None:
        return None
    return max(_LOOK_SECONDS, started + seconds + stop.granted - time.monotonic())


def _stop(thread: _Opening, stop: Stop) -> None:
    """Ask a thread to end, wait a moment, and leave it else; what it opens all the same is closed."""

    def end() -> None:
        while thread.is_alive():
            stop.ask()
            thread.join(_LOOK_SECONDS)
        for opened in thread.opened:
            opened.close()  # type: ignore[attr-defined]  # as above

    leaving.finish(end)
