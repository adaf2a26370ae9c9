"""One HTTP reply of a stand-in server."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Outcome:
    """One HTTP reply.

    Attributes:
        cut: the connection breaks off in its middle.
        raw: gives the bytes of the whole reply, head included, in the place of the other attributes; they are sent for
            as long as somebody reads.
        keeps: with `raw`, whether the connection stays open; `pause`: seconds after each of its pieces.
        wait: seconds before it.
    """

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: bool = False
    raw: Callable[[], Iterator[bytes]] | None = None
    keeps: bool = False
    pause: float = 0.0
    wait: float = 0.0

    @classmethod
    def of(cls, content: object, *, cut: bool = False) -> Self:
        """Return the reply that carries `content` as JSON."""
        return cls(200, json.dumps(content).encode(), cut=cut)

    def as_stream(self, *, usage: bool, pause: float) -> Self:
        """Return the chat reply as server-sent events, a word in each, and its usage in the last where it is wanted."""
        content = json.loads(self.body)
        choice = content["choices"][0]
        words = re.findall(r"\s*\S+\s*$|\s*\S+", choice["message"]["content"]) or [choice["message"]["content"]]
        if self.cut:
            words = words[: max(1, len(words) // 2)]
        head = {key: content[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
        events: list[Any] = [head | {"choices": [{"index": 0, "delta": {"content": word}}]} for word in words]
        if not self.cut:
            events.append(head | {"choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]})
            events += [head | {"choices": [], "usage": content["usage"]}] if usage else []
        sent = [f"data: {json.dumps(event)}\n\n".encode() for event in events]
        start = b"HTTP/1.1 200 -\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        last = [] if self.cut else [b"data: [DONE]\n\n"]
        chunks = [f"{len(part):x}\r\n".encode() + part + b"\r\n" for part in [*sent, *last]]
        pieces = [start, *chunks, *([] if self.cut else [b"0\r\n\r\n"])]
        return replace(self, raw=lambda: iter(pieces), keeps=not self.cut, pause=pause)

    @classmethod
    def error(cls, status: int, message: str, headers: Mapping[str, str] | None = None) -> Self:
        """Return an error in the protocol's form."""
        body = json.dumps({"error": {"message": message, "type": "error", "code": None}}).encode()
        return cls(status, body, headers or {})
