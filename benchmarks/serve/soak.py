"""An hour of a server with everybody on it: `python -m benchmarks.serve.soak [--minutes 60] [--out FILE]`.

30 people ask queries that read texts, and questions in conversations, and look at what they were told before. Beside
them are clients who send half a request and hold the connection, clients who take large files slowly, and bombs:
queries that need more memory, time or rows than there are. The model server fails now and then. In the middle the
server is killed and started again. Every answer is held against what is right; `/healthz` is asked all the time.

The server may hold `--gigabytes` (3), as in a container of that size. Everything runs on the same machine, the clients
as well. The exit code is 1 where something was wrong or a bound was not kept.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import random
import re
import resource
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from almanaq_bench.testing import Faults, StandInServer, replies_from

PEOPLE, SLOW, ROWS, READ = 30, 3, 2_000, 4
TOKEN = "soak-soak-soak"
THINKING = (2.0, 8.0)
BOUNDS = {"healthz_p99_seconds": 1.0, "memory_change": 0.1, "log_bytes": 1_000_000}
BOMBS = (
    "SELECT array_agg(g) FROM generate_series(1, 10000000000) AS g",
    "SELECT string_agg(repeat('x', 100000), '') FROM generate_series(1, 1000000) AS g",
    "SELECT repeat('x', 300000000) AS a FROM places LIMIT 5",
    "SELECT string_to_array(repeat('a,', 200000000), ',') AS a",
    "SELECT a.name || b.name || repeat('x', 1000000) AS c FROM places AS a, places AS b",
    "SELECT count(*) FROM places AS a, places AS b, places AS c WHERE a.name < b.name || c.name",
    "SELECT a.id FROM places AS a, places AS b",
    "SELECT similarity(name, repeat('x ', 50000000)) AS s FROM places LIMIT 3",
)
_FAULTS = {"error": 0.01, "too_many": 0.01, "slow": 0.01, "cut": 0.005, "malformed": 0.005, "off_schema": 0.005}
_ROUTINE = "connections closed: "
"""How lines of the log begin that come every minute."""
_STEADY_MINUTES = 60
"""Minutes from which on memory is held against its bound: what a fresh process takes is no steady state."""
_SAID = re.compile(r"person (\d+) in turn (\d+)")


def text_of(number: int) -> str:
    """Return the notes on a place."""
    return f"A place of its own with number {number}, a garden, and much to tell of the people who come there."


def is_yes(text: str, question: str) -> bool:
    """Return what is right of a text."""
    return zlib.crc32(f"{text}|{question}".encode()) % 2 == 0


def reply(request: Mapping[str, Any]) -> str:
    """Write the query for a question, word a reply, or read a text."""
    schema = request.get("response_format", {}).get("json_schema", {}).get("schema", {})
    if "suql" in schema.get("properties", {}):
        person, turn = _SAID.findall(str(request["messages"]))[-1]
        suql = f"SELECT {person} AS person, {turn} AS turn, count(*) AS n FROM places"
        return json.dumps({"reasoning": "", "suql": suql, "needs_data": True, "clarify": None})
    if not schema:
        return "That is the number."
    return _read(request)


_read = replies_from(lambda text, question: "Yes" if is_yes(text, question) else "No")


class Server:
    """`almanaq serve` over the places, restarted at will on the same port."""

    def __init__(self, folder: Path, model: StandInServer, gigabytes: float) -> None:
        self._folder, self._bytes = folder, int(gigabytes * 2**30)
        rows = "".join(f'{n},Place {n},"{text_of(n)}"\n' for n in range(ROWS))
        (folder / "places.csv").write_text(f"id,name,notes\n{rows}")
        (folder / "places.toml").write_text('[places.columns.notes]\nkind = "free_text"\n')
        own = {"ALMANAQ_CACHE_DIR": str(folder / "cache"), "OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "k-12345678"}
        self._environment = os.environ | own | {"ALMANAQ_LOCAL_SERVERS": "none"}
        self.port, self.log = 0, folder / "log"
        self.start()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        words = ["serve", "places.csv", "--schema", "places.toml", "--model", "openai:soak", "--token", TOKEN]
        words += ["--port", str(self.port), "--max-calls", "1000"]
        bound = (self._bytes, self._bytes)
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "almanaq", *words],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=self._folder,
                env=self._environment,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, bound),
            )
        assert self.process.stdout is not None
        found = re.search(r":(\d+)/", self.process.stdout.readline())
        assert found is not None, self.log.read_text()[-2000:]
        self.port = int(found[1])

    def kill(self) -> None:
        """Kill it as a machine without memory does."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def megabytes(self) -> float | None:
        """Return what the process that serves holds; None while there is none."""
        with contextlib.suppress(OSError, IndexError, ValueError):
            pid = self.process.pid
            worker = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0]
            status = Path(f"/proc/{worker}/status").read_text()
            return int(status.partition("VmRSS:")[2].split()[0]) / 1024
        return None


