"""Replies that are shown while they are written: what a consumer gets, and how a server's stream of them is read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from almanaq.models.address import SHORTEST, without
from almanaq.models.protocols import PieceSink

_AGAIN = "\n\n(The connection broke off there; the whole reply:)\n\n"


class StreamedReply:
    """Gives the text of a reply piece by piece, without white space around it.

    A call that is made anew goes on where the first one broke off, so long as it says the same.
    """

    def __init__(self, give: Callable[[str], None]) -> None:
        self._give = give
        self._text = self._shown = ""

    def begin(self) -> None:
        """A server begins to write, for the first time or again."""
        self._text = ""

    def add(self, piece: str) -> None:
        """A piece was written."""
        self._text += piece
        self._show(self._text.strip())

    def end(self, text: str) -> None:
        """The whole reply is there, also where nothing of it was streamed."""
        text = text.strip()
        if text.startswith(self._shown):
            self._show(text)
        else:
            self._give(_AGAIN + text)

    def _show(self, text: str) -> None:
        if len(text) > len(self._shown) and text.startswith(self._shown):
            self._give(text[len(self._shown) :])
            self._shown = text


class ChatStream:
    """Reads the server-sent events of a chat reply, and hands its text on without the secrets a server may repeat."""

    def __init__(self, sink: PieceSink, secrets: tuple[str, ...]) -> None:
        self._sink, self._secrets = sink, tuple(secret for secret in secrets if len(secret) >= SHORTEST)
        self._left = b""
        self._texts: list[str] = []
        self._refusals: list[str] = []
        self._given = 0
        self._finish: str | None = None
        self._usage: Any = None
        self._error: Any = None
        self.ended = False
        sink.begin()

    def feed(self, data: bytes) -> None:
        """Take some bytes of the reply's body."""
        *lines, self._left = (self._left + data).split(b"\n")
        for line in lines:
            self._line(line.strip())

    def content(self) -> Mapping[str, Any]:
        """Return the reply as one that was not streamed would be; `choices` is absent where the stream broke off."""
        if self._error is not None:
            return {"error": self._error}
        usage = {} if self._usage is None else {"usage": self._usage}
        if self._finish is None and not self.ended:
            return usage
        message = {"role": "assistant", "content": self._text(), "refusal": "".join(self._refusals) or None}
        return {"choices": [{"message": message, "finish_reason": self._finish or "stop"}], **usage}

    def _line(self, line: bytes) -> None:
        if not line.startswith(b"data:"):
            return
        data = line.removeprefix(b"data:").strip()
        if data == b"[DONE]":
            self.ended = True
            return
        try:
            event = json.loads(data)
            self._usage = event.get("usage") or self._usage
            self._error = event.get("error") or self._error
            for choice in (event.get("choices") or ())[:1]:
                self._delta(choice.get("delta") or {})
                self._finish = choice.get("finish_reason") or self._finish
        except (ValueError, RecursionError, AttributeError, TypeError):
            self._error = self._error or "an event of the stream is no JSON of the protocol"

    def _delta(self, delta: Mapping[str, Any]) -> None:
        if isinstance(delta.get("refusal"), str):
            self._refusals.append(delta["refusal"])
        if isinstance(delta.get("content"), str):
            self._texts.append(delta["content"])
            text = self._text()
            end = len(text) - self._beginning_of_a_secret(text)
            if end > self._given:
                self._sink.add(text[self._given : end])
                self._given = end

    def _text(self) -> str:
        return without("".join(self._texts), self._secrets)

    def _beginning_of_a_secret(self, text: str) -> int:
        """Return how many characters at the end of a text may be those of a secret that goes on."""
        begun = (secret[:n] for secret in self._secrets for n in range(1, len(secret)))
        return max((len(start) for start in begun if text.endswith(start)), default=0)
