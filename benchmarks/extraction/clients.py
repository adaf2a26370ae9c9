"""How many calls a second bare clients make of the same server: loops that do nothing with a reply but read it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

CONCURRENCY = 64
Call = Callable[[dict[str, Any]], Awaitable[object]]


def request(number: int) -> dict[str, Any]:
    """Give a request about as long as those of an extraction."""
    document = f"This is case number {number}. " + "The pump was taken apart, cleaned and tested again. " * 3
    asked = "Answer from the document alone, as JSON with value and quotes; null where it does not say. " * 8
    schema = {"type": "object", "properties": {"value": {"type": "string"}}, "required": ["value"]}
    return {
        "model": "m",
        "messages": [{"role": "system", "content": asked}, {"role": "user", "content": document}],
        "max_completion_tokens": 1024,
        "temperature": 0,
        "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}},
    }


def aiohttp_rate(url: str, calls: int) -> dict[str, float]:
    """Give the calls a second, and the milliseconds of processor a call, of aiohttp."""

    async def run() -> dict[str, float]:
        import aiohttp

        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

            async def call(content: dict[str, Any]) -> object:
                data = json.dumps(content).encode()
                async with session.post(f"{url}/chat/completions", data=data) as reply:
                    return json.loads(json.loads(await reply.read())["choices"][0]["message"]["content"])

            return await _rate(call, calls)

    return asyncio.run(run())


def openai_rate(url: str, calls: int) -> dict[str, float]:
    """Give the same of the `openai` package."""

    async def run() -> dict[str, float]:
        from openai import AsyncOpenAI

        async with AsyncOpenAI(base_url=url, api_key="k", max_retries=0) as client:

            async def call(content: dict[str, Any]) -> object:
                reply = await client.chat.completions.create(**content)
                return json.loads(reply.choices[0].message.content or "")

            return await _rate(call, calls)

    return asyncio.run(run())


async def _rate(call: Call, calls: int) -> dict[str, float]:
    numbers = iter(range(calls))

    async def work() -> None:
        for number in numbers:
            await call(request(number))

    await call(request(-1))
    wall, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(work() for _ in range(CONCURRENCY)))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {"calls_per_second": round(calls / wall, 1), "cpu_ms_per_call": round(1000 * cpu / calls, 3)}
