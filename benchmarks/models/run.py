"""Measure the model layer against a stand-in server; see README.md."""

from __future__ import annotations

import asyncio
import json
import os
import platform
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from hostile import hostile
from server import serving

from almanaq.errors import BudgetExceeded, ModelCallError
from almanaq.models.budget import Budget
from almanaq.models.cached import CachedModel, ReplyCache
from almanaq.models.model_names import ModelSettings, wrap_model
from almanaq.models.openai import OpenAIModel
from almanaq.models.prompted_reader import PromptedReader
from almanaq.models.prompts import prompt_file
from almanaq.models.protocols import Price, Prompt, TextCall, TextReply
from almanaq.models.text_calls import reply_schema

FOLDER = Path(__file__).parent
PRICE = Price(2.5, 10.0)
WORDS = "The room was lovely and the soup was hot, though we waited a while for the table that we had booked. " * 3


def call_of(number: int) -> TextCall:
    """Return the call with a number."""
    return TextCall("answer", (f"This is request {number} of many. {WORDS}",), "is it romantic?")


def prompt_of(number: int) -> Prompt:
    """Return the request of a call."""
    call = call_of(number)
    values = {"question": call.question, "options": (), "compared": (), "form": "", "part": 0, "parts": 0}
    values["passages"] = [(1, call.passages[0])]
    return prompt_file("answer").prompt(values, schema=reply_schema(call))


async def all_of(make: Callable[[int], Awaitable[Any]], calls: int, at_once: int) -> list[Any]:
    """Make calls 0 … n-1, `at_once` under way; a failure stands in the place of its result."""
    found: list[Any] = [None] * calls
    numbers = iter(range(calls))

    async def worker() -> None:
        for number in numbers:
            try:
                found[number] = await make(number)
            except (ModelCallError, BudgetExceeded) as problem:
                found[number] = problem

    await asyncio.gather(*(worker() for _ in range(at_once)))
    return found


