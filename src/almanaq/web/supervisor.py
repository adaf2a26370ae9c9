"""Supervisor: the server's process is watched by another one, which ends and restarts it where it answers no more.

A query may take an engine, or the memory of the process, to where nothing inside of it can put things right. The
supervisor is the process that was started; it opens nothing, holds the listening socket, so that clients wait meanwhile
instead of being refused, and forks the worker that serves. It asks for `/healthz` on a socket of its own, as whoever
asks on the public one may take up all the room there. Only Linux says at once that a process has ended, and ends a
worker with its supervisor: on other systems the server is not watched.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import mmap
import os
import secrets
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from almanaq.errors import UsageError

_STATUS = Path("/proc/self/status")
_FULL = 0.85
"""The share of the bound at which what runs is ended."""
_TOO_MUCH = 0.4
"""The share of the bound that a server with nothing to do may hold; with more it ends, to be started again."""
_MEMORY_SECONDS = 0.1
_SHED_SECONDS = 3.0
"""What a job that was ended has to let go of its memory, before the next one is ended."""
_IDLE_SECONDS = 20.0
_GIVE_BACK_SECONDS = 15.0
"""The least time between two times that memory is given back."""
_GROWN = 100_000_000
"""Bytes more than at the start from which on it is worth giving memory back."""


class MemoryWatch:
    """Watches the memory of this process while it serves.

    Args:
        jobs: how many jobs are under way.
        shed: ends the one that goes on for longest.
        leave: ends the process, which is started again; None where nobody would do that.
    """

    def __init__(self, jobs: Callable[[], int], shed: Callable[[], None], leave: Callable[[], None] | None) -> None:
        self._jobs, self._shed, self._leave = jobs, shed, leave
        self._memory_bound, self._shed_next = _memory_bound(), 0.0
        self._held_at_start, self._idle_since = _memory_held("VmRSS"), time.monotonic()
        self._give_back_next = 0.0

    async def look(self) -> None:
        """Look at it again and again, where the system says what is held."""
        while self._held_at_start:
            await asyncio.sleep(_MEMORY_SECONDS)
            now = time.monotonic()
            if self._memory_bound and now >= self._shed_next and _memory_held("VmData") > _FULL * self._memory_bound:
                self._shed()
                self._shed_next = now + _SHED_SECONDS
            if now >= self._give_back_next and _memory_held("VmRSS") > self._held_at_start + _GROWN:
                await asyncio.to_thread(give_back, collect=not self._jobs())
                self._give_back_next = now + _GIVE_BACK_SECONDS
            if self._jobs():
                self._idle_since = now
                continue
            too_much = self._memory_bound and _memory_held("VmRSS") > _TOO_MUCH * self._memory_bound
            if too_much and self._leave is not None and now - self._idle_since > _IDLE_SECONDS:
                self._leave()
                return


def give_back(*, collect: bool) -> None:
    """Give the memory to the system that this process holds and does not use.

    Args:
        collect: whether to look for garbage first, for which every thread waits, 0.1 s.
    """
    if collect:
        gc.collect()
    with suppress(ImportError, AttributeError):
        import pyarrow as pa

        pa.default_memory_pool().release_unused()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def _memory_bound() -> int:
    """Return the bytes that this process may hold; 0 where there is no bound."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_DATA)
        return 0 if soft == resource.RLIM_INFINITY else soft
    return 0


def _memory_held(name: str) -> int:
    """Return the bytes that the system counts under a name; 0 where it does not say."""
    with suppress(OSError, ValueError):
        for line in _STATUS.read_bytes().splitlines():
            if line.startswith(name.encode()):
                return int(line.split()[1]) * 1024
    return 0


SILENT_SECONDS = 10.0
GIVES_BACK = 75
"""What a worker ends with that wants to be started again, as it holds memory that it cannot let go of."""
_LOOK_SECONDS = 1.0
_STARTS_IN_A_ROW = 5
_SECONDS_TO_END = 15.0
"""What a worker has to end in after a signal; its own limits are shorter."""
_PR_SET_PDEATHSIG = 1


def bind_socket(host: str, port: int) -> socket.socket:
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
            f"--port {port}: {getattr(error, 'strerror', error)}; choose another, or 0 for any free one"
        ) from error
    made.set_inheritable(True)
    return made


def share_count() -> ctypes.c_int64:
    """Return a whole number, its `value`, that a process and those forked from it share; it outlives each of them."""
    return ctypes.c_int64.from_buffer(mmap.mmap(-1, 8))


@dataclass
class Worker:
    """What the process that serves has of its supervisor; without one it is on its own.

    Attributes:
        health: a listening socket on which only the supervisor asks; None where nobody does.
        calls: model calls made for `--server-calls`, those of earlier workers included.
        restarts: how many workers there were before this one.
    """

    health: socket.socket | None = None
    calls: ctypes.c_int64 = field(default_factory=share_count)
    restarts: int = 0
    _ready: int | None = None

    def say_ready(self) -> None:
        """Have the supervisor ask for `/healthz` from now on."""
        if self._ready is not None:
            os.write(self._ready, b"r")
            os.close(self._ready)
            self._ready = None


