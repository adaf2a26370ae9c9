"""JSON requests over HTTP, one session for each event loop: the only module that opens a connection to a model.

aiohttp is used as it is rather than through a client library of the protocol: a call is one POST of JSON, and the
library's own work on it costs several times as much as the rest of a call does (docs/decisions/0006).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

from almanaq.errors import ModelError
from almanaq.models.clients import PerLoop

if TYPE_CHECKING:
    from aiohttp import ClientSession

_CONNECT_SECONDS = 15.0
_LAST_SLASHES = re.compile(r"/+$")


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
    """A server that takes JSON by POST.

    Args:
        base_url: its address; a query in it (`?api-version=…`) is sent with every request.
        headers: sent with every request.
        timeout: seconds until a request is given up.
    """

    def __init__(self, base_url: str, headers: Mapping[str, str], *, timeout: float) -> None:
        self._parts = urlsplit(base_url)
        self._headers, self._timeout = dict(headers), timeout
        self._proxy = _proxy_of(self._parts.scheme, self._parts.netloc, self._parts.hostname or "")
        self._sessions = PerLoop(self._open)

    async def post(self, path: str, content: Mapping[str, Any]) -> Reply:
        """Give the reply to `content` at a path below the base address; raises NoReply where none came."""
        import aiohttp

        url = urlunsplit(self._parts._replace(path=_LAST_SLASHES.sub("", self._parts.path) + path))
        session = await self._sessions.get()
        try:
            async with session.post(url, data=json.dumps(content).encode(), proxy=self._proxy) as reply:
                return Reply(reply.status, await reply.read(), reply.headers)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL) as problem:
            raise NoReply(str(problem) or type(problem).__name__, arrived=False) from problem
        except TimeoutError as problem:
            raise NoReply(f"no reply within {self._timeout:g} s", arrived=True, timed_out=True) from problem
        except (aiohttp.ClientError, OSError) as problem:
            raise NoReply(str(problem) or type(problem).__name__, arrived=True) from problem

    def _open(self) -> ClientSession:
        import aiohttp

        limits = aiohttp.ClientTimeout(total=self._timeout, connect=None, sock_connect=_CONNECT_SECONDS)
        # How many calls are under way is bounded by ConcurrentModel; a second bound here would only hide it.
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=30)
        headers = {"content-type": "application/json", **self._headers}
        return aiohttp.ClientSession(connector=connector, timeout=limits, headers=headers)


def _proxy_of(scheme: str, netloc: str, host: str) -> str | None:
    """Give the proxy that the environment names for an address.

    aiohttp's own reading of the environment also takes passwords from ~/.netrc, in place of the key.
    """
    with contextlib.suppress(OSError):
        if proxy_bypass(netloc) or host in ("localhost", "127.0.0.1", "::1"):
            return None
    return getproxies().get(scheme)


def run_apart(work: Any) -> Any:
    """Run a coroutine to its end for code that is not asynchronous; in a thread of its own where a loop runs."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def address_error(address: str, example: str) -> ModelError:
    """Give the error for something that is no address of a server."""
    return ModelError(f"{address!r} is no address of a server: set OPENAI_BASE_URL to one such as {example}")