def time_work(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """Return a result, and the seconds and CPU seconds that it took."""
    started, cpu = time.perf_counter(), time.process_time()
    result = work()
    return result, time.perf_counter() - started, time.process_time() - cpu


def bare(url: str, calls: int) -> None:
    """Make the calls with the openai client as its manual shows."""
    import openai

    async def make_all() -> None:
        async with openai.AsyncOpenAI(base_url=url, api_key="k", max_retries=0, timeout=60) as client:

            async def one(number: int) -> Any:
                prompt = prompt_of(number)
                schema = {"name": "answer", "strict": True, "schema": prompt.schema}
                reply = await client.chat.completions.create(
                    model="m",
                    messages=[{"role": m.role, "content": m.content} for m in prompt.messages],  # type: ignore[misc]
                    temperature=0,
                    max_completion_tokens=prompt.max_output_tokens,
                    response_format={"type": "json_schema", "json_schema": schema},  # type: ignore[typeddict-item]
                )
                return reply.choices[0].message.content

            found = await all_of(one, calls, 64)
        assert all(isinstance(text, str) for text in found)

    asyncio.run(make_all())


def ours(url: str, calls: int, file: Path) -> None:
    """Make the calls through every standard wrapper, with a cache on disk."""
    model = wrap_model(OpenAIModel("m", url, "k", price=PRICE), ModelSettings(cache_file=file, price=PRICE), True)
    found = asyncio.run(all_of(lambda number: model.complete(prompt_of(number)), calls, 64))
    assert [json.loads(completion.text)["value"] for completion in found] == [str(n) for n in range(calls)]


def throughput(folder: Path, calls: int = 10_000) -> dict[str, Any]:
    """Compare with the bare openai client: half of the calls, ours twice, its other half, to even out the machine."""
    half = calls // 2
    figures: dict[str, list[float]] = {"bare": [0.0, 0.0], "ours": [0.0, 0.0]}
    with serving(latency=0.05) as server:
        bare(server.url, 200)
        ours(server.url, 200, folder / "warm.sqlite")
        before = server.ledger()["calls"]
        for turn, name in enumerate(("bare", "ours", "ours", "bare")):
            file = folder / f"{turn}.sqlite"
            work = partial(bare, server.url, half) if name == "bare" else partial(ours, server.url, half, file)
            _, seconds, cpu = time_work(work)
            figures[name] = [figures[name][0] + seconds, figures[name][1] + cpu]
        made = server.ledger()["calls"] - before
    (bare_seconds, bare_cpu), (our_seconds, our_cpu) = figures["bare"], figures["ours"]
    return {
        "calls_each": calls,
        "server_calls": made,
        "bare": {"calls_per_second": calls / bare_seconds, "cpu_ms_per_call": 1000 * bare_cpu / calls},
        "ours": {"calls_per_second": calls / our_seconds, "cpu_ms_per_call": 1000 * our_cpu / calls},
        "throughput_ratio": bare_seconds / our_seconds,
        "cpu_ratio": our_cpu / bare_cpu,
        "passed": bare_seconds / our_seconds >= 0.9 and our_cpu / bare_cpu <= 1.3 and made == 2 * calls,
    }


RATES = {"too_many": 0.1, "error": 0.05, "hang": 0.02, "malformed": 0.01, "not_json": 0.01}


def faults(folder: Path, calls: int = 2_000) -> dict[str, Any]:
    """Read documents from a server that fails in every way, without and with a budget that does not suffice."""
    free, kept = _faults(folder / "a.sqlite", calls, Budget(setting="budget")), {}
    for name, budget in (("calls", Budget(calls=500)), ("money", Budget(money=0.4)), ("tokens", Budget(tokens=90_000))):
        found = _faults(folder / f"{name}.sqlite", calls, budget)
        limit = {"calls": 500, "money": 0.4, "tokens": 90_000}[name]
        spent = {"calls": found["server_calls"], "money": found["server_money"], "tokens": found["server_tokens"]}[name]
        kept[name] = {"limit": limit, "spent": spent, "stopped": found["stopped"], "kept": spent <= limit}
    return {
        **free,
        "budgets": kept,
        "passed": free["lost"] == free["wrong"] == 0
        and free["physical_over_inevitable"] <= 1.05
        and abs(free["metered_money"] - free["server_money"]) < 0.005
        and all(one["kept"] and one["stopped"] for one in kept.values()),
    }


def _faults(file: Path, calls: int, budget: Budget) -> dict[str, Any]:
    settings = ModelSettings(cache_file=file, price=PRICE, budget=budget)
    with serving(rates=RATES, latency=0.05, retry_after=0.05, seed=7) as server:
        model = OpenAIModel("m", server.url, "k", price=PRICE)
        reader = PromptedReader(wrap_model(model, settings, True))
        found, seconds, _ = time_work(lambda: asyncio.run(all_of(lambda n: reader.read(call_of(n)), calls, 64)))
        ledger = server.ledger()
    failed = sum(ledger["outcomes"].get(name, 0) for name in RATES)
    replies = [item for item in found if isinstance(item, TextReply)]
    inevitable = len(replies) + failed
    return {
        "calls": calls,
        "seconds": seconds,
        "replies": len(replies),
        "unknown": sum(isinstance(item, ModelCallError) for item in found),
        "stopped": sum(isinstance(item, BudgetExceeded) for item in found),
        "lost": sum(item is None for item in found),
        "wrong": sum(isinstance(item, TextReply) and item.value != str(n) for n, item in enumerate(found)),
        "server_calls": ledger["calls"],
        "server_outcomes": ledger["outcomes"],
        "physical_over_inevitable": ledger["calls"] / max(1, inevitable),
        "metered_calls": budget.usage.calls,
        "metered_money": budget.usage.money,
        "server_money": PRICE.of(ledger["input_tokens"], ledger["output_tokens"]),
        "server_tokens": ledger["input_tokens"] + ledger["output_tokens"],
    }


def worker(url: str, file: Path, calls: int) -> subprocess.Popen[bytes]:
    """Start a process that makes calls 0 … n-1 with a cache file."""
    return subprocess.Popen([sys.executable, __file__, "--worker", url, str(file), str(calls)])


def crash(folder: Path, calls: int = 2_000) -> dict[str, Any]:
    """Kill a process in the middle of its calls; count what the next one makes."""
    file = folder / "c.sqlite"
    with serving(latency=0.05) as server:
        first = worker(server.url, file, calls)
        while server.ledger()["calls"] < calls // 2:
            time.sleep(0.01)
        first.send_signal(signal.SIGKILL)
        first.wait()
        before, kept = server.ledger()["calls"], _replies(file)
        second = worker(server.url, file, calls)
        ended = second.wait()
        after = server.ledger()["calls"]
    return {
        "calls": calls,
        "made_before_kill": before,
        "kept_at_kill": kept,
        "made_after": after - before,
        "missing": calls - kept,
        "integrity": _integrity(file),
        "passed": ended == 0 and after - before == calls - kept and before - kept <= 64 and _integrity(file) == "ok",
    }


def processes(folder: Path, count: int = 8, calls: int = 1_000) -> dict[str, Any]:
    """Let processes that share a cache ask the same at the same time."""
    file = folder / "p.sqlite"
    with serving(latency=0.05) as server:
        started = time.perf_counter()
        ended = [process.wait() for process in [worker(server.url, file, calls) for _ in range(count)]]
        seconds, made = time.perf_counter() - started, server.ledger()["calls"]
    good = ended == [0] * count and made <= 1.05 * calls and _integrity(file) == "ok" and _replies(file) == calls
    return {
        "processes": count,
        "requests_each": calls,
        "server_calls": made,
        "seconds": seconds,
        "integrity": _integrity(file),
        "passed": good,
    }


def hit(folder: Path, replies: int = 10_000, looks: int = 5_000) -> dict[str, Any]:
    """Time replies from a cache file with many others in it."""
    cache = ReplyCache(folder / "h.sqlite")
    model = CachedModel(OpenAIModel("m", "http://127.0.0.1:9", "k"), cache)
    for number in range(replies):
        cache.keep([(number.to_bytes(32, "big"), "x" * 300)], model="other")
    prompts = [prompt_of(number) for number in range(100)]
    from almanaq.models.cached import request_key

    for prompt in prompts:
        cache.keep([(request_key(model.identity, prompt), '{"value": "Yes", "quotes": []}')], model=model.identity)

    async def look() -> list[float]:
        times = []
        for number in range(looks):
            started = time.perf_counter()
            await model.complete(prompts[number % 100])
            times.append(1000 * (time.perf_counter() - started))
        return sorted(times)

    times = asyncio.run(look())
    cache.close()
    median, slow = times[looks // 2], times[int(looks * 0.95)]
    return {"replies": replies + 100, "median_ms": median, "p95_ms": slow, "passed": median <= 0.1}


def _replies(file: Path) -> int:
    with sqlite3.connect(file) as connection:
        return int(connection.execute("SELECT count(*) FROM reply").fetchone()[0])


def _integrity(file: Path) -> str:
    with sqlite3.connect(file) as connection:
        return str(connection.execute("PRAGMA integrity_check").fetchone()[0])


MEASUREMENTS: tuple[Callable[[Path], dict[str, Any]], ...] = (hit, hostile, crash, processes, faults, throughput)


def main(arguments: Sequence[str]) -> int:
    """Run the measurements named, or all; 1 when one missed its bar."""
    if arguments[:1] == ["--worker"]:
        ours(arguments[1], int(arguments[3]), Path(arguments[2]))
        return 0
    passed = True
    for measure in MEASUREMENTS:
        if arguments and measure.__name__ not in arguments:
            continue
        with tempfile.TemporaryDirectory() as folder:
            result = measure(Path(folder))
        machine = {"python": platform.python_version(), "cores": os.cpu_count(), "load": round(os.getloadavg()[0], 1)}
        record = {"measure": measure.__name__, "machine": machine, "result": result}
        text = json.dumps(record, indent=1, default=lambda o: str(o))
        (FOLDER / "results" / f"{measure.__name__}.json").write_text(text + "\n")
        print(text, flush=True)
        passed &= bool(result["passed"])
    return int(not passed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
