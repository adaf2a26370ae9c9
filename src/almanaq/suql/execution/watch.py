"""Watching a query from outside: how far it is, and its rows so far when it is interrupted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass
class Watch:
    """Is told how far the text stage that runs is.

    Attributes:
        tell: takes how many rows are done, how many there are (None: not known), and how many passed.
        total: rows of the stage; None while they are not counted, or where a LIMIT ends it sooner.
        keeps: whether a query that is interrupted gives its rows so far, as Interrupted.
    """

    tell: Callable[[int, int | None, int], None]
    total: int | None = None
    keeps: bool = True

    def done(self, rows: int, passed: int) -> None:
        """Tell that so many rows of the stage are done, and so many of them passed."""
        self.tell(rows, self.total, passed)


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, where rows are there that are surely in the full result.

    Attributes:
        partial: the Result that holds them.
    """

    def __init__(self, partial: object) -> None:
        super().__init__("interrupted")
        self.partial = partial


_watch: ContextVar[Watch | None] = ContextVar("watch", default=None)


@contextmanager
def watched(tell: Callable[[int, int | None, int], None], *, keeps: bool = True) -> Iterator[None]:
    """Have the queries that are run in this block tell how far they are, and raise Interrupted at Ctrl-C.

    Args:
        keeps: False: who interrupts wants no rows, and what is cancelled ends as it would unwatched.
    """
    token = _watch.set(Watch(tell, keeps=keeps))
    try:
        yield
    finally:
        _watch.reset(token)


def current_watch() -> Watch | None:
    """Return what watches the query that is being run."""
    return _watch.get()
