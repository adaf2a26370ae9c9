"""llama.cpp's server over a file of weights, as a child process that commands of one user share for some minutes.

The first question starts it. Later ones, of any process, find it by a file that only the user can read, which
holds its address and a random key: nobody else on the machine can pass for it, or use it. Its end is that file's age:
each question makes the file young again, and the server ends once that is `IDLE_SECONDS` ago.

    python -m almanaq.models.llama_server WEIGHTS RECORD     (what the child runs; the key is its standard input)
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex

from almanaq.errors import MissingExtraError, ModelError
from almanaq.models.openai import OpenAIModel
from almanaq.models.private_files import is_process_alive, open_private, process_mark
from almanaq.models.protocols import Completion, Prompt
from almanaq.models.weights import GGUF, llm_is_installed, weights_folder

IDLE_SECONDS = 300.0
"""How long the server waits for another question."""
START_SECONDS = 120.0
CONTEXT_TOKENS = 8192
_POLL = 0.05


class LlamaModel:
    """A LanguageModel of weights on this machine: each call finds the server, or starts it."""

    def __init__(self, name: str, file: Path, *, timeout: float = 300.0) -> None:
        self.name, self.file, self._timeout = f"{GGUF}{name}", file, timeout
        self.identity = f"{self.name} {file.stat().st_size}"
        self._client: tuple[str, OpenAIModel] | None = None

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the reply to a prompt; raises ModelError where the server cannot be started."""
        record = record_of(self.file)
        address, key = await asyncio.to_thread(find_or_start, self.file, busy_for=self._timeout)
        if self._client is None or self._client[0] != address + key:
            model = OpenAIModel(self.name[len(GGUF) :], address, key, timeout=self._timeout, provider=GGUF[:-1])
            self._client = address + key, model
        try:
            return await self._client[1].complete(prompt)
        finally:
            _keep_alive(record)


def record_of(file: Path) -> Path:
    """Return where the address of the server over some weights is kept."""
    return weights_folder() / f"server-{hashlib.sha256(str(file.resolve()).encode()).hexdigest()[:12]}.json"


def find_or_start(file: Path, *, busy_for: float = 0.0) -> tuple[str, str]:
    """Return the address and key of the server over some weights, started where none runs, for `busy_for` seconds.

    Raises MissingExtraError, or ModelError with what llama.cpp said.
    """
    record = record_of(file)
    record.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _hold_lock(record):
        running = _read(record)
        if running is None:
            running = _start(file, record)
        _keep_alive(record, busy_for)
        return running


def _read(record: Path) -> tuple[str, str] | None:
    with suppress(OSError, ValueError, LookupError, TypeError):
        found = json.loads(record.read_text("utf-8"))
        if is_process_alive(found["pid"], found["mark"]):
            return str(found["address"]), str(found["key"])
    return None


def _start(file: Path, record: Path) -> tuple[str, str]:
    if not llm_is_installed():
        raise MissingExtraError("xllamacpp", "llm", "running weights on this machine")
    record.unlink(missing_ok=True)
    log = record.with_suffix(".log")
    command = [sys.executable, "-m", __name__, str(file.resolve()), str(record), str(IDLE_SECONDS)]
    key = token_hex(16)
    with open(log, "wb", opener=open_private) as said:
        # A session of its own: Ctrl-C ends the command, and not the server that others use.
        child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=said, stderr=said, start_new_session=True, close_fds=True
        )
    assert child.stdin is not None
    with suppress(OSError), child.stdin as pipe:
        pipe.write(key.encode())
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and child.poll() is None:
        if (running := _read(record)) is not None:
            # It outlives this process; where it ends before, it must be waited for to be seen as ended.
            threading.Thread(target=child.wait, name="almanaq-llama", daemon=True).start()
            return running
        time.sleep(_POLL)
    ended = child.poll() is not None
    if not ended:
        child.kill()
        child.wait()
    last = [line for line in log.read_text("utf-8", "replace").splitlines() if line.strip()][-3:]
    what = "ended at once" if ended else f"was not ready within {START_SECONDS:g} s"
    raise ModelError(
        f"llama.cpp's server over {file} {what}: {' / '.join(last) or 'it said nothing'} (all of it: {log})"
    )


def _keep_alive(record: Path, seconds: float = 0.0) -> None:
    """Make the record young again, or as young as it is to be in some seconds."""
    now = time.time() + seconds
    with suppress(OSError):
        os.utime(record, (now, now))


@contextmanager
def _hold_lock(record: Path) -> Iterator[None]:
    """Hold the lock of a record: of all processes one starts the server, and none finds it while it ends."""
    with open(record.with_suffix(".lock"), "wb", opener=open_private) as lock:
        with suppress(ImportError):  # Windows has no flock: there, two commands at once may start two servers
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


# The child.


def free_threads() -> int:
    """Return how many threads compute: as many as cores are free, as threads that share one wait by spinning."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    busy = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return max(1, min(cores, round(cores - busy)))


def serve(weights: str, record: Path, idle: float) -> None:
    """Serve until nobody has asked for `idle` seconds."""
    import xllamacpp

    key = sys.stdin.read().strip()
    settings = xllamacpp.CommonParams()
    settings.model.path = weights
    settings.n_ctx, settings.n_parallel = CONTEXT_TOKENS, 1
    settings.api_keys = [key]
    settings.ui = False
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = free_threads()
    server = xllamacpp.Server(settings)
    content = {
        "address": f"{server.listening_address}/v1",
        "key": key,
        "pid": os.getpid(),
        "mark": process_mark(),
        "weights": weights,
    }
    draft = record.with_suffix(".new")
    with open(draft, "w", encoding="utf-8", opener=open_private) as file:
        json.dump(content, file)
    draft.replace(record)
    while not _end_if_idle(record, idle):
        time.sleep(min(idle / 4, 2.0))
    os._exit(0)  # its threads wait for requests


def _end_if_idle(record: Path, idle: float) -> bool:
    """Remove the record and return True where nobody has asked for so long, or another server has its place."""
    with _hold_lock(record):
        try:
            found = json.loads(record.read_text("utf-8"))
            if found["pid"] == os.getpid() and time.time() - record.stat().st_mtime < idle:
                return False
            if found["pid"] == os.getpid():
                record.unlink()
        except (OSError, ValueError, LookupError, TypeError):
            pass
        return True


if __name__ == "__main__":
    serve(sys.argv[1], Path(sys.argv[2]), float(sys.argv[3]))
