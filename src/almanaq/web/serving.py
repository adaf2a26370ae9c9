"""Runs the application on uvicorn: which connections it takes, what it logs, how it ends."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import socket
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import uvicorn

from almanaq.web.connections import ConnectionLimits, OpenConnections, limits_here
from almanaq.web.gate import Gate

_SECONDS_TO_FINISH = 2.0
_SECONDS_TO_END = 2
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_SELDOM = (10_000, 5, 5)
"""Of 4,000 objects that a turn makes: the young are looked through every few turns, all of them every sixty or so. With
turns under way at once most outlive the first looks, so that rarer ones would hold their garbage: 100 MB of it."""
_LOGS = ("asyncio", "uvicorn.error", "almanaq", "almanaq.web")
_MINUTE = 60.0


def serve(application: Gate, sockets: Sequence[socket.socket], ready: Callable[[], None]) -> None:
    """Answer requests until a signal; within seconds what is under way is finished or ended.

    Args:
        ready: called once requests are answered.
    """
    limits = limits_here()
    with _seldom_collected(), _logged_once_a_minute():
        asyncio.run(make_server(application, ready, limits).serve(sockets=list(sockets)))


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
        """Take no more, and end what is not finished in a moment, so that each client is told."""
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


@contextmanager
def _seldom_collected() -> Iterator[None]:
    """Leave what there is now out of every search for garbage: 130,000 objects, which take 80 ms each time."""
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


@contextmanager
def _logged_once_a_minute() -> Iterator[None]:
    """Let nobody fill the disk with what they make the server say: the same message comes once a minute."""
    rare = _OnceAMinute()
    for name in _LOGS:
        logging.getLogger(name).addFilter(rare)
    try:
        yield
    finally:
        for name in _LOGS:
            logging.getLogger(name).removeFilter(rare)


class _OnceAMinute(logging.Filter):
    """Lets a message pass if it has not been there for a minute, saying how often it was left out."""

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
