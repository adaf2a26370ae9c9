"""Runs an extraction, or compares clients: `python -m benchmarks.extraction [--rows N] [--kills 5] | --rates`.

Exit status 1 when a reply is lost, calls beyond those in flight are repeated, or the next day asks of what is the same.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from .clients import FILLER, aiohttp_rate, aiohttp_uvloop_rate, openai_rate, own_http_rate

LATENCY = 0.002
LATENCIES = (0.002, 0.010, 0.025, 0.050, 0.200)
QUERY = "SELECT id, answer(body, 'what is its number?') AS number FROM cases"
SAMPLE = 8_000
IN_FLIGHT = 64
BATCH = 8
"""Texts in a call, where several go together by choice."""
TURNS = 3
CLIENTS = {
    "aiohttp": aiohttp_rate,
    "aiohttp_uvloop": aiohttp_uvloop_rate,
    "openai": openai_rate,
    "own_http": own_http_rate,
}


def main() -> int:
    """Run what is asked for, print JSON, give the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.extraction", description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1, help="of the moments of the kills")
    parser.add_argument("--rates", action="store_true", help="only compare the rates of clients")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, serving() as server:
        place = Path(name)
        report = (
            compare_clients(place, server)
            if given.rates
            else measure_run(place, server, given.rows, given.kills, given.seed)
        )
    text = json.dumps(report, indent=1)
    if given.out:
        given.out.write_text(text + "\n", encoding="utf-8")
    print(text)
    good = given.rates or (report["right"] and report["repeated_calls"] <= report["in_flight"] * given.kills)
    return 0 if good else 1


def measure_run(place: Path, server: Server, rows: int, kills: int, seed: int) -> dict[str, Any]:
    """Return every figure of a run over so many rows."""
    report: dict[str, Any] = {"rows": rows, "latency": LATENCY, "in_flight": IN_FLIGHT, "load": [load()]}
    report |= _run_with_kills(place, server.url, rows, kills, random.Random(seed))
    report["load"].append(load())
    return report


def compare_clients(place: Path, server: Server) -> dict[str, Any]:
    """Return the rates of bare clients and of an extraction, with few calls at once and with many."""
    report: dict[str, Any] = {"latency": LATENCY, "sample": SAMPLE, "turns": TURNS, "load": [load()]}
    report["in_flight"] = {str(at_once): rates(place, server, at_once) for at_once in (4, IN_FLIGHT)}
    report["by_latency"] = [rates_at(place, latency) for latency in LATENCIES]
    report["load"].append(load())
    return report


def rates(place: Path, server: Server, at_once: int) -> dict[str, Any]:
    """Return the best of some turns of each client, taken one after the other, so that all see the same machine."""
    sample = write(place / "sample", SAMPLE)
    found: dict[str, list[dict[str, float]]] = {}
    for turn in range(TURNS):
        for name, client in CLIENTS.items():
            calls = SAMPLE if name != "openai" else SAMPLE // 8
            taken = server.cpu()
            rate = client(server.url, calls, at_once)
            rate["server_cpu_ms_per_call"] = round(1000 * (server.cpu() - taken) / calls, 3)
            found.setdefault(name, []).append(rate)
        for name, batch, cached in (
            ("almanaq", 1, True),
            ("almanaq_no_cache", 1, False),
            ("almanaq_batch", BATCH, True),
        ):
            taken, before = server.cpu(), count(server.url)
            cache = place / f"rate{at_once}-{turn}-{batch}-{cached}"
            rate = _own_rate(sample, cache, server.url, at_once, batch, cached=cached)
            rate["server_cpu_ms_per_row"] = round(1000 * (server.cpu() - taken) / SAMPLE, 3)
            rate["rows_per_call"] = round(SAMPLE / (count(server.url) - before), 2)
            found.setdefault(name, []).append(rate)
    report: dict[str, Any] = {name: max(turns, key=_speed) for name, turns in found.items()}
    one, several = _speed(report["almanaq"]), _speed(report["almanaq_batch"])
    report |= {f"of_{name}": round(one / _speed(report[name]), 3) for name in CLIENTS}
    bare, own = report["aiohttp"]["cpu_ms_per_call"], ("almanaq", "almanaq_no_cache")
    report |= {f"{name}_cpu_of_aiohttp": round(bare / report[name]["cpu_ms_per_row"], 3) for name in own}
    return report | {"rows_in_batches_of_aiohttp": round(several / _speed(report["aiohttp"]), 3)}


