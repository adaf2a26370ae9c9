"""Kill a server while it writes, again and again: whatever it told before is there when it is started again.

python benchmarks/faults/kills.py [KILLS] [--out benchmarks/faults/results/kills.json]

Clients ask queries and questions as fast as they are answered. At a moment drawn at random the supervisor or the
process that serves, or both, are killed. Then each answer whose link was told is held against what was told.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

CLIENTS, PLACES = 4, 40


class Served:
    """A server that is killed and started again on its port."""

    def __init__(self, folder: Path) -> None:
        self._folder, self.port = folder, 0
        rows = "".join(f"{n},Place {n},{'Paris' if n % 2 else 'Lyon'}\n" for n in range(PLACES))
        (folder / "places.csv").write_text(f"id,name,city\n{rows}")

    def start(self) -> None:
        """Start it, and wait until it answers."""
        words = ["serve", "places.csv", "--model", "local", "--port", str(self.port)]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "almanaq", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=self._folder,
            env=os.environ | {"ALMANAQ_CACHE_DIR": str(self._folder / "cache")},
        )
        assert self.process.stdout is not None
        found = re.search(r":(\d+)/", self.process.stdout.readline())
        assert found is not None
        self.port = int(found[1])

    def kill(self, chance: random.Random) -> None:
        """Kill what was started, which takes the process that serves with it, or that one first."""
        pid = self.process.pid
        with contextlib.suppress(OSError, IndexError):
            if chance.random() < 0.5:
                os.kill(int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0]), signal.SIGKILL)
        self.process.kill()
        self.process.wait()

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Send a request; give status and record, 0 where the server went away."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            content = None if body is None else json.dumps(body)
            connection.request(method, path, content, {"content-type": "application/json"})
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        except (OSError, http.client.HTTPException, ValueError):
            return 0, None
        finally:
            connection.close()


def ask(server: Served, number: int, told: dict[str, Any], ends: threading.Event) -> None:
    """Ask without a pause; remember what was told, and the verdicts that were taken."""
    chance, turn = random.Random(number), 0
    while not ends.is_set():
        turn += 1
        if chance.random() < 0.5:
            suql = (
                f"SELECT id, name, {number * 10_000 + turn} AS mark FROM places WHERE id < {chance.randrange(PLACES)}"
            )
            status, record = server.call("POST", "/api/v1/sql", {"suql": suql})
        else:
            status, record = server.call("POST", "/api/v1/ask", {"question": "How many places are in Paris?"})
        if status != 200:
            continue
        told[record["id"]] = (record["rows"], None)
        about = {"verdict": "right", "note": f"{number} {turn}"}
        if server.call("PUT", f"/api/v1/answers/{record['id']}/verdict", about)[0] == 200:
            told[record["id"]] = (record["rows"], about["note"])


def kills(folder: Path, count: int, seed: int = 3) -> tuple[Counter[str], int]:
    """Kill a server so often; count how each answer that was told ended, and how many were told."""
    server, chance, ended = Served(folder), random.Random(seed), Counter[str]()
    everything: dict[str, Any] = {}
    server.start()
    for _ in range(count):
        told: dict[str, Any] = {}
        ends = threading.Event()
        asking = [threading.Thread(target=ask, args=(server, number, told, ends)) for number in range(CLIENTS)]
        for each in asking:
            each.start()
        while not told:
            time.sleep(0.01)
        time.sleep(chance.uniform(0.0, 2.0))
        server.kill(chance)
        ends.set()
        for each in asking:
            each.join()
        server.start()
        everything |= told
        for id, known in told.items():
            ended[_look(server, id, *known)] += 1
    for id, known in everything.items():
        ended[f"at the end: {_look(server, id, *known)}"] += 1
    server.process.terminate()
    server.process.wait()
    for name in ("answers.sqlite", "replies.sqlite"):
        file = folder / "cache" / name
        if file.exists():
            with closing(sqlite3.connect(file)) as connection:
                ended[f"{name}: {connection.execute('PRAGMA integrity_check').fetchone()[0]}"] += 1
    return ended, len(everything)


def _look(server: Served, id: str, rows: Any, note: str | None) -> str:
    status, record = server.call("GET", f"/api/v1/answers/{id}")
    if status != 200:
        return f"lost: {status}"
    notes = [verdict.get("note") for verdict in record["verdicts"]]
    return "right" if record["rows"] == rows and (note is None or note in notes) else "wrong"


def main() -> int:
    """Kill, tell, and keep the result; 1 when something that was told was lost or is another."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("kills", type=int, nargs="?", default=50)
    options.add_argument("--out", type=Path)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        ended, told = kills(Path(name), chosen.kills)
    record = {
        "command": f"python benchmarks/faults/kills.py {chosen.kills}",
        "kills": chosen.kills,
        "told": told,
        "ended": dict(sorted(ended.items())),
        "passed": not any("lost" in each or "wrong" in each for each in ended),
    }
    text = json.dumps(record, indent=1) + "\n"
    if chosen.out:
        chosen.out.write_text(text)
    print(text)
    return int(not record["passed"])


if __name__ == "__main__":
    raise SystemExit(main())
