"""`almanaq serve` as it is started: its address, its refusals, its end."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request

import pytest
from tests.web.live import Client

from almanaq.cli.serve import serve
from almanaq.errors import UsageError
from almanaq.web.supervisor import bind_socket
from almanaq_bench.testing import StandInServer


@pytest.fixture
def environment(tmp_path):
    foreign = ("ALMANAQ_", "OPENAI_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return kept | {"ALMANAQ_CACHE_DIR": str(tmp_path / "cache"), "XDG_CONFIG_HOME": str(tmp_path / "config")}


@pytest.fixture
def start(environment, tmp_path):
    begun = []

    def run(*arguments):
        process = subprocess.Popen(
            [sys.executable, "-m", "almanaq", "serve", *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=tmp_path,
        )  # fmt: skip
        begun.append(process)
        return process

    yield run
    for process in begun:
        process.kill()
        process.communicate()


def address(process):
    line = process.stdout.readline()
    found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/(\?token=\S+)?\n", line)
    assert found, line + process.stderr.read()
    return Client(int(found[1]))


@pytest.fixture
def places(tmp_path):
    folder = tmp_path / "places"
    folder.mkdir()
    folder.joinpath("places.csv").write_text("id,name,city\n1,Alba,Paris\n2,Brio,Lyon\n3,Coda,Paris\n")
    return str(folder)


def test_it_answers_at_the_printed_address_and_ends_at_ctrl_c(start, places):
    process = start(places, "--port", "0", "--token", "correct-horse-battery")
    line = process.stdout.readline().strip()
    assert line.endswith("/?token=correct-horse-battery")
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    with opener.open(line) as page:
        assert page.url == line.partition("?")[0]
        assert b"almanaq" in page.read()
    with opener.open(page.url + "api/v1/tables") as tables:
        assert json.load(tables)["tables"][0]["name"] == "places"
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 0
    assert process.stdout.read() == ""
    assert process.stderr.read() == ""


def test_it_ends_in_time_while_a_question_is_worked_on(start, places, environment):
    def slow(request):
        time.sleep(4)
        return "{}"

    with StandInServer(slow) as model:
        environment |= {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "k"}
        process = start("--db", places, "--port", "0", "--model", "openai:any", "--no-store", "--no-cache")
        client = address(process)
        replies = []
        asking = threading.Thread(target=lambda: replies.append(_status(client)))
        asking.start()
        while not model.ledger.calls:
            time.sleep(0.02)
        started = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        assert time.monotonic() - started < 10
        asking.join()
    assert process.stderr.read() == ""
    assert replies == [503]


def _status(client):
    return client.post("ask", {"question": "Which places are in Paris?"}).status


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"source": "places", "host": "0.0.0.0"}, "--token"),
        ({"source": "places", "allow_host": ["data.example"]}, "--token"),
        ({}, "name the source once"),
        ({"source": "places", "db": "places"}, "name the source once"),
        ({"source": "places", "token": "short"}, "at least 8"),
    ],
)
def test_what_it_refuses(given, message):
    with pytest.raises(UsageError, match=message):
        serve(**given)


def test_a_port_that_is_taken_is_told():
    with bind_socket("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        taken.listen()
        with pytest.raises(UsageError, match=f"--port {port}"):
            bind_socket("127.0.0.1", port)