def rates_at(place: Path, latency: float) -> dict[str, Any]:
    """Return the rates of an extraction and of aiohttp where the server takes so long; one turn of seconds each."""
    calls = min(SAMPLE // 2, int(4 * IN_FLIGHT / latency))
    with serving(latency) as server:
        bare = aiohttp_rate(server.url, calls, IN_FLIGHT)["calls_per_second"]
        source, cache = write(place / "by_latency", calls), place / f"latency{latency}"
        rate = _own_rate(source, cache, server.url, IN_FLIGHT, 1, cached=True, rows=calls)["rows_per_second"]
    shown = {"milliseconds": 1000 * latency, "aiohttp": bare, "almanaq": rate, "of_aiohttp": round(rate / bare, 3)}
    return {**shown, "load": load()}


def _speed(rate: dict[str, float]) -> float:
    return rate["rows_per_second"] if "rows_per_second" in rate else rate["calls_per_second"]


def _own_rate(
    source: str, cache: Path, url: str, at_once: int, batch: int, *, cached: bool, rows: int = SAMPLE
) -> dict[str, float]:
    """Return the rate of an extraction in a process of its own, its start and its end left out.

    Args:
        batch: texts in a call; 1 is what `almanaq sql` does with a question of this kind by itself.
    """
    code = (
        "import sys, time, almanaq\n"
        f"con = almanaq.connect(sys.argv[1], model='openai:m', max_calls=10**9, concurrency={at_once}, batch={batch},"
        f" cache={cached})\n"
        f"con.sql({QUERY!r} + ' LIMIT 1')\n"
        "wall, cpu = time.perf_counter(), time.process_time()\n"
        f"con.engine.write({QUERY!r}, to=lambda table: None)\n"
        "print(time.perf_counter() - wall, time.process_time() - cpu)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, source],
        env=environment(url, cache, at_once), capture_output=True, text=True, check=True,
    )  # fmt: skip
    wall, cpu = map(float, done.stdout.split())
    return {"rows_per_second": round(rows / wall, 1), "cpu_ms_per_row": round(1000 * cpu / rows, 3)}


def _run_with_kills(place: Path, url: str, rows: int, kills: int, chance: random.Random) -> dict[str, Any]:
    """Run the whole, killed some times on the way, whenever; then the next day, with one row in a hundred changed."""
    source, out = write(place / "data", rows), place / "numbers.parquet"
    before = count(url)
    peak, started = 0.0, time.perf_counter()
    for moment in sorted(chance.randrange(rows) for _ in range(kills)):
        process = run(source, out, place, url)
        while count(url) - before < moment:
            time.sleep(0.05)
        peak = max(peak, memory(process.pid))
        process.send_signal(signal.SIGKILL)
        process.wait()
        if out.exists():
            raise SystemExit("a killed run left a file that is not whole")
    peak = max(peak, finish(run(source, out, place, url)))
    seconds, calls = time.perf_counter() - started, count(url) - before
    right = numbers(out) == list(map(str, range(rows)))
    write(place / "data", rows, changed=rows // 100)
    before, started = count(url), time.perf_counter()
    peak = max(peak, finish(run(source, out, place, url)))
    seconds_after = time.perf_counter() - started
    changed = [str(i + rows if i < rows // 100 else i) for i in range(rows)]
    return {
        "kills": kills,
        "seconds": round(seconds, 1),
        "calls": calls,
        "repeated_calls": calls - rows,
        "right": right and numbers(out) == changed,
        "peak_rss_mb": round(peak, 1),
        "next_day": {
            "changed": rows // 100,
            "calls": count(url) - before,
            "seconds": round(seconds_after, 1),
        },
    }


def write(folder: Path, rows: int, changed: int = 0) -> str:
    """Write a folder with one table of cases, the first ones changed; give its path."""
    folder.mkdir(exist_ok=True)
    numbered = (i + rows if i < changed else i for i in range(rows))
    table = pa.table({"id": range(rows), "body": [f"This is case number {n}. {FILLER}" for n in numbered]})
    pq.write_table(table, folder / "cases.parquet")
    folder.with_name(f"{folder.name}.almanaq.toml").write_text('[cases]\n[cases.columns.body]\nkind = "free_text"\n')
    return str(folder)


def environment(url: str, cache: Path, at_once: int = IN_FLIGHT) -> dict[str, str]:
    """Return the environment of a run."""
    own = {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "k", "ALMANAQ_CACHE_DIR": str(cache)}
    return {**os.environ, **own, "ALMANAQ_CONCURRENCY": str(at_once)}


def run(source: str, out: Path, place: Path, url: str) -> subprocess.Popen[bytes]:
    """Start the command."""
    command = ["sql", QUERY, "--db", source, "--model", "openai:m", "--max-calls", "2000000000"]
    return subprocess.Popen(
        [sys.executable, "-m", "almanaq", *command, "--out", str(out), "--resume"],
        env=environment(url, place / "cache"), stderr=subprocess.DEVNULL,
    )  # fmt: skip


def finish(process: subprocess.Popen[bytes]) -> float:
    """Wait for the end of a run; give the most memory it took, in megabytes."""
    peak = 0.0
    while process.poll() is None:
        peak = max(peak, memory(process.pid))
        time.sleep(0.2)
    if process.returncode:
        raise SystemExit(f"the run ended with {process.returncode}")
    return peak


def memory(pid: int) -> float:
    """Return the most resident memory that a process has had so far, in megabytes; 0 of one that has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1000 for line in lines if line.startswith("VmHWM")), 0.0)


def numbers(out: Path) -> list[str | None]:
    """Return the column that was extracted, in the order of the rows."""
    found: list[str | None] = pq.read_table(out).sort_by("id").column("number").to_pylist()
    return found


def count(url: str) -> int:
    """Return how many calls the server has had."""
    with urllib.request.urlopen(url.replace("/v1", "/count")) as reply:
        return int(reply.read())


def load() -> str:
    """Return the machine's load now."""
    return " ".join(f"{each:.2f}" for each in os.getloadavg()) + f" on {os.cpu_count()} cores"


@dataclass(frozen=True, slots=True)
class Server:
    """The server, in a process of its own."""

    url: str
    pid: int

    def cpu(self) -> float:
        """Return the seconds of processor that it has taken."""
        times = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def serving(latency: float = LATENCY) -> Iterator[Server]:
    """Run the server."""
    started = [sys.executable, "-m", "benchmarks.extraction.server", str(latency)]
    process = subprocess.Popen(started, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield Server(f"http://127.0.0.1:{process.stdout.readline().strip()}/v1", process.pid)
    finally:
        process.kill()
        process.wait()


if __name__ == "__main__":
    sys.exit(main())
