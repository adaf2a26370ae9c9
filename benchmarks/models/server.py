"""A stand-in server in a process of its own, so that its work is not counted as a client's."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

from almanaq_bench.testing import Faults, StandInServer

REPLY = '{"value": "Yes", "quotes": []}'


def echo(request: Mapping[str, Any]) -> str:
    """Reply with the number of the request, so that each reply can be told from every other."""
    text = next(str(message["content"]) for message in request["messages"] if message["role"] == "user")
    number = text.partition("request ")[2].split()
    return json.dumps({"value": number[0] if number else None, "quotes": []})


class Server:
    """A handle on the server's process."""

    def __init__(self, url: str, pipe: Connection) -> None:
        self.url, self._pipe = url, pipe

    def ledger(self) -> dict[str, Any]:
        """Return what the server has counted so far."""
        self._pipe.send("ledger")
        found: dict[str, Any] = self._pipe.recv()
        return found


@contextmanager
def serving(**faults: Any) -> Iterator[Server]:
    """Serve with these faults until the block ends."""
    context = multiprocessing.get_context("spawn")
    mine, its = context.Pipe()
    process = context.Process(target=_serve, args=(its, faults), daemon=True)
    process.start()
    try:
        yield Server(mine.recv(), mine)
    finally:
        mine.send("stop")
        process.join(10)


def _serve(pipe: Connection, faults: Mapping[str, Any]) -> None:
    with StandInServer(echo, faults=Faults(**faults), keep_requests=False) as server:
        pipe.send(server.url)
        while pipe.recv() == "ledger":
            ledger = server.ledger
            pipe.send(
                {
                    "calls": ledger.calls,
                    "answered": ledger.answered,
                    "input_tokens": ledger.input_tokens,
                    "output_tokens": ledger.output_tokens,
                    "sent": ledger.sent,
                    "outcomes": dict(ledger.outcomes),
                }
            )
