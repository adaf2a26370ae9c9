"""JSON requests over HTTP, one session for each event loop: the only module that opens a connection to a model.

A server is believed nothing: a reply is read up to a limit, packed or not, a redirect is not followed (it would send
documents, and some keys, to whoever it names), cookies are not kept, and our own key is taken out of what comes back.
aiohttp is used as it is rather than through a client library of the protocol: a call is one POST of JSON, and the
library's own work on it costs several times as much as the rest of a call does (docs/decisions/0006).
"""

from __future__ import annotations

import contextlib
import json
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

from almanaq.errors import ModelError
from almanaq.models.address import HIDDEN, shown_address, without
from almanaq.models.clients import PerLoop

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

_CONNECT_SECONDS = 15.0
_LAST_SLASHES = re.compile(r"/+$")
_PIECE = 65_536
_EVENTS = "text/event-stream"
_SHORT_KEY = 7
"""Characters up to which a key is left where a server repeats it: it might be a word of the reply."""
CHAT_BYTES = 4 * 2**20
"""Longest reply of a chat: fifty times what the longest limit on output tokens lets a model write."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP reply, whole."""

    status: int
    body: bytes
    headers: Mapping[str, str]


class NoReply(Exception):
    """No whole reply came.

    Attributes:
        arrived: whether the request may have reached the server, which then counts it and may charge for it.
        timed_out: whether it was given up for taking too long.
    """

    def __init__(self, reason: str, *, arrived: bool, timed_out: bool = False) -> None:
        super().__init__(reason)
        self.arrived, self.timed_out = arrived, timed_out


class JsonServer:
    """A server that speaks JSON.

    Args:
        base_url: its address; a query in it (`?api-version=…`) is sent with every request.
        headers: sent with every request.
        timeout: seconds until a request is given up.
        secrets: what no message may hold, even where a server repeats it.
        most_bytes: the longest reply that is read, unpacked.
    """

    def __init__(
        self,
        base_url: str,
        headers: Mapping[str, str],
        *,
        timeout: float,
        secrets: tuple[str, ...] = (),
        most_bytes: int = CHAT_BYTES,
    ) -> None:
        self._parts = urlsplit(base_url)
        self._headers, self._timeout = dict(headers), timeout
        self._secrets, self._most = secrets, most_bytes
        self._proxy = _proxy_of(self._parts.scheme, self._parts.netloc, self._parts.hostname or "")
        self._sessions = PerLoop(self._open)

    async def post(
        self, path: str, content: Mapping[str, Any] | bytes, read: Callable[[bytes], None] | None = None
    ) -> Reply:
        """Return the reply to JSON at a path below the base address; raises NoReply where none came.

        `read` gets the events of a reply that is streamed as they come, before anything is taken out of them.
        """
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        return await self._ask("POST", path, data, read)

    async def get(self, path: str) -> Reply:
        """Return what stands at a path below the base address; raises NoReply where no reply came."""
        return await self._ask("GET", path, None)

    async def _ask(
        self, method: str, path: str, data: bytes | None, read: Callable[[bytes], None] | None = None
    ) -> Reply:
        import aiohttp

        url = urlunsplit(self._parts._replace(path=_LAST_SLASHES.sub("", self._parts.path) + path))
        session = await self._sessions.get()
        try:
            async with session.request(method, url, data=data, proxy=self._proxy, allow_redirects=False) as reply:
                return Reply(reply.status, self._clean(await self._body(reply, read)), reply.headers)
        # Their causes hold the address, and are left out of tracebacks.
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL) as problem:
            raise NoReply(self._said(problem), arrived=False) from None
        except TimeoutError:
            raise NoReply(f"no reply within {self._timeout:g} s", arrived=True, timed_out=True) from None
        except (aiohttp.ClientError, OSError, zlib.error) as problem:
            raise NoReply(self._said(problem), arrived=True) from None

    async def _body(self, reply: ClientResponse, read: Callable[[bytes], None] | None) -> bytes:
        """Read a reply to its end, or to the limit; leaving the block then closes the connection."""
        unpack = _unpacking(reply.headers.get("content-encoding", ""))
        streams = read is not None and reply.status == 200 and reply.content_type == _EVENTS
        if not streams and unpack is None and (reply.content_length or self._most + 1) <= self._most:
            # No more is read than was announced.
            return await reply.read()
        body = bytearray()
        async for piece in reply.content.iter_any() if streams else reply.content.iter_chunked(_PIECE):
            # One byte more than may come shows that more would.
            more = piece if unpack is None else unpack.decompress(piece, self._most + 1 - len(body))
            body += more
            if len(body) > self._most:
                raise NoReply(f"the reply is longer than {self._most:,} bytes", arrived=True)
            if streams and read is not None:
                read(more)
        return bytes(body)

    def _clean(self, body: bytes) -> bytes:
        for secret in self._secrets:
            written = secret.encode("utf-8", "replace")
            if len(secret) > _SHORT_KEY and written in body:
                body = body.replace(written, HIDDEN.encode())
        return body

    def _said(self, problem: Exception) -> str:
        # It may hold whatever the server has sent.
        message = " ".join(str(problem).split())[:300]
        return without(message or type(problem).__name__, self._secrets)

    def _open(self) -> ClientSession:
        import aiohttp

        limits = aiohttp.ClientTimeout(total=self._timeout, connect=None, sock_connect=_CONNECT_SECONDS)
        # How many calls are under way is bounded by ConcurrentModel; a second bound here would only hide it.
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=30)
        headers = {"content-type": "application/json", "accept-encoding": "gzip, deflate", **self._headers}
        return aiohttp.ClientSession(
            connector=connector,
            timeout=limits,
            headers=headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            # aiohttp would unpack without a limit.
            auto_decompress=False,
        )


def _unpacking(encoding: str) -> Any:
    """Return what unpacks a reply of an encoding, None for one that is not packed.

    Raises NoReply for an unknown one.
    """
    named = encoding.strip().lower()
    if named in ("", "identity"):
        return None
    if named in ("gzip", "x-gzip", "deflate"):
        # 32 more than the largest window: a header of gzip or of zlib, whichever is there.
        return zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
    raise NoReply(f"the reply is packed as {named[:20]!r}, which was not asked for", arrived=True)


def _proxy_of(scheme: str, netloc: str, host: str) -> str | None:
    """Return the proxy that the environment names for an address.

    aiohttp's own reading of the environment also takes passwords from ~/.netrc, in place of the key.
    """
    with contextlib.suppress(OSError):
        if proxy_bypass(netloc) or host in ("localhost", "127.0.0.1", "::1"):
            return None
    return getproxies().get(scheme)


def address_error(address: str, example: str) -> ModelError:
    """Return the error for something that is no address of a server."""
    shown = shown_address(address)
    return ModelError(f"{shown!r} is no address of a server: set OPENAI_BASE_URL to one such as {example}")
