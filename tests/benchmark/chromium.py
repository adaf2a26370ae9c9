"""A page as Chromium sees it: what it prints to the console, and what it asks for beyond itself."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

TIMEOUT = 120


@dataclass(frozen=True)
class Seen:
    """What came of opening a page: its text after scripts ran, console lines, and the addresses that it asked for."""

    text: str
    console: list[str]
    requests: set[str]


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def _served(folder: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def open_in_chromium(page: Path, scratch: Path) -> Seen:
    """Open a page without a network; `scratch` is for the browser's own files. Skips where there is no Chromium."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no Chromium here: scripts/system.sh installs it as root on Debian")
    scratch.mkdir()
    log = scratch / "net.json"
    flags = ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--no-first-run")
    with _served(page.parent) as origin:
        done = subprocess.run(
            [browser, *flags, "--enable-logging=stderr", f"--user-data-dir={scratch}", f"--log-net-log={log}",
             "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--dump-dom", f"{origin}/{page.name}"],
            capture_output=True, text=True, timeout=TIMEOUT, check=True,
        )  # fmt: skip
    asked = [event.get("params", {}) for event in json.loads(log.read_text())["events"]]
    # Chromium's own requests have no page as their initiator.
    requests = {each["url"] for each in asked if "url" in each and each.get("initiator") == origin}
    return Seen(done.stdout, [line for line in done.stderr.splitlines() if ":CONSOLE" in line], requests)
