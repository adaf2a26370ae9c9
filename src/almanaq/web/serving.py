"""Runs the application on uvicorn: which connections it takes and for how long, what it logs, how it ends."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from almanaq.web.gate import Gate

_log = logging.getLogger("almanaq.web")
_MINUTE = 60.0
_SPARE_FILES = 150
"""Files that the process may have open beside connections."""
_LOOK_SECONDS = 1.0
_PROGRESS_BYTES = 64_000
_TOO_LATE = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """How many connections there may be, and how long each may take.

    Attributes:
        in_all, of_address: open connections; those of one address may be many people's behind a proxy.
        head, body: seconds within which the head of a request comes, and then its body.
        reading: seconds in which a client takes at least something of a response that is ready.
    """

    in_all: int = 800
    of_address: int = 400
    head: float = 10.0
    body: float = 60.0
    reading: float = 60.0


def limits_here() -> ConnectionLimits:
    """Return the limits that fit the number of files this process may have open, which is raised as far as it goes."""
    limits = ConnectionLimits()
    with suppress(ImportError, OSError, ValueError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = 65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536)
        if soft != resource.RLIM_INFINITY and soft < most:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        in_all = max(20, min(limits.in_all, most - _SPARE_FILES))
        return ConnectionLimits(in_all, in_all // 2)
    return limits


class OpenConnections:
    """The connections of a server; `protocol` is what it speaks with each."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self._open: dict[GuardedProtocol, None] = {}
        self._closed: Counter[str] = Counter()
        self._told = -_MINUTE

    def protocol(self, *arguments: Any, **named: Any) -> asyncio.Protocol:
        """Return what speaks with a client that has just connected."""
        return GuardedProtocol(self, *arguments, **named)

    async def look(self) -> None:
        """End what takes too long, again and again."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            now = time.monotonic()
            for connection in list(self._open):
                self._end_late(connection, now)
            if self._closed and now - self._told >= _MINUTE:
                self._told, closed = now, self._closed
                self._closed = Counter()
                _log.warning("connections closed: %s", ", ".join(f"{n:,} {why}" for why, n in closed.most_common()))

    def enter(self, connection: GuardedProtocol) -> None:
        """Take in a connection; where that is one too many, the one that has waited longest for a request goes."""
        if connection.address is not None:
            alike = self._find_alike(connection)
            if len(alike) >= self.limits.of_address:
                self._make_room(alike, "too many from one address")
            elif len(self._open) >= self.limits.in_all:
                self._make_room(self._open, "too many in all")
        self._open[connection] = None

    def leave(self, connection: GuardedProtocol) -> None:
        """Forget a connection that has ended."""
        self._open.pop(connection, None)

    def is_full(self, connection: GuardedProtocol) -> bool:
        """Return whether there is no room for a connection that was just taken in, as nobody gave way."""
        limits = self.limits
        full = len(self._open) > limits.in_all or len(self._find_alike(connection)) > limits.of_address
        if connection.address is None or not full:
            return False
        self._closed["refused: all others are busy"] += 1
        return True

    def _find_alike(self, connection: GuardedProtocol) -> list[GuardedProtocol]:
        return [each for each in self._open if each.address == connection.address]

    def _make_room(self, among: Iterable[GuardedProtocol], why: str) -> None:
        waiting = [each for each in among if each.address is not None and each.phase == "head"]
        if waiting:
            oldest = min(waiting, key=lambda each: each.since)
            self._closed[f"without a whole request, to make room: {why}"] += 1
            self.leave(oldest)
            oldest.transport.abort()

    def _end_late(self, connection: GuardedProtocol, now: float) -> None:
        phase = connection.look(now)
        if phase not in _WHY or now - connection.since <= (limit := getattr(self.limits, phase)):
            return
        self._closed[f"after {limit:g} s: {_WHY[phase]}"] += 1
        if phase == "head" and connection.has_begun:
            connection.transport.write(_TOO_LATE)
            connection.transport.close()
        else:
            connection.transport.abort()


_WHY = {
    "head": "the head of the request did not arrive",
    "body": "the body of the request did not arrive",
    "reading": "the client did not read the response",
}


class GuardedProtocol(H11Protocol):
    """uvicorn's way to speak HTTP with one client, watched.

    Attributes:
        address: of the client; None for one that is not counted: a socket without an address.
        phase: `head` or `body` of a request are awaited, it is worked on (`work`), or a response is waited for to be
            taken (`reading`).
        since: when the phase began, in the seconds of `time.monotonic`.
    """

    def __init__(self, guard: OpenConnections, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._guard, self._unread = guard, 0
        self.address: str | None = None
        self.phase, self.since, self.has_begun = "head", time.monotonic(), False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take a client in."""
        super().connection_made(transport)  # type: ignore[arg-type]
        self.address = self.client[0] if self.client else None
        self._guard.enter(self)
        if self._guard.is_full(self):
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Let a client go."""
        self._guard.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read a part of a request."""
        self.has_begun = True
        super().data_received(data)
        self.look(time.monotonic())

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self.has_begun = False
        self.look(time.monotonic())

    def look(self, now: float) -> str:
        """Return the phase of this moment."""
        unread = self.transport.get_write_buffer_size()
        if unread:
            phase = "reading"
            if self.phase != phase or unread > self._unread:
                self._unread = unread
            elif self._unread - unread >= _PROGRESS_BYTES:
                self._unread, self.since = unread, now
        elif self.cycle is None or self.cycle.response_complete:
            phase = "head"
        else:
            phase = "body" if self.cycle.more_body else "work"
        if phase != self.phase:
            self.phase, self.since = phase, now
        return phase


