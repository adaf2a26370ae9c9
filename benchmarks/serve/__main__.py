"""What a turn over HTTP takes beyond its model: `python -m benchmarks.serve load|memory|start|paint|page [--write]`.

`load`: 50 conversations at once; each turn is a question to a language model that takes 200 ms a call: it writes the
query, reads 20 texts at once and words the reply, 600 ms in all. Own time is what a turn takes beyond these, sending
and waiting included. At two paces: `people` read an answer and write the next question for 10 to 20 seconds;
`saturated` asks the next question at once, so that turns wait for processors. The load is made on the same machine.
Every reply is held against its question: none may be lost or crossed.

`memory`: 5,000 turns in 250 conversations, 25 at once, with a model that replies at once, and what the server's process
holds after every 500. Each turn has a query of its own.

`start`: seconds from the command `almanaq serve sample:restaurants` to its address, and what it ends in.

`paint`: milliseconds to the first paint of the page in Chromium, in new tabs and in one that is open, and beside it of
`/healthz` in new tabs, one line of text: what Chromium takes for a tab, whatever it shows.

`page`: milliseconds from Enter to the painted answer, less what the engine took, of ten first questions each in a new
tab; and of a table of 100,000 rows that is scrolled 180 pixels a frame, the milliseconds of frames and the rows drawn.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import aiohttp
from scripts.screenshots import serve_page

CONVERSATIONS = 50
TURNS = 5
PACES = {"people": (10.0, 20.0), "saturated": (0.0, 0.0)}
"""Seconds between two turns of a conversation."""
CALLS = 3
"""Calls of the model that a turn waits for, one after another."""
AT_ONCE = 25
BOUND_MS = 100
SHARES = {"median": 0.5, "p95": 0.95, "most": 1.0}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("load", "memory", "start", "paint", "page"))
    parser.add_argument("--turns", type=int, default=5_000, help="of memory")
    parser.add_argument("--write", action="store_true", help="write the result to results/WHAT.json")
    arguments = parser.parse_args()
    before = round(os.getloadavg()[0], 2)
    measures = {"load": load, "memory": lambda: memory(arguments.turns), "start": start, "paint": paint, "page": page}
    measure = measures[arguments.what]
    measured = {"command": f"python -m benchmarks.serve {arguments.what}", "load_before": before, **measure()}
    text = json.dumps(measured, indent=2)
    print(text)
    if arguments.write:
        folder = Path(__file__).with_name("results")
        folder.mkdir(exist_ok=True)
        (folder / f"{arguments.what}.json").write_text(text + "\n", encoding="utf-8")


def load() -> dict[str, Any]:
    """Return the milliseconds of our own of each turn, at each pace."""
    latency = 0.2
    paces: dict[str, Any] = {}
    with Served("--latency", str(latency)) as server:
        asyncio.run(_converse(server.port, range(1000, 1004), 2, (0.0, 0.0)))  # what is done once is done
        for part, (pace, thinking) in enumerate(PACES.items()):
            numbers = range(CONVERSATIONS * part, CONVERSATIONS * (part + 1))
            paces[pace] = {"thinking_s": list(thinking), **_at_pace(server, numbers, thinking, CALLS * latency)}
    return {
        "conversations": CONVERSATIONS,
        "model_ms": round(1000 * CALLS * latency),
        "bound_ms": BOUND_MS,
        **paces,
    }


def _at_pace(server: Served, numbers: range, thinking: tuple[float, float], modelled: float) -> dict[str, Any]:
    busy, began = server.processor(), time.perf_counter()
    turns = asyncio.run(_converse(server.port, numbers, TURNS, thinking))
    seconds, busy = time.perf_counter() - began, server.processor() - busy
    own = sorted(1000 * (taken - modelled) for taken in turns)
    return {
        "turns": len(own),
        "turns_a_second": round(len(own) / seconds, 1),
        "own_ms": {name: round(own[int(share * (len(own) - 1))], 1) for name, share in SHARES.items()},
        "processor_ms_a_turn": round(1000 * busy / len(own), 1),
    }


def memory(turns: int) -> dict[str, Any]:
    """Return the megabytes that the server holds as turns go by."""
    step = max(1, turns // 10)
    held: list[float] = []
    with Served("--latency", "0") as server:
        for part in range(10):
            numbers = range(AT_ONCE * part, AT_ONCE * (part + 1))
            asyncio.run(_converse(server.port, numbers, step // AT_ONCE, (0.0, 0.0)))
            held.append(round(server.memory(), 1))
    return {"turns": step * 10, "megabytes": held, "growth_of_the_second_half": round(held[-1] - held[4], 1)}


def start() -> dict[str, Any]:
    """Return the seconds to start and to end, the best of five."""
    begins, ends = [], []
    for _ in range(5):
        began = time.perf_counter()
        command = [sys.executable, "-m", "almanaq", "serve", "sample:restaurants", "--port", "0", "--no-store"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("http://")
            begins.append(time.perf_counter() - began)
            began = time.perf_counter()
            process.send_signal(signal.SIGTERM)
            process.wait()
            ends.append(time.perf_counter() - began)
    return {"start_seconds": round(min(begins), 2), "end_seconds": round(min(ends), 2), "bound_seconds": 2}


def paint() -> dict[str, Any]:
    """Return the milliseconds to the first paint, of ten visits each, one after the other."""
    found: dict[str, list[float]] = {"new_tab": [], "same_tab": [], "one_line_in_a_new_tab": []}
    with serve_page("sample:restaurants") as (browser, address):
        open_page = browser.new_context().new_page()
        for _ in range(10):
            for name, path in (("new_tab", ""), ("one_line_in_a_new_tab", "healthz")):
                page = browser.new_context().new_page()
                found[name].append(_time_paint(page, address + path))
                page.context.close()
            found["same_tab"].append(_time_paint(open_page, address))
    return {
        name: {"median": round(statistics.median(each)), "least": round(min(each))} for name, each in found.items()
    } | {"bound": 200}


QUESTION = "What is the best rated Lebanese restaurant?"
ROWS = "SELECT range AS id, 'Name ' || range % 977 AS name, range * 0.37 AS amount FROM range(100000)"
_ANSWERED = """() => new Promise(done => {
  const began = performance.now();
  new MutationObserver((_, observer) => {
    if (!document.querySelector(".card .buttons")) return;
    observer.disconnect();
    requestAnimationFrame(() => setTimeout(() => done(performance.now() - began)));
  }).observe(document.getElementById("log"), { childList: true, subtree: true });
  document.getElementById("ask").requestSubmit();
})"""
_SCROLLED = """async () => {
  const place = document.querySelector(".scroll"), frames = [];
  let last = performance.now(), most = 0, empty = 0;
  for (let frame = 0; frame < 300; frame++) {
    place.scrollTop += 180;
    await new Promise(requestAnimationFrame);
    frames.push(performance.now() - last);
    last = performance.now();
    const lines = [...place.querySelectorAll("tbody tr")];
    most = Math.max(most, lines.length);
    empty += lines.some(line => line.cells.length === 1);
  }
  return { frames, most, empty };
}"""


def page() -> dict[str, Any]:
    """Return the milliseconds to the first answer, and how a table of 100,000 rows scrolls."""
    own = []
    with serve_page("sample:restaurants") as (browser, address):
        for _ in range(10):
            page = browser.new_context().new_page()
            page.goto(address)
            page.fill("#question", QUESTION)
            taken = page.evaluate(_ANSWERED)
            read = (
                "async () => (await (await fetch('/api/v1/conversations/' + location.hash.slice(1))).json()).turns[0]"
            )
            own.append(taken - 1000 * page.evaluate(read)["trace"]["seconds"])
            page.context.close()
        page = browser.new_context().new_page()
        page.goto(address + "sql")
        page.get_by_label("SUQL query").fill(ROWS)
        page.keyboard.press("Control+Enter")
        page.locator("tbody tr").nth(20).wait_for()
        page.wait_for_timeout(1000)
        scrolled = page.evaluate(_SCROLLED)
    frames = sorted(scrolled["frames"])
    return {
        "first_answer_own_ms": {"median": round(statistics.median(own)), "most": round(max(own)), "bound": 300},
        "frame_ms": {name: round(frames[int(share * (len(frames) - 1))], 1) for name, share in SHARES.items()},
        "rows_drawn_most": scrolled["most"],
        "frames_with_rows_awaited": scrolled["empty"],
    }


def _time_paint(page: Any, address: str) -> float:
    page.goto(address)
    page.screenshot(clip={"x": 0, "y": 0, "width": 8, "height": 8})  # a frame has been painted
    return float(page.evaluate("performance.getEntriesByName('first-paint')[0].startTime"))


async def _converse(port: int, numbers: range, turns: int, thinking: tuple[float, float]) -> list[float]:
    """Hold conversations at once; give the seconds of each turn."""
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}", connector=connector) as session:
        held = await asyncio.gather(*(_conversation(session, number, turns, thinking) for number in numbers))
    return [seconds for each in held for seconds in each]


async def _conversation(
    session: aiohttp.ClientSession, number: int, turns: int, thinking: tuple[float, float]
) -> list[float]:
    drawn = random.Random(number)
    await asyncio.sleep(drawn.uniform(0, thinking[1]))
    seconds, known = [], {}
    for turn in range(turns):
        question = f"Which places are quiet, in conversation {number}, turn {turn}?"
        began = time.perf_counter()
        async with session.post("/api/v1/ask", json={"question": question, **known}) as response:
            record = await response.json()
        seconds.append(time.perf_counter() - began)
        if response.status != 200 or record["question"] != question or {row[0] for row in record["rows"]} != {number}:
            raise SystemExit(f"a reply was lost or crossed: {record}")
        known = {"conversation": record["conversation"]}
        await asyncio.sleep(drawn.uniform(*thinking))
    return seconds


class Served:
    """The server's process."""

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "benchmarks.serve.server", *arguments]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Served:
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())
        return self

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGINT)
        self._process.wait(30)

    def memory(self) -> float:
        """Return the megabytes that it holds."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024

    def processor(self) -> float:
        """Return the seconds of processors that it has taken."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
