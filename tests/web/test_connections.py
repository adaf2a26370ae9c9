"""Clients that hold what they open: nobody who sends a whole request is kept out by those who do not."""

from __future__ import annotations

import contextlib
import logging
import random
import socket
import time

import pytest
from tests.web.conftest import CANDLES, places
from tests.web.live import live
from tests.web.test_work import until

import almanaq
from almanaq.testing import FunctionModel
from almanaq.web.service import open_service
from almanaq.web.serving import ConnectionLimits

HALVES = [
    b"",
    b"G",
    b"GET /healthz HTTP/1.1\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: ",
    b"POST /api/v1/sql HTTP/1.1\r\nHost: 127.0.0.1\r\n",
]


@pytest.fixture
def start():
    with contextlib.ExitStack() as stack:

        def run(tables=None, model="local", **limits):
            source = places() if tables is None else tables
            connection = stack.enter_context(almanaq.connect(source, model=model, embedder="lexical", cache=False))
            service = open_service(connection, "places", store_mb=None)
            stack.callback(service.store.close)
            client = stack.enter_context(live(service, limits=ConnectionLimits(**limits), token="correct-horse"))
            client.headers["authorization"] = "Bearer correct-horse"
            return client

        yield run


@pytest.fixture
def held():
    """Opens connections that send a part of a request, and closes them at the end."""
    opened = []

    def open_half(port, half):
        made = socket.create_connection(("127.0.0.1", port), timeout=30)
        made.sendall(half)
        opened.append(made)
        return made

    yield open_half
    for each in opened:
        each.close()


def is_well(client):
    return client("GET", "/healthz").status == 200


def ended(connection):
    """Whether the server has closed a connection, reading what it said last."""
    connection.settimeout(0.05)
    try:
        while connection.recv(1000):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        return True
    return True


@pytest.mark.parametrize(("in_all", "of_address"), [(12, 100), (100, 12)])
def test_half_requests_keep_nobody_out(start, held, in_all, of_address):
    client = start(in_all=in_all, of_address=of_address)
    halves = []
    for number in range(60):
        halves.append(held(client.port, HALVES[number % len(HALVES)]))
        assert is_well(client)
    until(lambda: sum(not ended(each) for each in halves) <= 12)
    # Those that came last are left: whoever waits longest gives way.
    assert not ended(halves[-1])


def test_what_is_worked_on_never_gives_way(start, held):
    client = start(model=FunctionModel(lambda *_: "Yes", latency=2.0), in_all=6, of_address=6)
    with client.open_stream("sql", {"suql": CANDLES}) as events:
        assert next(events)[0] == "start"
        for number in range(30):
            held(client.port, HALVES[number % len(HALVES)])
        assert is_well(client)
        assert list(events)[-1][0] == "response"


@pytest.mark.parametrize("half", HALVES)
def test_a_head_has_its_time(start, held, half):
    client = start(head=0.5)
    connection = held(client.port, half)
    until(lambda: ended(connection))
    assert is_well(client)


def test_a_head_that_comes_byte_by_byte_has_no_more_time(start, held):
    client = start(head=0.5)
    connection = held(client.port, b"GET / HTTP/1.1\r\nX: ")
    sent = 0
    with contextlib.suppress(ConnectionError):
        while sent < 600:
            connection.sendall(b"a")
            sent += 1
            time.sleep(0.05)
    assert sent < 600


def test_a_body_has_its_time(start, held):
    client = start(body=0.5)
    head = (
        f"POST /api/v1/sql HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\nAuthorization: Bearer correct-horse\r\n"
        "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
    )
    connection = held(client.port, head.encode())
    until(lambda: ended(connection))
    assert is_well(client)


def test_a_client_that_reads_nothing_is_left_and_a_slow_one_is_served(start, held):
    chance = random.Random(1)
    wide = {"t": {"n": list(range(20)), "s": [chance.randbytes(400_000).hex() for _ in range(20)]}}
    client = start(wide, reading=1.0)
    record = client.post("sql", {"suql": "SELECT n, s FROM t", "max_rows": 40}).json()
    path = f"/api/v1/answers/{record['id']}/rows?format=csv"
    whole = int(client("GET", path).headers["content-length"])
    head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\nAuthorization: Bearer correct-horse\r\n\r\n"
    for reads in (False, True):
        connection = held(client.port, head.encode())
        connection.recv(100)
        if not reads:
            time.sleep(3)
        taken = 0
        with contextlib.suppress(ConnectionError, TimeoutError):
            while taken < whole and (part := connection.recv(1_000_000)):
                taken += len(part)
                if reads:
                    time.sleep(0.01)
        assert (taken >= whole) == reads


def test_what_is_closed_is_told_once_a_minute_in_one_line(start, held, caplog):
    client = start(in_all=10)
    with caplog.at_level(logging.WARNING, logger="almanaq.web"):
        for number in range(200):
            held(client.port, HALVES[number % len(HALVES)])
        assert is_well(client)
        until(lambda: caplog.records)
        for number in range(200):
            held(client.port, HALVES[number % len(HALVES)])
        assert is_well(client)
        time.sleep(2.5)
    assert len(caplog.records) == 1
    assert "to make room: too many in all" in caplog.records[0].getMessage()
