"""StandInServer: a real HTTP server of the OpenAI protocol on the loopback, with faults, and a ledger of its own."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from almanaq.models.protocols import Price
from almanaq_bench.testing.batches import Batches
from almanaq_bench.testing.faults import Faults
from almanaq_bench.testing.hostile import HOSTILE
from almanaq_bench.testing.outcome import Outcome
from almanaq_bench.testing.token_logprobs import tokens_of

Request = Mapping[str, Any]
ReplyFunction = Callable[[Request], "str | Mapping[str, object]"]
Twist = Callable[[str, Request, Outcome], Outcome]
"""Makes what is sent of a path, a request (`{}` of a GET) and the right reply, which of an unknown path is a 404."""


@dataclass
class Ledger:
    """What the server was asked and what it charged: the truth that a client's own count is held against.

    Attributes:
        calls: requests for chat or embeddings that arrived, whatever became of them.
        answered: those that got a whole and right reply.
        outcomes: how many calls had each fault or none ("answered"); and how many of these their clients "abandoned".
        input_tokens, output_tokens: of all replies that carried a usage; whitespace-separated words.
        sent: bytes of replies that clients took.
        requests: the body of every chat request, in order of arrival, when the server keeps them.
        embedded: the body of every request for embeddings, likewise.
        heads: the path and the headers of every request, likewise.
    """

    calls: int = 0
    answered: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    sent: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    requests: list[dict[str, Any]] = field(default_factory=list)
    embedded: list[dict[str, Any]] = field(default_factory=list)
    heads: list[tuple[str, Mapping[str, str]]] = field(default_factory=list)

    def money(self, price: Price) -> float:
        """Return what the tokens cost at a price, in dollars.

        >>> Ledger(input_tokens=2_000_000, output_tokens=1_000_000).money(Price(0.5, 2.0))
        3.0
        """
        return price.of(self.input_tokens, self.output_tokens)


class StandInServer:
    """A server of `/v1/chat/completions`, `/v1/embeddings`, `/v1/models`, `/v1/files` and `/v1/batches`, in a thread.

    Args:
        reply: a chat request's JSON to the text of the reply, or to an object that is sent as JSON.
        faults: what goes wrong, and how often; see Faults.
        models: the names it knows; None knows every name.
        key: the only key it accepts; None accepts any.
        refuses: parameters that it answers with status 400, as servers without them do.
        hidden_tokens: tokens of reasoning that each reply is charged for and does not show.
        charges_abandoned: charge for a reply whose client went away meanwhile; else the work on it is stopped.
        probabilities: of "Yes", "No" and "null" as the value of a reply, for requests that ask for log probabilities;
            None: it reports none.
        pause: seconds between two words of a reply that is streamed; None: it streams nothing, whatever is asked.
        batch_seconds: how long a batch takes.
        twist: what it sends instead of right replies, as a server with ways of its own.

    Use as a context manager; `url` is the base URL for a client.

    >>> import json, urllib.request
    >>> body = json.dumps({"model": "any", "messages": [{"role": "user", "content": "Is Rex friendly?"}]})
    >>> with StandInServer(lambda request: "Yes.") as server:
    ...     path, headers = server.url + "/chat/completions", {"content-type": "application/json"}
    ...     with urllib.request.urlopen(urllib.request.Request(path, body.encode(), headers)) as got:
    ...         print(json.load(got)["choices"][0]["message"]["content"])
    Yes.
    >>> server.ledger.calls, server.ledger.input_tokens, server.ledger.output_tokens
    (1, 3, 1)
    """

    def __init__(
        self,
        reply: ReplyFunction = lambda _: '{"value": null, "quotes": []}',
        *,
        faults: Faults | None = None,
        models: tuple[str, ...] | None = None,
        key: str | None = None,
        refuses: tuple[str, ...] = (),
        hidden_tokens: int = 0,
        keep_requests: bool = True,
        charges_abandoned: bool = False,
        pause: float | None = 0.0,
        probabilities: Callable[[Request], Mapping[str, float]] | None = None,
        batch_seconds: float = 0.0,
        twist: Twist | None = None,
    ) -> None:
        self._reply, self._faults = reply, faults or Faults()
        self._models, self._key, self._refuses, self._hidden = models, key, refuses, hidden_tokens
        self._probabilities, self._twist = probabilities, twist or (lambda _path, _request, right: right)
        self._keep, self._charges_abandoned, self._pause = keep_requests, charges_abandoned, pause
        self.ledger, self.batches = Ledger(), Batches(batch_seconds)
        self._begun: set[str] = set()
        self.url = ""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="stand-in-server", daemon=True)
        self._started = threading.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    def __enter__(self) -> Self:
        self._thread.start()
        self._started.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop serving and close every connection."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._main())
        self._loop.close()

    async def _main(self) -> None:
        self._stop = asyncio.Event()
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0, backlog=1024, limit=2**24)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        self._started.set()
        await self._stop.wait()
        server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task: asyncio.Task[None] = asyncio.current_task()  # type: ignore[assignment]
        self._tasks.add(task)
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                while await self._exchange(reader, writer):
                    pass
        finally:
            self._tasks.discard(task)
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Serve one request; False when the connection is to be closed."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        start, *lines = head.split("\r\n")
        method, path, _ = start.split(" ", 2)
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        if self._keep:
            self.ledger.heads.append((path, headers))
        outcome = await self._outcome(method, path, headers, body, reader.at_eof)
        if outcome.wait:
            await asyncio.sleep(outcome.wait)
        if outcome.raw is not None:
            for piece in outcome.raw():
                writer.write(piece)
                await writer.drain()
                self.ledger.sent += len(piece)
                if outcome.pause:
                    await asyncio.sleep(outcome.pause)
            return outcome.keeps
        payload = outcome.body
        fields = {"content-type": "application/json", "content-length": len(payload), **outcome.headers}
        written = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        reply_head = f"HTTP/1.1 {outcome.status} -\r\n{written}\r\n"
        writer.write(reply_head.encode() + (payload[: len(payload) // 2] if outcome.cut else payload))
        await writer.drain()
        self.ledger.sent += len(payload)
        return not outcome.cut

    async def _outcome(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes, gone: Callable[[], bool]
    ) -> Outcome:
        path, _, query = path.partition("?")
        if method == "GET" and path == "/v1/models":
            names = self._models or ()
            listed = {"object": "list", "data": [{"id": name, "object": "model"} for name in names]}
            return self._twist(path, {}, Outcome.of(listed))
        if path.startswith(("/v1/files", "/v1/batches")):

            async def answer(line: bytes) -> Outcome:
                return await self._outcome("POST", "/v1/chat/completions", headers, line, lambda: False)

            return self._twist(path, {}, await self.batches.serve(method, path, query, body, answer))
        request = json.loads(body) if body else {}
        if method != "POST" or path not in ("/v1/chat/completions", "/v1/embeddings"):
            return self._twist(path, request, Outcome.error(404, f"no such path: {path}"))
        self.ledger.calls += 1
        refusal = self._refusal(request, headers)
        if refusal is not None:
            return refusal
        if path == "/v1/embeddings":
            return self._twist(path, request, self._embeddings(request))
        if self._keep:
            self.ledger.requests.append(request)
        fault = self._faults.draw()
        self.ledger.outcomes[fault or "answered"] += 1
        await self._faults.wait(fault)
        if gone() and not self._charges_abandoned:
            self.ledger.outcomes["abandoned"] += 1
            return Outcome.error(499, "the client went away")
        if fault is not None and fault in HOSTILE:
            # What a call of it is charged, nobody knows: the ledger holds what is right.
            return HOSTILE[fault](self._chat(request, fault))
        outcome = self._faults.outcome(fault) if fault else None
        if outcome is not None:
            return outcome
        right = self._chat(request, fault)
        made = self._twist(path, request, right)
        if made is right and request.get("stream") and self._pause is not None:
            usage = bool(request.get("stream_options", {}).get("include_usage"))
            return made.as_stream(usage=usage, pause=self._pause)
        return made

    def _refusal(self, request: Request, headers: Mapping[str, str]) -> Outcome | None:
        if self._key is not None and headers.get("authorization") != f"Bearer {self._key}":
            return Outcome.error(401, "Incorrect API key provided")
        if self._models is not None and request.get("model") not in self._models:
            return Outcome.error(404, f"The model {request.get('model')!r} does not exist")
        refused = [name for name in self._refuses if name in request]
        return Outcome.error(400, f"Unsupported parameter: {refused[0]!r}") if refused else None

    def _chat(self, request: Request, fault: str | None) -> Outcome:
        reply = self._reply(request)
        text = reply if isinstance(reply, str) else json.dumps(reply)
        cut = text[: len(text) // 2]
        spoilt = {"off_schema": '{"unexpected": true}', "not_json": "I would say: yes!", "empty": "", "length": cut}
        text = spoilt.get(fault or "", text)
        read = sum(len(str(message["content"]).split()) for message in request["messages"])
        written = len(text.split()) + self._hidden
        known = self._count_known_words(request)
        self.ledger.input_tokens += read
        self.ledger.output_tokens += written
        self.ledger.answered += fault in (None, "slow")
        usage = {
            "prompt_tokens": read,
            "completion_tokens": written,
            "total_tokens": read + written,
            "prompt_tokens_details": {"cached_tokens": known},
            "completion_tokens_details": {"reasoning_tokens": self._hidden},
        }
        choice: dict[str, Any] = {"index": 0, "message": _message(request, text)}
        choice["finish_reason"] = "length" if fault == "length" else "stop"
        if request.get("logprobs") and self._probabilities is not None:
            choice["logprobs"] = {"content": tokens_of(text, self._probabilities(request))}
        head = {"id": f"chat-{self.ledger.calls}", "object": "chat.completion", "created": 0, "model": request["model"]}
        return Outcome.of(head | {"choices": [choice], "usage": usage}, cut=fault == "cut")

    def _count_known_words(self, request: Request) -> int:
        """Return the words that it has read before: those of a first message that some earlier request began with."""
        first = str(request["messages"][0]["content"])
        seen = first in self._begun
        self._begun.add(first)
        return len(first.split()) if seen else 0

    def _embeddings(self, request: Request) -> Outcome:
        if self._keep:
            self.ledger.embedded.append(dict(request))
        texts = [request["input"]] if isinstance(request["input"], str) else request["input"]
        data = [{"object": "embedding", "index": i, "embedding": _vector(text)} for i, text in enumerate(texts)]
        tokens = sum(len(text.split()) for text in texts)
        self.ledger.input_tokens += tokens
        self.ledger.answered += 1
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return Outcome.of({"object": "list", "data": data, "model": request["model"], "usage": usage})


def _message(request: Request, text: str) -> dict[str, object]:
    """Return the reply: a call of the tool that a request insists on, with the text as its arguments, or the text."""
    chosen = request.get("tool_choice")
    if not isinstance(chosen, dict):
        return {"role": "assistant", "content": text}
    call = {"name": chosen["function"]["name"], "arguments": text}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "call_1", "type": "function", "function": call}],
    }


_DIMENSIONS = 64


def _vector(text: str) -> list[float]:
    """Return a vector of hashed words, so that texts that share words have near vectors."""
    vector = [0.0] * _DIMENSIONS
    for word in text.lower().split():
        vector[zlib.crc32(word.encode()) % _DIMENSIONS] += 1.0
    return vector if any(vector) else [1.0] * _DIMENSIONS
