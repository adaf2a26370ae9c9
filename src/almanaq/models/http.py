"""JSON requests over HTTP: the only module that opens a connection to a model.

Nothing that a server sends is trusted: replies are read up to a limit, packed or not; redirects are not followed, as
they could send documents and keys elsewhere; cookies are dropped; and our own key is removed from what comes back.
aiohttp is used directly rather than through a client library of the protocol: a call is one POST of JSON, and a
library would cost several times as much as the rest of the call (docs/decisions/0006).
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

from almanaq.event_loops import PerLoop

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession, FormData, TCPConnector
    from aiohttp.client_proto import ResponseHandler

HIDDEN = "[key]"
_PUBLIC_PARAMETERS = ("api-version", "api_version", "version", "deployment", "model")
"""Query parameters that may be shown; the value of any other may be a key."""

_KEY_NAMES = re.compile(r"key|token|secret|sig|pass|pwd|auth|cred|code|jwt|sas", re.IGNORECASE)
_KEY_PATTERN = re.compile(r"\b(sk|key|Bearer)([-_ ])[\w.-]{6,}", re.IGNORECASE)
SHORTEST_SECRET = 6
"""Shortest value that is removed from texts: a shorter one could be an ordinary word."""


def redact_address(address: str) -> str:
    """Return an address fit for messages and the cache: without password and without query values."""
    try:
        parts = urlsplit(address)
        asked = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:
        return "an address that cannot be read"
    host = parts.netloc.rpartition("@")
    shown = "&".join(f"{name}={value if name.lower() in _PUBLIC_PARAMETERS else HIDDEN}" for name, value in asked)
    if parts.query and not asked:
        shown = HIDDEN
    return urlunsplit(parts._replace(netloc=f"{HIDDEN}@{host[2]}" if host[1] else host[2], query=shown, fragment=""))


def address_identity(address: str) -> str:
    """Return the identity of an address in cache keys: the redacted address, and a hash of its other parameters.

    Parameters that look like keys are left out: another key at the same server gets the same replies.
    """
    asked = parse_qsl(urlsplit(address).query, keep_blank_values=True)
    chosen = [pair for pair in asked if pair[0].lower() not in _PUBLIC_PARAMETERS and not _KEY_NAMES.search(pair[0])]
    shown = redact_address(address)
    return f"{shown} {hashlib.blake2b(repr(chosen).encode(), digest_size=6).hexdigest()}" if chosen else shown


def find_secrets(address: str) -> tuple[str, ...]:
    """Return the secret parts of an address, which no message, log or file may hold: encoded and decoded."""
    try:
        parts = urlsplit(address)
        decoded = [value for name, value in parse_qsl(parts.query) if name.lower() not in _PUBLIC_PARAMETERS]
        encoded = [
            pair.partition("=")[2]
            for pair in parts.query.split("&")
            if pair.partition("=")[0] not in _PUBLIC_PARAMETERS
        ]
        found = [*decoded, *encoded, *(part for part in (parts.username, parts.password) if part)]
    except ValueError:
        return ()
    return tuple(dict.fromkeys(value for value in found if len(value) >= SHORTEST_SECRET))


def remove_secrets(text: str, secrets: tuple[str, ...]) -> str:
    """Return a text without the secrets, except those too short to distinguish from words."""
    for secret in secrets:
        if len(secret) >= SHORTEST_SECRET:
            text = text.replace(secret, HIDDEN)
    return text


def redact_keys(text: str) -> str:
    """Return a text without anything that looks like a key."""
    return _KEY_PATTERN.sub(rf"\1\2{HIDDEN}", text)


_CONNECT_SECONDS = 15.0
_OPENED_AT_ONCE = 4
_LAST_SLASHES = re.compile(r"/+$")
_CHUNK_BYTES = 65_536
_EVENTS = "text/event-stream"
_SHORT_KEY = 7
"""Longest key that is not removed from replies, as it could be an ordinary word."""
CHAT_BYTES = 4 * 2**20
"""Maximum size of a chat reply: fifty times what the largest limit on output tokens allows."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A complete HTTP reply."""

    status: int
    body: bytes
    headers: Mapping[str, str]

    @property
    def succeeded(self) -> bool:
        """Whether the server says that it did what was asked."""
        return 200 <= self.status < 300


def may_pass(status: int) -> bool:
    """Return whether the same request may succeed after this status."""
    return status in (408, 409, 425, 429) or status >= 500


@dataclass(eq=False, repr=False)
class NoReply(Exception):
    """No complete reply came.

    Attributes:
        arrived: the request may have reached the server, which may charge for it.
        oversized: the reply is longer than is read, as that to the same request would be again.
        cause: what `reason` says, in words that hold no text and no address.
    """

    reason: str
    _: KW_ONLY
    cause: str
    arrived: bool = True
    timed_out: bool = False
    oversized: bool = False


