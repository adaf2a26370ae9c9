"""Connections to one server, kept open between requests: HTTP/1.1 over asyncio, through a proxy where one is named."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections import deque
from dataclasses import dataclass
from functools import cache
from urllib.parse import unquote, urlsplit

from almanaq.models.http_reply import BadReply, ReplyReader

_CONNECT_SECONDS, _IDLE_SECONDS = 15.0, 30.0
_NEXT_ADDRESS_SECONDS = 0.25
_TUNNEL_BYTES = 65_536


class NoConnection(Exception):
    """No connection could be opened, so that nothing was sent."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a server, or a proxy, is."""

    host: str
    port: int
    tls: bool

    @classmethod
    def of(cls, address: str) -> Place:
        """Give the place of an address. Raises ValueError where it is none."""
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("it is no address that begins with http:// or https://")
        tls = parts.scheme == "https"
        return cls(parts.hostname, parts.port or (443 if tls else 80), tls)


@dataclass(frozen=True, slots=True)
class Proxy:
    """What passes requests on; `authorization` is what it asks for, or nothing."""

    place: Place
    authorization: str = ""

    @classmethod
    def of(cls, address: str) -> Proxy:
        """Give the proxy that an address names, with the user in it. Raises ValueError where it is none."""
        address = address if "://" in address else f"http://{address}"
        parts = urlsplit(address)
        said = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
        held = f"Basic {base64.b64encode(said.encode()).decode()}" if parts.username else ""
        return cls(Place.of(address), held)


class Connections:
    """The connections of one event loop to one server.

    Args:
        place: of the server.
        proxy: what is asked in its stead: requests to a server without TLS are its to pass on, and are to name the
            whole address; the others go through a tunnel.
    """

    def __init__(self, place: Place, proxy: Proxy | None = None) -> None:
        self._place, self._proxy = place, proxy
        self._idle: deque[_Connection] = deque()

    async def ask(self, request: bytes, reader: ReplyReader, seconds: float) -> None:
        """Send a request and read the reply.

        Raises:
            NoConnection: nothing was sent. TimeoutError, BadReply, OSError: the server may have got it.
        """
        loop = asyncio.get_running_loop()
        connection = self._kept(loop.time())
        if connection is None:
            started = loop.time()
            connection = await self._opened(min(seconds, _CONNECT_SECONDS))
            seconds -= loop.time() - started
        try:
            await connection.ask(loop, request, reader, seconds)
        except BaseException:
            connection.abort()
            raise
        if reader.keeps:
            connection.since = loop.time()
            self._idle.append(connection)
        else:
            connection.abort()

    async def close(self) -> None:
        """Close all that is open and not in use; returns when their sockets are closed."""
        idle, self._idle = self._idle, deque()
        for connection in idle:
            connection.abort()
        for connection in idle:
            await connection.lost

    def _kept(self, now: float) -> _Connection | None:
        """Give the connection that was used last, and close those that nobody has used for long."""
        while self._idle and now - self._idle[0].since > _IDLE_SECONDS:
            self._idle.popleft().abort()
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open():
                return connection
        return None

    async def _opened(self, seconds: float) -> _Connection:
        try:
            async with asyncio.timeout(seconds):
                return await (self._direct(self._place) if self._proxy is None else self._through(self._proxy))
        except TimeoutError:
            raise NoConnection(f"no connection within {seconds:g} s") from None
        except (OSError, ValueError, BadReply) as problem:
            raise NoConnection(str(problem) or type(problem).__name__) from None

    async def _direct(self, place: Place) -> _Connection:
        _, connection = await asyncio.get_running_loop().create_connection(
            _Connection,
            place.host,
            place.port,
            ssl=_tls() if place.tls else None,
            happy_eyeballs_delay=_NEXT_ADDRESS_SECONDS,
        )
        return connection

    async def _through(self, proxy: Proxy) -> _Connection:
        connection = await self._direct(proxy.place)
        if not self._place.tls:
            return connection
        loop, place = asyncio.get_running_loop(), self._place
        to = f"[{place.host}]:{place.port}" if ":" in place.host else f"{place.host}:{place.port}"
        held = f"Proxy-Authorization: {proxy.authorization}\r\n" if proxy.authorization else ""
        reader = ReplyReader(_TUNNEL_BYTES, head_only=True)
        try:
            asked = f"CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n{held}\r\n".encode("ascii")
            await connection.ask(loop, asked, reader, _CONNECT_SECONDS)
            if not 200 <= reader.status < 300:
                raise BadReply(f"the proxy answered {reader.status}")
            await connection.begin_tls(loop, place.host)
        except BaseException:
            connection.abort()
            raise
        return connection


class _Connection(asyncio.Protocol):
    """One connection; it takes a request at a time.

    Attributes:
        lost: done once its socket is closed.
        since: when it was last used, by the loop's clock.
    """

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._reader: ReplyReader | None = None
        self._waiter: asyncio.Future[None] | None = None
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.since = 0.0

    async def ask(self, loop: asyncio.AbstractEventLoop, request: bytes, reader: ReplyReader, seconds: float) -> None:
        """Send a request and wait for the whole reply."""
        assert self._transport is not None
        waiter: asyncio.Future[None] = loop.create_future()
        self._waiter, self._reader = waiter, reader
        timer = loop.call_later(seconds, self._fail, TimeoutError())
        try:
            self._transport.write(request)
            await waiter
        finally:
            timer.cancel()
            self._waiter = self._reader = None

    async def begin_tls(self, loop: asyncio.AbstractEventLoop, host: str) -> None:
        """Speak TLS from now on, with whom a tunnel leads to."""
        assert self._transport is not None
        transport = await loop.start_tls(self._transport, self, _tls(), server_hostname=host)
        if transport is None:
            raise ConnectionError("the connection was closed")
        self._transport = transport

    def is_open(self) -> bool:
        """Say whether the other side has not closed it."""
        return self._transport is not None and not self._transport.is_closing()

    def abort(self) -> None:
        """Close it, whatever is under way."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep where requests go."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Read on; what nobody asked for ends the connection, so that it is no reply to what is asked next."""
        waiter, reader = self._waiter, self._reader
        if waiter is None or reader is None or waiter.done():
            self.abort()
            return
        try:
            if reader.feed(data):
                waiter.set_result(None)
        except Exception as problem:  # handed to who waits for the reply
            self._fail(problem)

    def connection_lost(self, problem: Exception | None) -> None:
        """Tell who waits for a reply."""
        waiter, reader = self._waiter, self._reader
        if not self.lost.done():
            self.lost.set_result(None)
        if waiter is None or reader is None or waiter.done():
            return
        if problem is not None:
            self._fail(problem)
            return
        try:
            reader.end()
        except BadReply as early:
            self._fail(early)
        else:
            waiter.set_result(None)

    def _fail(self, problem: Exception) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(problem)


@cache
def _tls() -> ssl.SSLContext:
    """Give what TLS takes: the certificates that the system, or SSL_CERT_FILE, trusts."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context
