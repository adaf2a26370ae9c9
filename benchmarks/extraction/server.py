"""A chat server that takes as little of the machine as it can: `python -m benchmarks.extraction.server LATENCY`.

Prints its port. `GET /count` gives how many chat requests it has had.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys

NUMBER = re.compile(rb"case number (\d+)")


class Chat(asyncio.Protocol):
    """One connection; requests come one after another."""

    calls = 0

    def __init__(self, latency: float) -> None:
        self._latency, self._held = latency, b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep where replies go."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer each request that is whole."""
        self._held += data
        while (end := self._held.find(b"\r\n\r\n")) >= 0:
            head = self._held[:end].lower()
            found = re.search(rb"content-length: *(\d+)", head)
            length = end + 4 + (int(found[1]) if found else 0)
            if len(self._held) < length:
                return
            body, self._held = self._held[end + 4 : length], self._held[length:]
            if head.startswith(b"get"):
                self._send(str(Chat.calls).encode())
                continue
            Chat.calls += 1
            asyncio.get_running_loop().call_later(
                self._latency, self._send, _reply(NUMBER.findall(body), b"item1" in body)
            )

    def _send(self, content: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(content)
            self._transport.write(head + content)


def _reply(numbers: list[bytes], several: bool) -> bytes:
    """Return the reply to a request: an answer, or one for each of the texts that came together."""
    answers = [{"value": number.decode(), "quotes": []} for number in numbers or [b"0"]]
    content = json.dumps({f"item{n}": each for n, each in enumerate(answers, 1)} if several else answers[0])
    message = {"role": "assistant", "content": content}
    choices = [{"index": 0, "finish_reason": "stop", "message": message}]
    usage = {"prompt_tokens": 300, "completion_tokens": 12, "total_tokens": 312}
    said = {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": choices, "usage": usage}
    return json.dumps(said).encode()


async def main(latency: float) -> None:
    """Serve until the process is ended."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Chat(latency), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1])))
