"""JSON requests over HTTP: the only module that asks a model's server for anything.

A server is believed nothing: a reply is read up to a limit, packed or not, a redirect is not followed (it would send
documents, and some keys, to whoever it names), cookies are not kept, and our own key is taken out of what comes back.
HTTP is spoken by modules of our own (http_connection.py, http_reply.py): a call is one POST of JSON, and what a client
library does around it costs several times as much (docs/decisions/0006).
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit
from urllib.request import getproxies, proxy_bypass

from almanaq.errors import ModelError
from almanaq.models.address import HIDDEN, shown_address, without
from almanaq.models.clients import PerLoop
from almanaq.models.http_connection import Connections, NoConnection, Place, Proxy
from almanaq.models.http_reply import BadReply, ReplyReader

_SHORT_KEY = 7
"""Characters up to which a key is left where a server repeats it: it might be a word of the reply."""
CHAT_BYTES = 4 * 2**20
"""Longest reply of a chat: fifty times what the longest limit on output tokens lets a model write."""
_IN_PATHS = "/%:@!$&'()*+,;=~"
_USUAL = {
    "user-agent": "almanaq",
    "accept": "*/*",
    "content-type": "application/json",
    "accept-encoding": "gzip, deflate",
}


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP reply, whole; the names of its headers are in lower case."""

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
        self._address = base_url
        self._headers, self._timeout = _USUAL | dict(headers), timeout
        if any(sign in f"{name}{value}" for name, value in self._headers.items() for sign in "\r\n\0"):
            raise ValueError("a header holds the end of a line")
        self._secrets, self._most = secrets, most_bytes
        self._hidden = [s.encode("utf-8", "replace") for s in secrets if len(s) > _SHORT_KEY]
        self._connections = PerLoop(self._open)
        self._heads: dict[tuple[str, str], bytes] = {}

    async def post(
        self, path: str, content: Mapping[str, Any] | bytes, read: Callable[[bytes], None] | None = None
    ) -> Reply:
        """Give the reply to JSON at a path below the base address; raises NoReply where none came.

        `read` gets the events of a reply that is streamed as they come, before anything is taken out of them.
        """
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        return await self._ask("POST", path, data, read)

    async def get(self, path: str) -> Reply:
        """Give what stands at a path below the base address; raises NoReply where no reply came."""
        return await self._ask("GET", path, None)

    async def _ask(
        self, method: str, path: str, data: bytes | None, read: Callable[[bytes], None] | None = None
    ) -> Reply:
        reader = ReplyReader(self._most, read)
        # The causes of what is raised hold the address, and are left out of tracebacks.
        try:
            head = self._heads.get((method, path)) or self._head(method, path)
            connections = await self._connections.get()
        except ValueError as problem:
            raise NoReply(self._said(problem), arrived=False) from None
        request = head + (b"\r\n" if data is None else b"content-length: %d\r\n\r\n%b" % (len(data), data))
        try:
            await connections.ask(request, reader, self._timeout)
        except NoConnection as problem:
            raise NoReply(self._said(problem), arrived=False) from None
        except TimeoutError:
            raise NoReply(f"no reply within {self._timeout:g} s", arrived=True, timed_out=True) from None
        except (BadReply, OSError) as problem:
            raise NoReply(self._said(problem), arrived=True) from None
        return Reply(reader.status, self._clean(bytes(reader.body)), reader.headers)

    def _clean(self, body: bytes) -> bytes:
        for secret in self._hidden:
            if secret in body:
                body = body.replace(secret, HIDDEN.encode())
        return body

    def _said(self, problem: Exception) -> str:
        # It may hold whatever the server has sent.
        said = " ".join(str(problem).split())[:300]
        return without(said or type(problem).__name__, self._secrets)

    def _head(self, method: str, path: str) -> bytes:
        """Give the first lines of a request, which are the same each time. Raises ValueError for no address."""
        parts = urlsplit(self._address)
        netloc = parts.netloc.rpartition("@")[2]
        host = netloc if netloc.isascii() else netloc.encode("idna").decode()
        target = quote(parts.path.rstrip("/") + path, safe=_IN_PATHS)
        target += f"?{quote(parts.query, safe=_IN_PATHS + '?')}" if parts.query else ""
        headers = {"host": host, **self._headers}
        proxy = _proxy_of(self._address)
        if proxy is not None and parts.scheme == "http":
            target = f"http://{host}{target}"
            headers |= {"proxy-authorization": proxy.authorization} if proxy.authorization else {}
        lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), ""]
        head = self._heads[method, path] = "\r\n".join(lines).encode("latin-1")
        return head

    def _open(self) -> Connections:
        # How many calls are under way is bounded by ConcurrentModel; a second bound here would only hide it.
        return Connections(Place.of(self._address), _proxy_of(self._address))


def _proxy_of(address: str) -> Proxy | None:
    """Give the proxy that the environment names for an address. Raises ValueError where it names none that can be."""
    parts = urlsplit(address)
    with contextlib.suppress(OSError):
        if proxy_bypass(parts.netloc) or parts.hostname in ("localhost", "127.0.0.1", "::1"):
            return None
    named = getproxies().get(parts.scheme)
    return Proxy.of(named) if named else None


def address_error(address: str, example: str) -> ModelError:
    """Give the error for something that is no address of a server."""
    shown = shown_address(address)
    return ModelError(f"{shown!r} is no address of a server: set OPENAI_BASE_URL to one such as {example}")
