"""The same tools over HTTP: clients of both eras, foreign hosts and origins, and clients that go away."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import time
import urllib.error
import urllib.request

import pytest

import almanaq
from almanaq.mcp import asgi_app
from almanaq.testing import FunctionModel

from .conftest import serving, until_called


def post(address, body, **headers):
    data = json.dumps(body).encode()
    sent = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **headers}
    try:
        with urllib.request.urlopen(urllib.request.Request(address, data, sent), timeout=20) as reply:
            return reply.status
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def announced(address, length):
    """Return the status of a request that says it has a body of that length."""
    with contextlib.closing(http.client.HTTPConnection(address.removeprefix("http://"), timeout=20)) as line:
        line.putrequest("POST", "/mcp")
        for name, value in (("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")):
            line.putheader(name, value)
        line.putheader("Content-Length", str(length))
        line.endheaders()
        return line.getresponse().status


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_over_http_gets_what_one_in_memory_gets(connection, mode):
    from mcp import Client

    async def main(address):
        async with Client(f"{address}/mcp", mode=mode) as client:
            tools = [tool.name for tool in (await client.list_tools()).tools]
            found = await client.call_tool("run_query", {"suql": "SELECT id FROM places ORDER BY id"})
            return tools, found.structured_content["rows"]

    with serving(asgi_app(connection)) as address:
        tools, rows = asyncio.run(main(address))
    assert len(tools) == 8
    assert rows == [[1], [2], [3], [4]]


def test_foreign_hosts_and_origins_are_refused(connection):
    hello = {
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}},
    }  # fmt: skip
    with serving(asgi_app(connection)) as address:
        url = f"{address}/mcp"
        assert post(url, hello) == 200
        assert post(url, hello, Origin=address) == 200
        assert post(url, hello, Host="evil.example") == 421
        assert post(url, hello, Host="evil.example:8765", Origin="http://evil.example:8765") == 421
        assert post(url, hello, Origin="http://evil.example") == 403
        assert post(url, hello, Origin="null") == 403
        assert post(url, hello, **{"Content-Type": "text/plain"}) == 400
        assert announced(address, 1_100_000) == 413


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_that_goes_away_costs_nothing_more(mode):
    from mcp import Client

    reader = FunctionModel(lambda text, question: "Yes", latency=0.02)
    tables = {"t": {"s": [f"row {i}" for i in range(8_000)]}}

    async def main(address):
        async with Client(f"{address}/mcp", mode=mode) as client:
            suql = "SELECT count(*) FROM t WHERE answer(s, 'q?') = 'Yes'"
            calling = asyncio.ensure_future(client.call_tool("run_query", {"suql": suql}))
            await until_called(reader, 16)
            calling.cancel()
            await asyncio.gather(calling, return_exceptions=True)

    with (
        almanaq.connect(tables, model=reader, cache=False, concurrency=8) as connection,
        serving(asgi_app(connection)) as address,
    ):
        asyncio.run(main(address))
        time.sleep(0.7)
        made = reader.calls
        time.sleep(0.3)
        assert reader.calls == made < 8_000


def test_it_is_mounted_without_ceremony(connection):
    from mcp import Client
    from starlette.applications import Starlette
    from starlette.routing import Mount

    async def main(address):
        async with Client(f"{address}/tools/mcp") as client:
            return len((await client.list_tools()).tools)

    app = Starlette(routes=[Mount("/tools", asgi_app(connection, hosts=None))])
    with serving(app) as address:
        assert asyncio.run(main(address)) == 8
