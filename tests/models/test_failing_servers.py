"""Servers that fail now and then, or over one text: what can be answered is, and each failure names its cause."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import aiohttp
import pytest

import almanaq
from almanaq.errors import ModelCallError, ModelError
from almanaq.models.http import JsonServer, NoReply, Reply
from almanaq.suql.result import Result
from almanaq_bench.testing import StandInServer, replies_from
from almanaq_bench.testing.outcome import Outcome

Twist = Callable[[str, Any, Outcome], Outcome]
NOTES = [f"Stay {n}. " + ("A calm room." if n % 2 else "A loud street.") for n in range(12)]
QUERY = "SELECT id FROM stays WHERE answer(note, 'is it calm?') = 'Yes' ORDER BY id"
BAD = 3
HTML = Outcome(200, b"<html>Bad gateway</html>", {"content-type": "text/html"})


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("almanaq.models.retrying.seconds_to_wait", lambda *_, **__: 0.0)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-some-key")


def run(monkeypatch: pytest.MonkeyPatch, twist: Twist, **options: Any) -> tuple[Result, int]:
    """Return the result of the query, and how many requests the server got."""
    with StandInServer(replies_from(lambda text, _: "Yes" if "calm" in text else "No"), twist=twist) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        options = {"model": "openai:any", "cache": False} | options
        with almanaq.connect({"stays": {"id": list(range(12)), "note": NOTES}}, **options) as connection:
            return connection.sql(QUERY), len(server.ledger.requests)


@pytest.mark.parametrize("batch", [1, 2, 6, 12])
@pytest.mark.parametrize(
    ("failure", "cause"),
    [
        (Outcome.error(500, "no"), "HTTP 500"),
        (Outcome.error(504, "no"), "HTTP 504"),
        (HTML, "a reply that is not JSON"),
        (Outcome(200, b""), "a reply that is not JSON"),
        (Outcome(200, b"null"), "a reply that is not of the OpenAI protocol"),
        (Outcome(200, b"{}", cut=True), "the connection failed"),
        (Outcome(200, b" " * 5_000_000), "the reply is longer than 4,194,304 bytes"),
    ],
)
def test_one_text_that_fails_costs_no_other_its_answer(
    monkeypatch: pytest.MonkeyPatch, failure: Outcome, cause: str, batch: int
) -> None:
    def twist(_: str, request: Any, right: Outcome) -> Outcome:
        return failure if f"Stay {BAD}." in json.dumps(request) else right

    result, asked = run(monkeypatch, twist, batch=batch)
    assert result.rows == [(n,) for n in range(12) if n % 2 and n != BAD]
    assert [(each.row, each.reason) for each in result.unknown] == [(str(BAD), cause)]
    assert result.trace.physical_calls == asked
    assert asked <= 12 + 3 * batch


def test_a_bad_text_and_a_small_budget_make_no_more_calls_than_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def twist(_: str, request: Any, right: Outcome) -> Outcome:
        asked.append(request)
        return Outcome.error(500, "no") if f"Stay {BAD}." in json.dumps(request) else right

    with pytest.raises(almanaq.BudgetExceeded):
        run(monkeypatch, twist, batch=6, max_calls=8)
    assert len(asked) <= 8


def test_a_server_that_takes_too_long_for_many_texts_is_asked_about_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALMANAQ_TIMEOUT", "2")

    def twist(_: str, request: Any, right: Outcome) -> Outcome:
        return replace(right, wait=20.0 if json.dumps(request["messages"]).count("Stay ") > 3 else 0.0)

    result, _ = run(monkeypatch, twist, batch=6)
    assert (len(result.rows), result.trace.unknown_calls) == (6, 0)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("batch", [1, 6])
@pytest.mark.parametrize(
    "first",
    [
        *(HTML, Outcome(200, b""), Outcome(200, b"null"), Outcome(200, b"[1, 2]"), Outcome(200, b'{"choices": {}}')),
        *(Outcome(200, b'{"choices": [{"message": %s}]}' % message) for message in (b"null", b'"Yes"')),
    ],
)
@pytest.mark.parametrize("wait", [0.0, 0.2])
def test_an_odd_reply_that_comes_first_is_asked_for_again(
    monkeypatch: pytest.MonkeyPatch, first: Outcome, wait: float, batch: int
) -> None:
    replies = iter([replace(first, wait=wait)])
    result, _ = run(monkeypatch, lambda _path, _request, right: next(replies, right), batch=batch)
    assert (len(result.rows), result.trace.unknown_calls) == (6, 0)


@pytest.mark.parametrize("batch", [1, 6])
def test_where_nothing_speaks_the_protocol_the_address_is_named(monkeypatch: pytest.MonkeyPatch, batch: int) -> None:
    with pytest.raises(ModelError, match="does not speak the OpenAI protocol: set OPENAI_BASE_URL") as caught:
        run(monkeypatch, lambda *_: HTML, batch=batch)
    assert not isinstance(caught.value, ModelCallError)


@pytest.mark.parametrize("inside", [False, True])
def test_bytes_that_are_no_text_matter_where_they_are_read(monkeypatch: pytest.MonkeyPatch, inside: bool) -> None:
    def twist(_: str, request: Any, right: Outcome) -> Outcome:
        if f"Stay {BAD}." not in json.dumps(request):
            return right
        quotes = b'quotes\\": ['
        assert quotes in right.body
        elsewhere = right.body.replace(b"{", b'{"x": "\xff", ', 1)
        return replace(right, body=right.body.replace(quotes, quotes + b'\\"\xe9\\"') if inside else elsewhere)

    result, _ = run(monkeypatch, twist, batch=1)
    assert result.trace.unknown_calls == inside
    assert all(each.reason == "a reply that is not valid UTF-8" for each in result.unknown)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("batch", "wait"), [(1, 0.02), (6, 0.02), (6, 0.5)])
@pytest.mark.parametrize(
    ("refusal", "most"),
    [
        (Outcome(404, b"404 page not found"), 4),
        (Outcome.error(404, "Invalid URL (POST /chat/completions)"), 4),
        (Outcome.error(401, "Incorrect API key"), 4),
        (Outcome.error(403, "no"), 8),
        (Outcome(200, HTML.body, HTML.headers), 8),
    ],
)
def test_a_wrong_address_or_key_costs_few_requests(
    monkeypatch: pytest.MonkeyPatch, refusal: Outcome, most: int, batch: int, wait: float
) -> None:
    asked: list[object] = []
    stays = {"id": list(range(200)), "note": [f"{note} {n}" for n, note in enumerate(NOTES * 17)][:200]}

    def twist(_path: str, request: Any, _right: Outcome) -> Outcome:
        asked.append(request)
        return replace(refusal, wait=wait)

    with StandInServer(twist=twist) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        with (
            almanaq.connect({"stays": stays}, model="openai:any", cache=False, batch=batch) as connection,
            pytest.raises(ModelError, match="set OPENAI_"),
        ):
            connection.sql(QUERY)
    # What refuses slowly is asked for all texts once, as what replies slowly is.
    assert len(asked) <= (most if wait < 0.25 else 200 / batch + most)


@pytest.mark.parametrize(("scheme", "most"), [("http", 4), ("https", 20)])
def test_servers_of_one_machine_are_not_run_over(monkeypatch: pytest.MonkeyPatch, scheme: str, most: int) -> None:
    """Their queue of connections is short, and what does not fit waits for long."""
    opening, reached = 0, 0

    async def open_connection(*_: object, **__: object) -> None:
        nonlocal opening, reached
        opening += 1
        reached = max(reached, opening)
        await asyncio.sleep(0.01)
        opening -= 1
        raise aiohttp.ClientConnectionError("closed")

    monkeypatch.setattr(aiohttp.TCPConnector, "_create_connection", open_connection)
    found = asyncio.run(_ask_all(f"{scheme}://127.0.0.1:9", 20))
    assert all(isinstance(each, NoReply) for each in found)
    assert reached == most


async def _ask_all(url: str, count: int) -> list[object]:
    server = JsonServer(url, {}, timeout=60)
    found = await asyncio.gather(*(server.post("/x", b"{}") for _ in range(count)), return_exceptions=True)
    await server.close()
    return list(found)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("backlog", [1, 5])
def test_a_server_with_a_short_queue_answers_all(backlog: int) -> None:
    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                threading.Thread(target=_answer_all, args=(client,), daemon=True).start()
                time.sleep(0.01)

    with socket.create_server(("127.0.0.1", 0), backlog=backlog) as listener:
        threading.Thread(target=serve, daemon=True).start()
        found = asyncio.run(_ask_all(f"http://127.0.0.1:{listener.getsockname()[1]}", 24))
        listener.shutdown(socket.SHUT_RDWR)
    assert all(isinstance(each, Reply) for each in found)


def _answer_all(client: socket.socket) -> None:
    with client:
        while b"\r\n\r\n" in client.recv(65_536):
            time.sleep(0.01)
            client.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}")


def test_a_call_takes_a_free_connection_while_others_cannot_be_opened() -> None:
    """A server of one thread, which accepts no other connection before the first is closed."""

    async def ask(url: str) -> list[Reply]:
        server = JsonServer(url, {}, timeout=60)
        found = [await server.post("/x", b"{}")]
        stuck = [asyncio.create_task(server.post("/x", b"{}")) for _ in range(12)]
        async with asyncio.timeout(5):
            await asyncio.wait(stuck, return_when=asyncio.FIRST_COMPLETED)
            found += [await server.post("/x", b"{}") for _ in range(3)]
        for each in stuck:
            each.cancel()
        await asyncio.gather(*stuck, return_exceptions=True)
        await server.close()
        return found

    with socket.create_server(("127.0.0.1", 0), backlog=1) as listener:
        threading.Thread(target=lambda: _answer_all(listener.accept()[0]), daemon=True).start()
        assert len(asyncio.run(ask(f"http://127.0.0.1:{listener.getsockname()[1]}"))) == 4