@dataclass
class Soak:
    """What everybody does, and what became of it.

    Attributes:
        told: links that were given, with the rows they stand for.
        away: when the server was killed, and when it was there again.
    """

    server: Server
    ends: float
    lock: threading.Lock = field(default_factory=threading.Lock)
    ended: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    told: list[tuple[str, Any]] = field(default_factory=list)
    healthz: list[float] = field(default_factory=list)
    held: list[tuple[float, float]] = field(default_factory=list)
    away: bool = False

    @property
    def goes_on(self) -> bool:
        """Whether there is time left."""
        return time.monotonic() < self.ends

    def note(self, what: str, wrong: str = "") -> None:
        """Count how something ended."""
        with self.lock:
            self.ended[what] += 1
            if wrong:
                self.wrong.append(f"{what}: {wrong}"[:500])

    def call(self, method: str, path: str, body: Any = None, timeout: float = 150.0) -> tuple[int, Any]:
        """Send a request; give status and record, 0 where the server was not reached or went away."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=timeout)
        headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            record = json.loads(response.read())
            if response.status >= 400 and path.endswith(("sql", "ask")):
                self.note(f"why {response.status}: {re.sub('[0-9.]+', '#', record['detail'])[:90]}")
            return response.status, record
        except (OSError, http.client.HTTPException, ValueError):
            return 0, None
        finally:
            connection.close()

    def person(self, number: int) -> None:
        """Ask, think, ask again, and look back."""
        chance, conversation, own = random.Random(number), None, []
        turn = 0
        while self.goes_on:
            time.sleep(chance.uniform(*THINKING))
            turn += 1
            kind = chance.choice(("read", "read", "ask", "look"))
            if kind == "read":
                own += self._read(number, turn, chance.randrange(ROWS - READ))
            elif kind == "ask":
                conversation = self._ask(number, turn, conversation)
            elif own:
                self._look(*chance.choice(own))

    def _read(self, number: int, turn: int, first: int) -> list[tuple[str, Any]]:
        question = f"is it quiet for person {number} in turn {turn}?"
        suql = (
            f"SELECT id, name FROM places WHERE id >= {first} AND id < {first + READ}"
            f" AND answer(notes, '{question}') = 'Yes' ORDER BY id"
        )
        right = [[n, f"Place {n}"] for n in range(first, first + READ) if is_yes(text_of(n), question)]
        status, record = self.call("POST", "/api/v1/sql", {"suql": suql})
        if status != 200:
            self.note(f"read: {status}")
            return []
        trace = record["trace"]
        if trace["exact"] and not trace["unknown_calls"]:
            self.note("read: 200", "" if (record["suql"], record["rows"]) == (suql, right) else f"{record} {right}")
        else:
            few = all(row in right for row in record["rows"])
            self.note("read: 200, said to be inexact", "" if few else f"{record} {right}")
        return self._remember(record)

    def _ask(self, number: int, turn: int, conversation: str | None) -> str | None:
        known = {} if conversation is None else {"conversation": conversation}
        question = f"How many places are there for person {number} in turn {turn}?"
        status, record = self.call("POST", "/api/v1/ask", {"question": question, **known})
        if status != 200:
            self.note(f"ask: {status}")
            return None if status == 404 else conversation
        right = (question, [[number, turn, ROWS]])
        self.note("ask: 200", "" if (record["question"], record["rows"]) == right else f"{record} {right}")
        self._remember(record)
        return str(record["conversation"])

    def _look(self, link: str, rows: Any) -> None:
        status, record = self.call("GET", f"/api/v1/answers/{link}")
        fault = f"{link}: {record}" if status == 404 or (status == 200 and record["rows"] != rows) else ""
        self.note(f"look: {status}", fault)

    def _remember(self, record: dict[str, Any]) -> list[tuple[str, Any]]:
        if record["id"] is None:
            return []
        with self.lock:
            self.told.append((record["id"], record["rows"]))
        return [(record["id"], record["rows"])]

    def bomb(self) -> None:
        """Send one query after another that needs too much."""
        turn = 0
        while self.goes_on:
            suql = BOMBS[turn % len(BOMBS)]
            status, _ = self.call(
                "POST", "/api/v1/sql", {"suql": suql, "max_rows": 10_000, "options": {"deadline": 10}}
            )
            self.note(f"bomb: {status}")
            turn += 1
            time.sleep(5)

    def halves(self) -> None:
        """Open connections that never become requests: twenty a second, each held for a minute."""
        held: list[tuple[float, socket.socket]] = []
        while self.goes_on:
            with contextlib.suppress(OSError):
                made = socket.create_connection(("127.0.0.1", self.server.port), timeout=5)
                made.sendall(b"POST /api/v1/sql HTTP/1.1\r\nHost: 127.0.0.1")
                held.append((time.monotonic(), made))
                self.note("half a request")
            while held and time.monotonic() - held[0][0] > 60:
                held.pop(0)[1].close()
            time.sleep(0.05)
        for _, each in held:
            each.close()

    def slow(self, number: int) -> None:
        """Take all rows of a large answer, a little at a time."""
        suql = f"SELECT id, name, notes, repeat(notes, 20) AS more{number} FROM places ORDER BY id"
        while self.goes_on:
            status, record = self.call("POST", "/api/v1/sql", {"suql": suql, "max_rows": 10_000})
            if status != 200 or record["id"] is None:
                self.note(f"slow: {status}")
                time.sleep(10)
                continue
            head = (
                f"GET /api/v1/answers/{record['id']}/rows?format=csv HTTP/1.1\r\nHost: 127.0.0.1:{self.server.port}\r\n"
            )
            try:
                with socket.create_connection(("127.0.0.1", self.server.port), timeout=30) as taking:
                    taking.sendall(f"{head}Authorization: Bearer {TOKEN}\r\nConnection: close\r\n\r\n".encode())
                    content = bytearray()
                    while self.goes_on and (part := taking.recv(30_000)):
                        content += part
                        time.sleep(0.2)
                if self.goes_on:
                    lines = content.partition(b"\r\n\r\n")[2].count(b"\n")
                    whole = content.startswith(b"HTTP/1.1 200") and lines == ROWS + 1
                    self.note("slow: all rows" if whole else "slow: cut short")
            except OSError:
                self.note("slow: the connection was lost")

    def watch(self) -> None:
        """Ask for `/healthz` four times a second, and look at the memory every second."""
        looked = 0.0
        while self.goes_on:
            began = time.monotonic()
            status, _ = self.call("GET", "/healthz", timeout=30.0)
            if not self.away:
                self.healthz.append(time.monotonic() - began)
                self.note(f"healthz: {status}")
            if began - looked > 1 and (megabytes := self.server.megabytes()) is not None:
                looked = began
                self.held.append((began, megabytes))
            time.sleep(0.25)

    def restart(self, after: float) -> None:
        """Kill the server in the middle, start it again, and look for all that was told before."""
        time.sleep(after)
        with self.lock:
            told = list(self.told)
        self.away = True
        self.server.kill()
        self.server.start()
        self.away = False
        for link, rows in told[-500:]:
            self._look(link, rows)


def soak(minutes: float, gigabytes: float) -> dict[str, Any]:
    """Return what became of everything."""
    faults = Faults(rates=_FAULTS, latency=lambda: 0.05, retry_after=0.1)
    with tempfile.TemporaryDirectory() as name, StandInServer(reply, faults=faults, keep_requests=False) as model:
        server = Server(Path(name), model, gigabytes)
        began = time.monotonic()
        going = Soak(server, began + 60 * minutes)
        work: list[Callable[[], None]] = [going.bomb, going.halves, going.watch, lambda: going.restart(30 * minutes)]
        work += [lambda number=number: going.person(number) for number in range(PEOPLE)]  # type: ignore[misc]
        work += [lambda number=number: going.slow(number) for number in range(SLOW)]  # type: ignore[misc]
        threads = [threading.Thread(target=each) for each in work]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        log = server.log.read_text()
        server.process.terminate()
        code = server.process.wait()
        calls = dict(sorted(model.ledger.outcomes.items()))
    return _report(going, minutes, began, log, code) | {"model_calls": calls}


def _report(going: Soak, minutes: float, began: float, log: str, code: int) -> dict[str, Any]:
    ordered = sorted(going.healthz)
    parts = [[mb for at, mb in going.held if part <= (at - began) / (5 * minutes) < part + 1] for part in range(12)]
    memory = [round(statistics.median(each)) if each else 0 for each in parts]
    # What running queries hold comes and goes with them; what stays is seen between them, in the lowest tenth. Each
    # half begins with a fresh process, whose caches fill for some thousand turns (results/memory.json): its last third
    # is held against the third before.
    at_rest = [round(sorted(each)[len(each) // 10]) if each else 0 for each in parts]
    thirds = [sum(at_rest[first : first + 2]) for first in (2, 4, 8, 10)]
    change = max(abs(late / early - 1) for early, late in (thirds[:2], thirds[2:])) if all(at_rest) else None
    found = {
        "healthz_seconds": {
            "median": round(ordered[len(ordered) // 2], 4),
            "p99": round(ordered[int(0.99 * (len(ordered) - 1))], 3),
            "most": round(ordered[-1], 2),
        },
        "megabytes_by_twelfth": memory,
        "megabytes_at_rest_by_twelfth": at_rest,
        "megabytes_most": round(max(mb for _, mb in going.held)),
        "memory_change": None if change is None else round(change, 3),
        "log_bytes": len(log),
        "log_ends": "".join(line for line in log.splitlines(keepends=True) if not line.startswith(_ROUTINE))[-3_000:],
        "ended_and_restarted": log.count("restarting it"),
        "links_told": len(going.told),
        "ended": dict(sorted(going.ended.items())),
        "wrong": going.wrong[:20],
        "exit_code": code,
    }
    kept = {
        "nothing_wrong": not going.wrong,
        "healthz": ordered[int(0.99 * (len(ordered) - 1))] <= BOUNDS["healthz_p99_seconds"],
        "memory": change is not None and change <= BOUNDS["memory_change"],
        "log": len(log) <= BOUNDS["log_bytes"],
    }
    return {**found, "bounds": BOUNDS, "kept": kept}


def main() -> int:
    """Soak, tell, and keep the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--gigabytes", type=float, default=3.0)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    before = round(os.getloadavg()[0], 2)
    measured = soak(chosen.minutes, chosen.gigabytes)
    command = f"python -m benchmarks.serve.soak --minutes {chosen.minutes:g} --gigabytes {chosen.gigabytes:g}"
    record = {"command": command, "load_before": before, "load_after": round(os.getloadavg()[0], 2), **measured}
    text = json.dumps(record, indent=1) + "\n"
    print(text)
    if chosen.out:
        chosen.out.write_text(text)
    kept = {
        name: well for name, well in record["kept"].items() if name != "memory" or chosen.minutes >= _STEADY_MINUTES
    }
    return int(not all(kept.values()))


if __name__ == "__main__":
    raise SystemExit(main())