@contextmanager
def supervise(port: int, say: Callable[[str], None]) -> Iterator[Worker]:
    """Run the block in a worker, again and again until it ends by itself or a signal ends it.

    Never returns in the supervisor, which exits as the last worker did.

    Args:
        port: where the server listens, for the Host header.
        say: tells the user why a worker was ended.
    """
    alone = threading.current_thread() is threading.main_thread() and threading.active_count() == 1
    watched = sys.platform == "linux" and hasattr(os, "pidfd_open") and alone
    yield _Supervisor(port, say).run() if watched else Worker()


class _Supervisor:
    def __init__(self, port: int, say: Callable[[str], None]) -> None:
        self._port, self._say = port, say
        self._calls, self._restarts = share_count(), 0
        self._pid, self._ending, self._asked = 0, False, 0.0
        # A name in the abstract namespace: no file is left behind, and a new worker has it from the old one.
        self._health = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._health.bind(f"\0almanaq-{secrets.token_hex(16)}")

    def run(self) -> Worker:
        """Fork workers; return in each of them, and exit here once the last has ended."""
        before = {each: signal.signal(each, self._pass_on) for each in (signal.SIGINT, signal.SIGTERM)}
        early = 0
        while True:
            ready, told = os.pipe()
            parent = os.getpid()
            self._pid = os.fork()
            if self._pid == 0:
                os.close(ready)
                for each, handler in before.items():
                    signal.signal(each, handler)
                _end_with(parent)
                return Worker(self._health, self._calls, self._restarts, told)
            os.close(told)
            if self._ending:  # the signal came before there was anybody to pass it on to
                os.kill(self._pid, signal.SIGTERM)
            served, why, status = self._watch(ready)
            early = 0 if served else early + 1
            if self._ending or why is None or (early and not self._restarts) or early > _STARTS_IN_A_ROW:
                code = os.waitstatus_to_exitcode(status)
                raise SystemExit(code if code >= 0 else 128 - code)
            self._restarts += 1
            self._say(f"almanaq: {why}: restarting it")
            if early:
                time.sleep(min(2.0**early, 30.0))

    def _watch(self, ready: int) -> tuple[bool, str | None, int]:
        """Wait for a worker's end, or end it; give whether it served, why it is to be replaced, and how it ended."""
        served, answered = False, time.monotonic()
        ended = os.pidfd_open(self._pid)
        try:
            while True:
                waited_for = [ended] if served else [ended, ready]
                found, _, _ = select.select(waited_for, (), (), _LOOK_SECONDS)
                if ended in found:
                    return (served, *_reason(os.waitpid(self._pid, 0)[1]))
                if self._ending:
                    if time.monotonic() - self._asked > _SECONDS_TO_END:
                        os.kill(self._pid, signal.SIGKILL)  # a thread of it does not end: it has served its last
                    continue
                if not served:
                    if ready not in found:
                        continue
                    served, answered = os.read(ready, 1) == b"r", time.monotonic()
                    continue
                if self._answers(ended):
                    answered = time.monotonic()
                elif time.monotonic() - answered >= SILENT_SECONDS:
                    os.kill(self._pid, signal.SIGKILL)
                    _, status = os.waitpid(self._pid, 0)
                    return served, f"the server did not answer /healthz for {SILENT_SECONDS:g} s, and was ended", status
        finally:
            os.close(ended)
            os.close(ready)

    def _answers(self, ended: int) -> bool:
        """Return whether the worker answers as one that is well, within the time that it may be silent.

        Args:
            ended: can be read once the worker has ended: the socket is open here as well, and would not tell.
        """
        request = f"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1:{self._port}\r\nconnection: close\r\n\r\n".encode()
        with suppress(OSError), closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as asking:
            asking.settimeout(SILENT_SECONDS)
            asking.connect(self._health.getsockname())
            asking.sendall(request)
            found, _, _ = select.select([asking.fileno(), ended], (), (), SILENT_SECONDS)
            return asking.fileno() in found and asking.recv(64).startswith(b"HTTP/1.1 200 ")
        return False

    def _pass_on(self, *_: Any) -> None:
        if not self._ending:
            self._ending, self._asked = True, time.monotonic()
        if self._pid:
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGTERM)  # a worker that has begun to end takes it for the same wish


def _end_with(parent: int) -> None:
    """Have this process end when its supervisor does, however that ends."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def _reason(status: int) -> tuple[str | None, int]:
    """Return why a worker that has ended is to be replaced, None where it is not, and how it ended."""
    if os.WIFSIGNALED(status):
        return f"the server was ended by signal {os.WTERMSIG(status)}", status
    if os.WEXITSTATUS(status) == GIVES_BACK:
        return "the server kept memory that it no longer needed, and ended", status
    return None, status
