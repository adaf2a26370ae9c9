"""Runs the application on uvicorn: the one module that imports it."""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from almanaq.errors import UsageError
from almanaq.web.garbage import seldom_collected
from almanaq.web.gate import Gate

_SECONDS_TO_FINISH = 2.0
_SECONDS_TO_END = 2
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def bound(host: str, port: int) -> socket.socket:
    """Return a socket that is bound to an address; raises UsageError where that cannot be."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        # The protocol is named, or asyncio leaves small writes waiting for each other: 40 ms a response.
        made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    except OSError as error:
        raise UsageError(f"--host {host}: {error}") from error
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
    except (OSError, OverflowError) as error:
        made.close()
        raise UsageError(
            f"--port {port}: {getattr(error, 'strerror', error)}; name another one, or 0 for any"
        ) from error
    made.set_inheritable(True)
    return made


def serve(application: Gate, listening: socket.socket, ready: Callable[[], None]) -> None:
    """Answer requests until a signal; within seconds what is under way is finished or ended.

    Args:
        ready: called once requests are answered.
    """
    with seldom_collected():
        asyncio.run(make_server(application, ready).serve(sockets=[listening]))


def make_server(application: Gate, ready: Callable[[], None]) -> uvicorn.Server:
    """Return a server that is not yet begun; setting its `should_exit` ends it."""
    config = uvicorn.Config(
        application,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        lifespan="on",
        timeout_graceful_shutdown=int(_SECONDS_TO_FINISH) + _SECONDS_TO_END,
    )
    return _Server(config, ready, application.end)


class _Server(uvicorn.Server):
    """A server that says when it is ready, and ends at a signal as if it had been asked to."""

    def __init__(
        self, config: uvicorn.Config, ready: Callable[[], None], end: Callable[[], Coroutine[Any, Any, None]]
    ) -> None:
        super().__init__(config)
        self._ready, self._end = ready, end

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        await super().startup(sockets)
        if self.started:
            self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more, and end what is not finished in a moment, so that each client is told."""
        ending: list[asyncio.Task[None]] = []
        timer = asyncio.get_running_loop().call_later(
            _SECONDS_TO_FINISH, lambda: ending.append(asyncio.ensure_future(self._end()))
        )
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
