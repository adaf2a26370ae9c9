"""A PostgreSQL server of the tests' own, on a free port, in a temporary folder."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from server_home import PORTS_TRIED, free_port, new_home

LOCKED = "locked"
"""The one user who needs a password."""


def find_binaries() -> Path | None:
    """Return the folder of initdb and pg_ctl, None where there is no PostgreSQL."""
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: float(p.parent.name), reverse=True)
    on_path = shutil.which("initdb")
    return next((p for p in places if (p / "initdb").exists()), Path(on_path).parent if on_path else None)


@contextmanager
def run_server(binaries: Path) -> Iterator[tuple[str, Path]]:
    """Run a server for the length of the block; give the URL of its superuser, and its log."""
    account = "postgres" if os.geteuid() == 0 else None  # PostgreSQL refuses to run as root
    home = new_home("almanaq-pg-")
    if account:
        os.chown(home, pwd.getpwnam(account).pw_uid, -1)
    data = home / "data"
    run: dict[str, Any] = {"user": account, "cwd": home, "stdout": subprocess.DEVNULL}
    create = [binaries / "initdb", "-D", data, "-U", "postgres", "--auth=trust", "-E", "UTF8", "--locale=C.UTF-8", "-N"]
    try:
        subprocess.run(create, check=True, **run)
        rules = data / "pg_hba.conf"
        rules.write_text(f"host all {LOCKED} 127.0.0.1/32 scram-sha-256\n" + rules.read_text())
        port = _start(binaries, home, run)
        try:
            yield f"postgresql://postgres@127.0.0.1:{port}/postgres", home / "log"
        finally:
            subprocess.run([binaries / "pg_ctl", "-D", data, "-m", "immediate", "stop"], check=True, **run)
    finally:
        subprocess.run(["rm", "-rf", home], check=False)  # each database has 300 files: Python takes its time


def _start(binaries: Path, home: Path, run: dict[str, Any]) -> int:
    """Start the server whose data lie in a folder; give its port."""
    for _ in range(PORTS_TRIED):
        port = free_port()
        options = f"-p {port} -k {home} -c listen_addresses=127.0.0.1 -c fsync=off -c autovacuum=off"
        command = [binaries / "pg_ctl", "-D", home / "data", "-o", options, "-l", home / "log", "-w", "-t", "300"]
        if subprocess.run([*command, "start"], check=False, **run).returncode == 0:
            return port
    raise RuntimeError("PostgreSQL did not start:\n" + (home / "log").read_text())