class JsonServer:
    """A server that speaks JSON.

    Args:
        base_url: a query in it (`?api-version=…`) is sent with every request.
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
        parts = urlsplit(base_url)
        self._root = urlunsplit(parts._replace(path=_LAST_SLASHES.sub("", parts.path), query="", fragment=""))
        self._query, self._headers, self._timeout = parts.query, dict(headers), timeout
        self._secrets, self._most = secrets, most_bytes
        self._encoded_secrets = [each.encode("utf-8", "replace") for each in secrets if len(each) > _SHORT_KEY]
        # aiohttp's trust_env would also read passwords from ~/.netrc and send them in place of the key.
        self._proxy = getproxies().get(parts.scheme)
        with contextlib.suppress(OSError):
            if proxy_bypass(parts.netloc) or parts.hostname in ("localhost", "127.0.0.1", "::1"):
                self._proxy = None
        self._sessions = PerLoop(self._open_session)

    async def post(
        self, path: str, content: dict[str, Any] | bytes | FormData, read: Callable[[bytes], None] | None = None
    ) -> Reply:
        """POST JSON or a form to a path below the base address; raises NoReply where no reply came.

        `read` gets the events of a streamed reply as they arrive, before secrets are removed.
        """
        data = json.dumps(content).encode() if isinstance(content, dict) else content
        return await self._send("POST", path, data, read)

    async def get(self, path: str, query: str = "") -> Reply:
        """GET a path below the base address; raises NoReply where no reply came."""
        return await self._send("GET", path, query=query)

    async def delete(self, path: str) -> Reply:
        """DELETE a path below the base address; raises NoReply where no reply came."""
        return await self._send("DELETE", path)

    async def close(self) -> None:
        """Close the connections of the running loop before it ends."""
        await self._sessions.close()

    async def _send(
        self,
        method: str,
        path: str,
        data: bytes | FormData | None = None,
        read: Callable[[bytes], None] | None = None,
        query: str = "",
    ) -> Reply:
        import aiohttp

        asked = "&".join(filter(None, (self._query, query)))
        url = f"{self._root}{path}?{asked}" if asked else self._root + path
        body = aiohttp.BytesPayload(data, content_type="application/json") if isinstance(data, bytes) else data
        session = self._sessions.get()
        try:
            async with session.request(method, url, data=body, proxy=self._proxy, allow_redirects=False) as reply:
                found = await self._read_body(reply, read)
                for secret in self._encoded_secrets:
                    found = found.replace(secret, HIDDEN.encode())
                return Reply(reply.status, found, reply.headers)
        # `from None`, as the cause holds the address.
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL) as problem:
            raise self._broken(problem, arrived=False) from None
        except TimeoutError:
            reason = f"no reply within {self._timeout:g} s"
            raise NoReply(reason, cause=reason, timed_out=True) from None
        except (aiohttp.ClientError, OSError) as problem:
            raise self._broken(problem, arrived=True) from None

    async def _read_body(self, reply: ClientResponse, read: Callable[[bytes], None] | None) -> bytes:
        streams = read is not None and 200 <= reply.status < 300 and reply.content_type == _EVENTS
        packed = "content-encoding" in reply.headers
        if not streams and not packed and (reply.content_length or self._most + 1) <= self._most:
            # aiohttp reads no more than the announced length.
            return await reply.read()
        body = bytearray()
        async for piece in reply.content.iter_any() if streams else reply.content.iter_chunked(_CHUNK_BYTES):
            body += piece
            if len(body) > self._most:
                reason = f"the reply is longer than {self._most:,} bytes"
                raise NoReply(reason, cause=reason, oversized=True)
            if streams and read is not None:
                read(piece)
        return bytes(body)

    def _broken(self, problem: Exception, *, arrived: bool) -> NoReply:
        message = " ".join(str(problem).split())[:300]  # it may quote what the server sent
        reason = remove_secrets(message or type(problem).__name__, self._secrets)
        return NoReply(reason, arrived=arrived, cause="the connection failed")

    def _open_session(self) -> ClientSession:
        import aiohttp

        limits = aiohttp.ClientTimeout(total=self._timeout, connect=None, sock_connect=_CONNECT_SECONDS)
        # ConcurrentModel limits the calls in flight; a second limit here would only hide it.
        kind = _gradual_connector() if self._root.startswith("http:") else aiohttp.TCPConnector
        connector = kind(limit=0, keepalive_timeout=30)
        headers = {"accept-encoding": "gzip, deflate", **self._headers}
        return aiohttp.ClientSession(
            connector=connector, timeout=limits, headers=headers, cookie_jar=aiohttp.DummyCookieJar()
        )


@cache
def _gradual_connector() -> type[TCPConnector]:
    """Return a connector that opens few connections at a time.

    Servers of one machine often queue five; what more comes at once is dropped by the system and repeated after ever
    longer pauses, of half a minute in the end. Servers behind TLS queue thousands, and to open one takes long.
    """
    from aiohttp import TCPConnector

    class GradualConnector(TCPConnector):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self._gate = asyncio.Semaphore(_OPENED_AT_ONCE)

        async def _create_connection(self, *args: Any, **kwargs: Any) -> ResponseHandler:
            # Overridden as aiohttp documents: a call for which a connection is free does not come here.
            async with self._gate:
                return await super()._create_connection(*args, **kwargs)

    return GradualConnector
