"""`almanaq mcp`: stdout holds messages only, several copies share a source, and settings for clients are printed."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys

import duckdb
import pytest
from typer.testing import CliRunner

import almanaq
from almanaq.cli.app import app
from almanaq.cli.serve import CLIENTS
from almanaq.errors import UsageError

START = "import almanaq.cli, sys; {noise}; sys.argv = ['almanaq', 'mcp', *sys.argv[1:]]; sys.exit(almanaq.cli.main())"
NOISE = (
    "import warnings, os, almanaq.mcp.tools as t; "
    "t.Tools._fit_record = lambda *_, **__: (print('printed'), os.write(1, b'raw'), warnings.warn('warned'), 1 / 0)"
)


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "places.duckdb"
    with duckdb.connect(str(path)) as writer:
        writer.execute("CREATE TABLE places (id INTEGER PRIMARY KEY, name TEXT)")
        writer.execute("INSERT INTO places VALUES (1, 'Lamplight'), (2, 'Harbour')")
    return str(path)


def message(method, number=None, **params):
    numbered = {} if number is None else {"id": number}
    return json.dumps({"jsonrpc": "2.0", **numbered, "method": method, "params": params})


def hello(version="2025-06-18"):
    return message("initialize", 1, protocolVersion=version, capabilities={}, clientInfo={"name": "t", "version": "0"})


def test_stdout_holds_messages_only_whatever_a_tool_prints_warns_of_or_dies_of(source):
    called = message("tools/call", 2, name="run_query", arguments={"suql": "SELECT 1 AS one"})
    listed = message("tools/list", 3)
    process = subprocess.Popen(
        [sys.executable, "-c", START.format(noise=NOISE), source],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    with process:
        lines = [hello(), message("notifications/initialized"), "this is no message", called, listed]
        process.stdin.write("\n".join(lines) + "\n")
        process.stdin.flush()
        answers = {}
        while 3 not in answers or 2 not in answers:
            answer = json.loads(process.stdout.readline())
            assert answer["jsonrpc"] == "2.0"
            answers[answer.get("id")] = answer
        process.stdin.close()
        assert process.stdout.read() == ""
        said = process.stderr.read()
    assert process.returncode == 0
    assert answers[2]["result"]["isError"] is True
    assert len(answers[3]["result"]["tools"]) == 8
    assert "ZeroDivisionError" in said
    assert "printed" in said


def test_two_copies_over_one_file_while_it_is_open_for_reading_elsewhere(source):
    from mcp import Client, StdioServerParameters

    from almanaq.mcp import make_server

    server = StdioServerParameters(command=sys.executable, args=["-m", "almanaq", "mcp", source, "--no-cache"])

    async def both():
        async with Client(server, mode="legacy") as one, Client(make_server(connection)) as other:
            called = [c.call_tool("run_query", {"suql": "SELECT name FROM places ORDER BY id"}) for c in (one, other)]
            return [result.structured_content["rows"] for result in await asyncio.gather(*called)]

    with duckdb.connect(source, read_only=True), almanaq.connect(source, cache=False) as connection:
        assert asyncio.run(both()) == [[["Lamplight"], ["Harbour"]]] * 2


def test_a_source_that_is_not_there_ends_it_with_a_message(tmp_path):
    ended = subprocess.run(
        [sys.executable, "-m", "almanaq", "mcp", str(tmp_path / "none.duckdb")],
        input="", capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "none.duckdb" in ended.stderr


@pytest.mark.parametrize("client", [client.name for client in CLIENTS])
def test_the_settings_of_a_client_start_the_server(client, source, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    run = CliRunner().invoke(
        app, ["mcp", source, "--print-config", client, "--model", "openai:m", "--max-calls", "50", "--no-cache"],
        catch_exceptions=False,
    )  # fmt: skip
    assert run.exit_code == 0
    assert "sk-very-secret" not in run.output
    settings = json.loads(run.stdout)
    ((_, servers),) = settings.items()
    server = servers["almanaq"]
    assert server["args"] == ["mcp", source, "--model", "openai:m", "--max-calls", "50", "--no-cache"]
    assert server["env"] == {"OPENAI_API_KEY": "YOUR-KEY", "OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}


def test_an_unknown_client_and_a_missing_source_are_wrong_usage(source):
    with pytest.raises(UsageError, match="did you mean 'cursor'"):
        CliRunner().invoke(app, ["mcp", source, "--print-config", "curser"], catch_exceptions=False)
    with pytest.raises(UsageError, match="name the source once"):
        CliRunner().invoke(app, ["mcp"], catch_exceptions=False)
    with pytest.raises(UsageError, match="name the source once"):
        CliRunner().invoke(app, ["mcp", source, "--db", source], catch_exceptions=False)
