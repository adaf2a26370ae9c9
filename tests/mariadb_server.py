"""A MariaDB server of the tests' own, where one is installed: it speaks for MySQL on the path through ibis."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from server_home import PORTS_TRIED, free_port, new_home

USER, PASSWORD = "tester", "tested"
_SECONDS_TO_START = 300


def is_installed() -> bool:
    """Tell whether there is a server and a driver for it."""
    try:
        import MySQLdb  # noqa: F401
    except ImportError:
        return False
    return all(shutil.which(program) for program in ("mariadbd", "mariadb-install-db"))


@contextmanager
def run_server() -> Iterator[str]:
    """Run a server for the length of the block; give the URL of an empty database in it."""
    home = new_home("almanaq-my-")
    account = "mysql" if os.geteuid() == 0 else None
    if account:
        os.chown(home, pwd.getpwnam(account).pw_uid, -1)
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": home, "user": account}
    data = f"--datadir={home / 'data'}"
    subprocess.run(
        ["mariadb-install-db", "--no-defaults", data, "--auth-root-authentication-method=normal", "--skip-test-db"],
        check=True,
        **quiet,
    )
    setup = home / "setup.sql"
    setup.write_text(
        f"CREATE DATABASE made CHARACTER SET utf8mb4;\nCREATE USER {USER}@'127.0.0.1' IDENTIFIED BY '{PASSWORD}';\n"
        f"GRANT ALL ON *.* TO {USER}@'127.0.0.1';\n"
    )
    try:
        server, port = _start([data, f"--socket={home / 's'}", f"--init-file={setup}"], quiet)
        try:
            yield f"mysql://{USER}:{PASSWORD}@127.0.0.1:{port}/made"
        finally:
            server.kill()
            server.wait()
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _start(options: list[str], quiet: dict[str, Any]) -> tuple[subprocess.Popen[bytes], int]:
    """Start a server; give it and its port once it is up."""
    command = [shutil.which("mariadbd") or "mariadbd", "--no-defaults", *options, "--bind-address=127.0.0.1"]
    for _ in range(PORTS_TRIED):
        port = free_port()
        server = subprocess.Popen([*command, f"--port={port}"], **quiet)
        ends = time.monotonic() + _SECONDS_TO_START
        while server.poll() is None and time.monotonic() < ends:
            try:
                connect(f":{port}/made").close()
            except Exception:  # it is not up yet
                time.sleep(0.1)
            else:
                if server.poll() is None:  # and it is not another's
                    return server, port
        server.kill()
        server.wait()
    raise RuntimeError("MariaDB did not start")


def connect(url: str) -> Any:
    """Return a driver's connection to a database of the server."""
    import MySQLdb

    port, _, database = url.rpartition(":")[2].partition("/")
    return MySQLdb.connect(
        host="127.0.0.1", port=int(port), user=USER, password=PASSWORD, db=database, autocommit=True, charset="utf8mb4",
        connect_timeout=10,
    )  # fmt: skip
