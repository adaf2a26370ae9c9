"""What the server says of itself is short, constant, and changes only when somebody means it to."""

from __future__ import annotations

import asyncio
import hashlib
import json

import almanaq
from almanaq.mcp import make_server
from almanaq.mcp.declared import TOOLS
from almanaq.mcp.resources import PROMPT_TEXTS, PROMPTS, RESOURCES, TEMPLATES
from almanaq.models.budget import estimate_tokens

PINNED = "d8fb802e9d26fde7"
"""Of all that a client's model reads before its first call. Change it with the words, and read them again."""


def listed():
    from mcp import Client

    async def main():
        with almanaq.connect({"t": {"a": [1]}}, cache=False) as connection:
            async with Client(make_server(connection)) as client:
                tools = (await client.list_tools()).tools
                return [tool.model_dump(by_alias=True, exclude_none=True) for tool in tools], client.instructions

    return asyncio.run(main())


def test_the_list_of_tools_is_short():
    tools, instructions = listed()
    assert [tool["name"] for tool in tools] == [tool.name for tool in TOOLS]
    assert estimate_tokens(json.dumps(tools)) <= 2_150
    assert estimate_tokens(instructions) <= 150


def test_the_words_are_those_that_were_read_over():
    tools, instructions = listed()
    words = json.dumps([tools, instructions, PROMPTS, PROMPT_TEXTS, RESOURCES, TEMPLATES], sort_keys=True)
    assert hashlib.sha256(words.encode()).hexdigest()[:16] == PINNED


def test_neither_sampling_nor_logging_is_offered():
    from mcp import Client

    async def main():
        with almanaq.connect({"t": {"a": [1]}}, cache=False) as connection:
            async with Client(make_server(connection), mode="legacy") as client:
                return client.server_capabilities

    offered = asyncio.run(main()).model_dump(exclude_none=True)
    assert set(offered) <= {"tools", "resources", "prompts", "completions", "experimental"}
    assert offered["tools"].get("list_changed") is not True
