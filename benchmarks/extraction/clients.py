"""How many calls a second bare clients make of the same server: loops that do nothing with a reply but read it.

They post what an extraction posts, byte by byte, so that only what is done around a call differs.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from almanaq.event_loops import new_event_loop
from almanaq.models.http import JsonServer
from almanaq.models.prompted_reader import prompt_values
from almanaq.models.prompts import prompt_file
from almanaq.models.protocols import TextCall
from almanaq.models.text_calls import reply_schema

FILLER = "The pump was taken apart, cleaned and tested again. " * 3
Call = Callable[[dict[str, Any]], Awaitable[object]]


def request(number: int) -> dict[str, Any]:
    """Return the request that an extraction makes for a case."""
    call = TextCall("answer", (f"This is case number {number}. {FILLER}",), "what is its number?")
    values = {**prompt_values(call), "passages": [(1, call.passages[0])], "part": 0, "parts": 0}
    prompt = prompt_file("answer").prompt(values)
    schema = {"name": prompt.name, "strict": True, "schema": reply_schema(call)}
    return {
        "model": "m",
        "messages": [{"role": message.role, "content": message.content} for message in prompt.messages],
        "max_completion_tokens": prompt.max_output_tokens,
        "temperature": 0,
        "response_format": {"type": "json_schema", "json_schema": schema},
    }


def own_http_rate(url: str, calls: int, at_once: int) -> dict[str, float]:
    """Return the calls a second, and the milliseconds of processor a call, of our own HTTP without what
    is around it.
    """

    async def run() -> dict[str, float]:
        server = JsonServer(url, {"authorization": "Bearer k"}, timeout=60)

        async def call(content: dict[str, Any]) -> object:
            reply = await server.post("/chat/completions", content)
            return json.loads(json.loads(reply.body)["choices"][0]["message"]["content"])

        return await _rate(call, calls, at_once)

    return _run(run())


def aiohttp_rate(url: str, calls: int, at_once: int) -> dict[str, float]:
    """Return the same of aiohttp, on asyncio's own event loop."""

    return asyncio.run(_aiohttp_rate(url, calls, at_once))


def aiohttp_uvloop_rate(url: str, calls: int, at_once: int) -> dict[str, float]:
    """Return the same of aiohttp on the event loop that an extraction has: uvloop's, where it is installed."""
    return _run(_aiohttp_rate(url, calls, at_once))


def _run(work: Coroutine[Any, Any, dict[str, float]]) -> dict[str, float]:
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(work)


async def _aiohttp_rate(url: str, calls: int, at_once: int) -> dict[str, float]:
    import aiohttp

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def call(content: dict[str, Any]) -> object:
            data = json.dumps(content).encode()
            async with session.post(f"{url}/chat/completions", data=data) as reply:
                return json.loads(json.loads(await reply.read())["choices"][0]["message"]["content"])

        return await _rate(call, calls, at_once)


def openai_rate(url: str, calls: int, at_once: int) -> dict[str, float]:
    """Return the same of the `openai` package."""

    async def run() -> dict[str, float]:
        from openai import AsyncOpenAI

        async with AsyncOpenAI(base_url=url, api_key="k", max_retries=0) as client:

            async def call(content: dict[str, Any]) -> object:
                reply = await client.chat.completions.create(**content)
                return json.loads(reply.choices[0].message.content or "")

            return await _rate(call, calls, at_once)

    return asyncio.run(run())


async def _rate(call: Call, calls: int, at_once: int) -> dict[str, float]:
    # Made beforehand: what is measured is the client.
    requests = iter([request(number) for number in range(calls)])

    async def work() -> None:
        for content in requests:
            await call(content)

    await call(request(-1))
    wall, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(work() for _ in range(at_once)))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {"calls_per_second": round(calls / wall, 1), "cpu_ms_per_call": round(1000 * cpu / calls, 3)}