_SECONDS_TO_FINISH = 2.0
_SECONDS_TO_END = 2
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_SELDOM = (10_000, 5, 5)
"""Of 4,000 objects that a turn makes: the young are looked through every few turns, all of them every sixty or so. With
turns under way at once most outlive the first looks, so that rarer ones would hold their garbage: 100 MB of it."""
_LOGS = ("asyncio", "uvicorn.error", "almanaq", "almanaq.web")


def serve(application: Gate, sockets: Sequence[socket.socket], ready: Callable[[], None]) -> None:
    """Answer requests until a signal; within seconds what is under way is finished or ended. The process ends with it.

    Args:
        ready: called once requests are answered.
    """
    limits, rare = limits_here(), _OnceAMinute()
    gc.collect()
    gc.freeze()  # what there is now, 130,000 objects, takes 80 ms in each search for garbage
    gc.set_threshold(*_SELDOM)
    for name in _LOGS:
        logging.getLogger(name).addFilter(rare)
    try:
        asyncio.run(make_server(application, ready, limits).serve(sockets=list(sockets)))
    finally:
        gc.unfreeze()  # else extensions report the frozen objects as leaked when the process ends


def make_server(application: Gate, ready: Callable[[], None], limits: ConnectionLimits | None = None) -> uvicorn.Server:
    """Return a server that is not yet begun; setting its `should_exit` ends it."""
    connections = OpenConnections(limits or ConnectionLimits())
    config = uvicorn.Config(
        application,
        http=connections.protocol,  # type: ignore[arg-type]
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        lifespan="on",
        timeout_graceful_shutdown=int(_SECONDS_TO_FINISH) + _SECONDS_TO_END,
    )
    return _Server(config, ready, application.end, connections)


class _Server(uvicorn.Server):
    """A server that says when it is ready, and ends at a signal as if it had been asked to."""

    def __init__(
        self,
        config: uvicorn.Config,
        ready: Callable[[], None],
        end: Callable[[], Coroutine[Any, Any, None]],
        connections: OpenConnections,
    ) -> None:
        super().__init__(config)
        self._ready, self._end, self._connections = ready, end, connections
        self._looking: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        await super().startup(sockets)
        if self.started:
            self._looking = asyncio.ensure_future(self._connections.look())
            self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept nothing more, and end what does not finish soon, so that each client gets an error."""
        ending: list[asyncio.Task[None]] = []
        timer = asyncio.get_running_loop().call_later(
            _SECONDS_TO_FINISH, lambda: ending.append(asyncio.ensure_future(self._end()))
        )
        if self._looking is not None:
            self._looking.cancel()
        await super().shutdown(sockets)
        timer.cancel()
        await asyncio.gather(*ending)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take signals for the time of serving; uvicorn would raise them again at the end."""
        if threading.current_thread() is not threading.main_thread():
            yield  # whoever started the thread ends the server
            return
        before: dict[Any, Any] = {each: signal.signal(each, self.handle_exit) for each in _SIGNALS}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)


class _OnceAMinute(logging.Filter):
    """Lets a message pass once a minute, saying how often it was left out: nobody can fill the disk with a log."""

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[tuple[str, str, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a message passes."""
        fault = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else ""
        key = (record.name, str(record.msg)[:200], fault)
        passed, left_out = self._last.get(key, (0.0, 0))
        now = time.monotonic()
        if passed and now - passed < _MINUTE:
            self._last[key] = (passed, left_out + 1)
            return False
        if len(self._last) > 1_000:
            self._last.clear()
        self._last[key] = (now, 0)
        if left_out:
            record.msg = f"{record.msg} (and {left_out:,} times in the last minute)"
        return True
