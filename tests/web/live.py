"""A server in a thread, and a client that may say what no honest one says."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from almanaq.web.app import create_app
from almanaq.web.gate import Access
from almanaq.web.serving import make_server
from almanaq.web.supervisor import bind_socket

WAIT = 60


def own_environment(folder: Path) -> dict[str, str]:
    """Write places.csv into a folder; return the environment of a server that keeps all it writes there."""
    folder.joinpath("places.csv").write_text("id,name,city\n1,Alba,Paris\n2,Brio,Lyon\n3,Coda,Paris\n")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ALMANAQ_", "OPENAI_"))}
    return kept | {"ALMANAQ_CACHE_DIR": str(folder / "cache"), "XDG_CONFIG_HOME": str(folder / "config")}


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Client:
    """Sends requests to a server; `headers` go along with each."""

    port: int
    headers: dict[str, str] = field(default_factory=dict)

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT)
        try:
            self.send(connection, method, path, body, **headers)
            response = connection.getresponse()
            return Reply(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()

    def send(self, connection, method, path, body=None, **headers):
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        sent = self.headers | ({"content-type": "application/json"} if body is not None else {}) | named
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        connection.request(method, path, body=data, headers=sent)

    def post(self, path: str, body: Any, **headers: str) -> Reply:
        return self("POST", f"/api/v1/{path}", body, **headers)

    def get(self, path: str, **headers: str) -> Reply:
        return self("GET", f"/api/v1/{path}", **headers)

    def ask(self, question: str, **more: Any) -> Any:
        reply = self.post("ask", {"question": question, **more})
        assert reply.status == 200, reply.body
        return reply.json()

    @contextmanager
    def open_stream(self, path: str, body: Any) -> Iterator[Iterator[tuple[str, Any]]]:
        """Events as they come; leaving the block closes the connection."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT)
        try:
            self.send(connection, "POST", f"/api/v1/{path}", body, accept="text/event-stream")
            response = connection.getresponse()
            assert response.status == 200, response.read()
            assert response.getheader("content-type").startswith("text/event-stream")
            yield _events(response)
        finally:
            if connection.sock is not None:
                connection.sock.close()
            response.close()
            connection.close()

    def stream(self, path: str, body: Any) -> list[tuple[str, Any]]:
        with self.open_stream(path, body) as events:
            return list(events)


def _events(response) -> Iterator[tuple[str, Any]]:
    name = ""
    for raw in response:
        line = raw.decode().rstrip("\n")
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))
        else:
            assert line == "" or line.startswith(":"), line


@contextmanager
def live(service, *, mounts=None, bench=None, limits=None, open_user=None, **access: Any) -> Iterator[Client]:
    """Serve in a thread; give a client of it."""
    with bind_socket("127.0.0.1", 0) as listening:
        port = listening.getsockname()[1]
        chosen = replace(Access(port=port), **access)
        ready = threading.Event()
        server = make_server(
            create_app(service, chosen, mounts=mounts, bench=bench, open_user=open_user), ready.set, limits
        )
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listening])))
        thread.start()
        try:
            assert ready.wait(WAIT)
            yield Client(port)
        finally:
            server.should_exit = True
            thread.join(WAIT)
            assert not thread.is_alive()
