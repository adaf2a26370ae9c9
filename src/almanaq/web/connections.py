"""What clients may hold open: so many connections, each for so long without a whole request.

A client needs no token to open a connection. One that sends half a request, or reads nothing of a response, holds it
until a limit ends it; where there is no room for another, that which has waited longest gives way. So nobody who sends
a whole request is kept out by those who do not. What was closed is told once a minute, in one line.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

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
        self._of_address: Counter[str] = Counter()
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
        address, limits = connection.address, self.limits
        if address is not None:
            if self._of_address[address] >= limits.of_address:
                self._make_room((each for each in self._open if each.address == address), "too many of one address")
            elif len(self._open) >= limits.in_all:
                self._make_room(self._open, "too many in all")
            self._of_address[address] += 1
        self._open[connection] = None

    def leave(self, connection: GuardedProtocol) -> None:
        """Forget a connection that has ended."""
        if connection in self._open:
            del self._open[connection]
            if connection.address is not None:
                self._of_address[connection.address] -= 1
                if not self._of_address[connection.address]:
                    del self._of_address[connection.address]

    def is_full(self, connection: GuardedProtocol) -> bool:
        """Return whether there is no room for a connection that was just taken in, as nobody gave way."""
        address = connection.address
        full = len(self._open) > self.limits.in_all or self._of_address[address or ""] > self.limits.of_address
        if address is not None and full:
            self._closed["refused: all others are at work"] += 1
        return address is not None and full

    def _make_room(self, among: Iterable[GuardedProtocol], why: str) -> None:
        waiting = [each for each in among if each.address is not None and each.phase == "head"]
        if waiting:
            oldest = min(waiting, key=lambda each: each.since)
            self._closed[f"without a whole request, to make room: {why}"] += 1
            self.leave(oldest)
            oldest.transport.abort()

    def _end_late(self, connection: GuardedProtocol, now: float) -> None:
        limit = {"head": self.limits.head, "body": self.limits.body, "reading": self.limits.reading}
        phase = connection.look(now)
        if phase not in limit or now - connection.since <= limit[phase]:
            return
        self._closed[f"after {limit[phase]:g} s: {_WHY[phase]}"] += 1
        if phase == "head" and connection.has_begun:
            connection.transport.write(_TOO_LATE)
            connection.transport.close()
        else:
            connection.transport.abort()


_WHY = {
    "head": "the head of the request had not come",
    "body": "the body of the request had not come",
    "reading": "nothing of the response was read",
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
