"""The reply cache: asked once, ever; shared by processes; failures are not kept."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from virtual_time import run

from almanaq.errors import ModelCallError, SourceError
from almanaq.models.cached import CachedModel, ReplyCache, request_key
from almanaq.models.protocols import Message, Prompt
from almanaq.testing import ScriptedModel
from almanaq_bench.testing import Faults, StandInServer


def test_a_reply_is_kept_for_later_runs(prompt: Prompt, tmp_path: Path) -> None:
    model = ScriptedModel(["first"])
    for expected in ((1, 0), (0, 1)):
        cache = ReplyCache(tmp_path / "c.sqlite")
        completion = asyncio.run(CachedModel(model, cache).complete(prompt))
        cache.close()
        assert completion.text == "first"
        assert (completion.usage.calls, completion.usage.cached_calls) == expected


def test_a_failure_is_not_kept_and_not_shared(prompt: Prompt) -> None:
    inner = ScriptedModel([ModelCallError("once"), "then"], latency=0.02)
    model = CachedModel(inner, ReplyCache())

    async def two() -> list[object]:
        return await asyncio.gather(model.complete(prompt), model.complete(prompt), return_exceptions=True)

    first, second = asyncio.run(two())
    assert isinstance(first, ModelCallError)
    assert getattr(second, "text", None) == "then"


def test_a_waiter_outlives_the_leader_that_was_cancelled(prompt: Prompt) -> None:
    inner = ScriptedModel(["kept"], latency=0.3)
    model = CachedModel(inner, ReplyCache())

    async def cancelled() -> str:
        leader = asyncio.create_task(model.complete(prompt))
        await asyncio.sleep(0.01)
        waiter = asyncio.create_task(model.complete(prompt))
        await asyncio.sleep(0.01)
        leader.cancel()
        return (await waiter).text

    assert run(cancelled()) == "kept"
    assert inner.calls == 2


def test_the_key_ignores_the_random_fence_and_nothing_else(prompt: Prompt) -> None:
    def fenced(fence: str, text: str = "row") -> Prompt:
        return replace(prompt, messages=(Message("user", f"<{fence}>{text}</{fence}>"),), fence=fence)

    key = request_key("m", fenced("aa11bb22"))
    assert request_key("m", fenced("cc33dd44")) == key
    different = [
        request_key("other", fenced("aa11bb22")),
        request_key("m", fenced("aa11bb22", "rows")),
        request_key("m", replace(fenced("aa11bb22"), version="2")),
        request_key("m", replace(fenced("aa11bb22"), schema=None)),
        request_key("m", replace(fenced("aa11bb22"), name="link")),
    ]
    assert len({key, *different}) == 6


def test_a_hit_takes_no_time(prompt: Prompt, tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path / "c.sqlite")
    model = CachedModel(ScriptedModel(lambda _: "x"), cache)

    async def median() -> float:
        await model.complete(prompt)
        times = []
        for _ in range(300):
            start = time.perf_counter()
            await model.complete(prompt)
            times.append(time.perf_counter() - start)
        return sorted(times)[150]

    seconds = asyncio.run(median())
    cache.close()
    assert seconds < 0.0005  # 0.1 ms on a quiet machine (benchmarks/models); a busy one is granted more


WORKER = """
import asyncio, sys
from dataclasses import replace
from pathlib import Path
from almanaq.models.cached import CachedModel
from almanaq.models.openai import OpenAIModel
from almanaq.models.protocols import Message, Prompt
from almanaq.models.cached import ReplyCache
async def main():
    cache = ReplyCache(Path(sys.argv[2]))
    model = CachedModel(OpenAIModel("m", sys.argv[1]), cache)
    prompts = [Prompt("p", "1", (Message("user", f"question {n}"),)) for n in range(int(sys.argv[3]))]
    replies = await asyncio.gather(*(model.complete(p) for p in prompts))
    assert [r.text for r in replies] == [f"question {n}" for n in range(len(prompts))], replies
    cache.close()
asyncio.run(main())
"""


def run_workers(server: StandInServer, file: Path, processes: int, requests: int) -> None:
    arguments = [sys.executable, "-c", WORKER, server.url, str(file), str(requests)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    started = [subprocess.Popen(arguments, env=environment) for _ in range(processes)]
    assert [process.wait(60) for process in started] == [0] * processes


@pytest.mark.slow
def test_processes_at_the_same_work_share_calls(tmp_path: Path) -> None:
    file = tmp_path / "c.sqlite"
    with StandInServer(lambda r: r["messages"][0]["content"], faults=Faults(latency=0.02)) as server:
        run_workers(server, file, 3, 60)
        assert server.ledger.calls <= 63
        run_workers(server, file, 1, 70)
    assert server.ledger.calls <= 73
    with sqlite3.connect(file) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


def test_a_lease_of_a_process_that_died_is_taken_over(tmp_path: Path) -> None:
    file = tmp_path / "c.sqlite"
    code = (
        "from pathlib import Path; from almanaq.models.cached import ReplyCache;"
        f"cache = ReplyCache(Path({str(file)!r})); assert cache.look([b'k']) == [True]; cache.close()"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    dead_leased, other = ReplyCache(file), ReplyCache(file)
    assert dead_leased.look([b"k"]) == [True]
    assert other.look([b"k"]) == [False]
    dead_leased.release(b"k")
    assert other.look([b"k"]) == [True]
    dead_leased.close()
    other.close()


@pytest.mark.parametrize("damage", ["garbage", "version", "folder"])
def test_a_file_that_cannot_be_used_is_named_with_the_way_out(tmp_path: Path, damage: str) -> None:
    file = tmp_path / "c.sqlite"
    if damage == "garbage":
        file.write_bytes(b"this is no database" * 100)
    elif damage == "version":
        connection = sqlite3.connect(file)
        connection.execute("PRAGMA user_version = 99")
        connection.close()
    else:
        file.mkdir()
    with pytest.raises(SourceError, match=r"c\.sqlite.*ALMANAQ_CACHE"):
        ReplyCache(file).get(b"k")


def test_stats_and_clear(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path / "c.sqlite")
    for n in range(3):
        cache.keep([(bytes([n]), "text")], model="a" if n else "b")
    stats = cache.stats()
    assert (stats.replies, stats.by_model) == (3, {"a": 2, "b": 1})
    assert stats.bytes > 0
    assert cache.clear() == 3
    assert cache.get(b"\x00") is None
    cache.close()
