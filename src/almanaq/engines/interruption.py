"""What the sessions of all engines share: a deadline, interruption, and an end that waits for nothing long.

An engine looks whether it was interrupted between pieces of work, and some pieces are long (`lpad(x, 2000000000)` is
one). A session that ends waits a moment for what it stopped, and then detaches it: control goes back to the caller,
what runs is interrupted again and again in a thread of its own, ends when the engine next looks, and is tidied up then.
No exit of the interpreter waits for it.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

from almanaq.errors import DatabaseError, DeadlineExceeded, OperationalError

if TYPE_CHECKING:
    import pyarrow as pa

    from almanaq.suql.language import Parameters

# --- detached work ----------------------------------------------------------------------------------------------------

GRACE_SECONDS = 0.5
"""How long a session that ends waits for what it has stopped."""


class Lock(Protocol):
    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool: ...

    def release(self) -> None: ...


Kind = TypeVar("Kind", bound=threading.Thread)
_detached: set[threading.Thread] = set()
_helpers: set[threading.Thread] = set()
_guard = threading.Lock()


def finish_or_detach(finish: Callable[[], None], locks: Iterable[Lock]) -> None:
    """Run `finish`, which takes these locks: here when they come free in time, else in a detached thread."""
    until = time.monotonic() + GRACE_SECONDS
    for lock in locks:
        if not lock.acquire(timeout=max(0.0, until - time.monotonic())):
            _detach(finish)
            return
        lock.release()
    finish()


def finish_detached(work: Callable[[], None]) -> None:
    """Do what may take long in a thread, wait for it a moment, and detach it."""
    _detach(work).join(GRACE_SECONDS)


def close_or_detach(close: Callable[[], None], busy: type[Exception]) -> None:
    """Close a connection; where detached work is still on it, when that has ended."""

    def wait() -> None:
        while has_detached_work(but=threading.current_thread()):
            time.sleep(GRACE_SECONDS)
        close()

    try:
        close()
    except busy:
        _detach(wait)


def has_detached_work(*, but: threading.Thread | None = None) -> bool:
    """Return whether an engine still works on what was stopped: a process that ends would wait for it."""
    return any(thread.is_alive() for thread in _detached if thread is not but)


def _detach(finish: Callable[[], None]) -> threading.Thread:
    _detached.difference_update([thread for thread in _detached if not thread.is_alive()])
    thread = threading.Thread(target=finish, name="almanaq-left", daemon=True)
    _detached.add(thread)
    track_helper(thread).start()
    return thread


def track_helper(thread: Kind) -> Kind:
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
    """Wait a moment for threads that are about to end; where one does not, nothing more is printed."""
    until = time.monotonic() + GRACE_SECONDS
    for thread in [*_helpers]:
        if thread.is_alive():
            thread.join(max(0.0, until - time.monotonic()))
    if any(thread.is_alive() for thread in _helpers):  # DuckDB's binding prints pages about what they still hold
        silence_stderr()


def silence_stderr() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


# --- sessions ---------------------------------------------------------------------------------------------------------

_ENGINES_CLOCK_SECONDS = 0.05
"""An engine that bounds the time itself may end so much before the deadline here."""


@dataclass(eq=False, slots=True)
class Work:
    """One statement or stream under way.

    Attributes:
        lock: held while the engine works on it; of an engine with one connection, by all of a session's work.
        cursor: of an engine that has one for each.
        batches: the rows of a stream that are still to come; at most `batch_rows` at once, `first_rows` surely wanted.
        busy: whether the engine is in it.
        tag: by which a server knows it.
    """

    lock: threading.RLock = field(default_factory=threading.RLock)
    cursor: Any = None
    batches: Generator[pa.RecordBatch] | None = None
    batch_rows: int = 2048
    first_rows: int | None = None
    busy: bool = False
    stopped: bool = False
    tag: str = field(default_factory=lambda: f"almanaq-{uuid.uuid4().hex}")


class InterruptibleSession(ABC):
    """A Session as far as engines have it in common: streams, their end, the deadline, interruption."""

    insist_seconds = 0.02
    """An interruption that arrives just before the engine begins is lost: it is repeated until the work has ended."""

    def __init__(self) -> None:
        self._prefix = f"t{uuid.uuid4().hex[:12]}_"
        self._state = threading.Lock()  # guards what is under way, and whether the session is closed
        self._active: set[Work] = set()
        self._closed = self._expired = False
        self._ends: float | None = None
        self._timer: threading.Timer | None = None

    def _end_after(self, seconds: float | None, *, timed: bool) -> None:
        """Set the deadline (None: there is none); `timed`: work is interrupted from here, else by the engine itself."""
        if seconds is None:
            return
        self._ends = time.monotonic() + seconds
        if timed:
            self._timer = threading.Timer(max(seconds, 0.0), self._expire)
            track_helper(self._timer).start()

    def stream(
        self, sql: str, batch_rows: int = 2048, first_rows: int | None = None, parameters: Parameters = ()
    ) -> Iterator[pa.RecordBatch]:
        work = self._begin()
        work.batch_rows, work.first_rows = batch_rows, first_rows
        try:
            with self._step(work):
                batches = work.batches = self._open(work, sql, parameters)
        except BaseException:
            self._end(work)
            raise
        return self._batches(work, batches)

    def _batches(self, work: Work, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            while True:
                with self._step(work):
                    batch = next(batches, None)
                if batch is None:
                    return
                yield batch
        finally:
            self._end(work)

    def interrupt(self) -> None:
        with self._state:
            for work in self._active:
                work.stopped = True
        if self._needs_insistence():
            track_helper(threading.Thread(target=self._insist)).start()

    def order_as_planned(self) -> None:  # noqa: B027  # most engines have nothing to do
        ...

    def give_grace(self, seconds: float) -> bool:
        for lock in self._locks():
            if not lock.acquire(timeout=seconds):
                return False
            lock.release()
        if self._timer is not None:
            self._timer.cancel()
        self._expired = False
        self._end_after(seconds, timed=self._timer is not None)
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        """Drop every temporary table of this session and end its streams, later if the engine does not stop at once."""
        with self._state:
            self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self.interrupt()
        finish_or_detach(self._finish, self._locks())

    @abstractmethod
    def _open(self, work: Work, sql: str, parameters: Parameters) -> Generator[pa.RecordBatch]:
        """Begin a SELECT; give its rows as they are asked for, and end it when it is closed."""

    @abstractmethod
    def _cancel(self, work: Work) -> None:
        """Have the engine end what it is in; the state is locked."""

    @abstractmethod
    def _translate_error(self, error: Exception, work: Work) -> DatabaseError | None:
        """Return an error of the engine as ours; None for any other error."""

    @abstractmethod
    def _finish(self) -> None:
        """Leave nothing behind in the engine."""

    def _new_work(self) -> Work:
        return Work()

    def _locks(self) -> Iterable[Lock]:
        """Return what is held while the engine works."""
        with self._state:
            return {work.lock for work in self._active}

    def _begin(self) -> Work:
        with self._state:
            self._refuse_if_over()
            work = self._new_work()
            self._active.add(work)
            return work

    def _end(self, work: Work) -> None:
        if work.batches is not None:
            work.batches.close()
        with self._state:
            self._active.discard(work)

    @contextmanager
    def _statement(self) -> Iterator[Work]:
        work = self._begin()
        try:
            with self._step(work):
                yield work
        finally:
            self._end(work)

    @contextmanager
    def _step(self, work: Work) -> Iterator[None]:
        """Let the engine work within the block, unless it is to stop; what it says against that is our error."""
        with work.lock:
            with self._state:
                self._refuse_if_over()
                if work.stopped:
                    raise OperationalError("the query was interrupted")
                work.busy = True
            try:
                yield
            except DatabaseError:
                raise
            except Exception as error:
                translated = self._translate_error(error, work)
                if translated is None:
                    raise
                raise translated from error
            finally:
                with self._state:  # whoever interrupts it is done before it is closed
                    work.busy = False

    def _cancel_stopped(self) -> bool:
        """Cancel what runs and is to end; tell whether anything was."""
        with self._state:
            busy = [work for work in self._active if work.stopped and work.busy]
            for work in busy:
                self._cancel(work)
        return bool(busy)

    def _needs_insistence(self) -> bool:
        """Tell whether something runs that is to end; it is cancelled a first time."""
        return self._cancel_stopped()

    def _insist(self) -> None:
        while self._cancel_stopped():
            time.sleep(self.insist_seconds)

    def _expire(self) -> None:
        self._expired = True
        self.interrupt()

    def _is_late(self, *, nearly: bool = False) -> bool:
        """Return whether the deadline is over; `nearly`: by the clock of an engine that ends its work itself."""
        now = time.monotonic() + (_ENGINES_CLOCK_SECONDS if nearly else 0.0)
        return self._expired or (self._ends is not None and now >= self._ends)

    def _refuse_if_over(self) -> None:
        if self._is_late():
            raise _deadline_error()
        if self._closed:
            raise OperationalError("the session is closed")

    def _stop_error(self) -> DatabaseError:
        return _deadline_error() if self._is_late(nearly=True) else OperationalError("the query was interrupted")


def take_batches(
    batches: Iterable[pa.RecordBatch], most_bytes: int | None, most_rows: int | None
) -> tuple[list[pa.RecordBatch], bool]:
    """Return batches until they are more than so many bytes or rows (None: any), and whether some are left."""
    taken: list[pa.RecordBatch] = []
    held = count = 0
    for batch in batches:
        taken.append(batch)
        held, count = held + batch.nbytes, count + batch.num_rows
        if (most_bytes is not None and held > most_bytes) or (most_rows is not None and count >= most_rows):
            return taken, True
    return taken, False


def _deadline_error() -> DeadlineExceeded:
    return DeadlineExceeded("the query ran longer than its deadline and was stopped")
