"""What a server does that means harm, or is quite broken: each makes something else of the right reply to a call."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from itertools import repeat
from typing import Any

from almanaq_bench.testing.outcome import Outcome

ELSEWHERE = "http://127.0.0.1:9/v1/chat/completions"
"""Where redirects point: nobody listens there."""

_MEGABYTE = b" " * 2**20
_BOMB_MEGABYTES = 64


def _usage(**counts: object) -> Callable[[Outcome], Outcome]:
    """Return the reply with other counts of tokens."""

    def change_usage(right: Outcome) -> Outcome:
        content = json.loads(right.body)
        content["usage"] = {**content["usage"], **counts}
        return Outcome.of(content)

    return change_usage


def _text(text: object) -> Callable[[Outcome], Outcome]:
    """Return the reply with something else as its text."""

    def change_content(right: Outcome) -> Outcome:
        content = json.loads(right.body)
        content["choices"][0]["message"]["content"] = text
        return Outcome.of(content)

    return change_content


def _rate_limit(wait: str) -> Callable[[Outcome], Outcome]:
    return lambda _: Outcome.error(429, "Rate limit reached", {"retry-after": wait})


def _redirect(status: int, where: str) -> Callable[[Outcome], Outcome]:
    return lambda _: Outcome(status, b"", {"location": where})


def _body(body: bytes, headers: Mapping[str, str] | None = None, status: int = 200) -> Callable[[Outcome], Outcome]:
    return lambda _: Outcome(status, body, headers or {})


def _endless(piece: bytes, head: str = "transfer-encoding: chunked\r\n") -> Callable[[Outcome], Outcome]:
    """Return a reply that goes on for as long as somebody reads."""
    chunk = f"{len(piece):x}\r\n".encode() + piece + b"\r\n" if "chunked" in head else piece
    start = f"HTTP/1.1 200 -\r\ncontent-type: application/json\r\n{head}\r\n".encode()
    return lambda _: Outcome(200, b"", raw=lambda: _from(start, repeat(chunk)))


def _raw(head: bytes, *more: bytes) -> Callable[[Outcome], Outcome]:
    return lambda right: Outcome(200, b"", raw=lambda: _from(head, iter(more or (right.body,))))


def _from(start: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield start
    yield from rest


def _bomb(_: Outcome) -> Outcome:
    """Return a small body that unpacks to sixty megabytes and more."""
    packer = zlib.compressobj(9, wbits=31)
    packed = b"".join(packer.compress(_MEGABYTE) for _ in range(_BOMB_MEGABYTES)) + packer.flush()
    return Outcome(200, packed, {"content-encoding": "gzip"})


def _twice(right: Outcome) -> Outcome:
    """Return the right reply with a second one behind it that nobody asked for."""
    forged = json.loads(right.body)
    forged["choices"][0]["message"]["content"] = '{"value": "forged", "quotes": []}'
    second = json.dumps(forged).encode()
    replies = [f"HTTP/1.1 200 -\r\ncontent-length: {len(b)}\r\n\r\n".encode() + b for b in (right.body, second)]
    return Outcome(200, b"", raw=lambda: iter([b"".join(replies)]), keeps=True)


def _short(right: Outcome) -> Outcome:
    """Announce half of what is sent."""
    head = f"HTTP/1.1 200 -\r\ncontent-length: {len(right.body) // 2}\r\n\r\n".encode()
    return Outcome(200, b"", raw=lambda: iter([head + right.body]), keeps=True)


def _cookies(right: Outcome) -> Outcome:
    """Return the right reply with as many cookies as a head may hold."""
    cookies = "".join(f"set-cookie: c{n}={'y' * 99}\r\n" for n in range(40))
    head = f"HTTP/1.1 200 -\r\ncontent-length: {len(right.body)}\r\n{cookies}\r\n".encode()
    return Outcome(200, b"", raw=lambda: iter([head + right.body]), keeps=True)


def _more(right: Outcome, **fields: Any) -> Outcome:
    return Outcome.of({**json.loads(right.body), **fields})


_GZIP = {"content-encoding": "gzip"}

HOSTILE: Mapping[str, Callable[[Outcome], Outcome]] = {
    "endless": _endless(_MEGABYTE),
    "endless_unannounced": _endless(_MEGABYTE, "connection: close\r\n"),
    "endless_headers": lambda _: Outcome(200, b"", raw=lambda: _from(b"HTTP/1.1 200 -\r\n", repeat(b"x: y\r\n" * 999))),
    "long_header": _body(b"{}", {"x-long": "y" * 2**20}),
    "bomb": _bomb,
    "packed": lambda right: Outcome(200, gzip.compress(right.body), _GZIP),
    "packed_badly": _body(b"not packed at all", _GZIP),
    "packed_otherwise": _body(b"{}", {"content-encoding": "br"}),
    "wait_ages": _rate_limit("1e9"),
    "wait_forever": _rate_limit("inf"),
    "wait_nan": _rate_limit("nan"),
    "wait_negative": _rate_limit("-5"),
    "wait_date": _rate_limit("Fri, 31 Dec 9999 23:59:59 GMT"),
    "usage_negative": _usage(prompt_tokens=-(10**6), completion_tokens=-(10**6)),
    "usage_huge": _usage(prompt_tokens=10**30, completion_tokens=10**30),
    "usage_infinite": _usage(prompt_tokens=float("inf"), completion_tokens=float("-inf")),
    "usage_nan": _usage(prompt_tokens=float("nan"), completion_tokens=float("nan")),
    "usage_nothing": _usage(prompt_tokens=0, completion_tokens=0),
    "usage_words": _usage(prompt_tokens="many", completion_tokens=None),
    "usage_none": lambda right: _more(right, usage=[]),
    "redirect": _redirect(302, ELSEWHERE),
    "redirect_keeping": _redirect(307, ELSEWHERE),
    "redirect_to_itself": _redirect(308, "/v1/chat/completions"),
    "deep": _body(b'{"choices": ' + b"[" * 200_000 + b"]" * 200_000 + b"}"),
    "deep_error": _body(b'{"error": ' + b"[" * 200_000 + b"]" * 200_000 + b"}", status=500),
    "long_number": _body(b'{"choices": [' + b"9" * 10_000 + b"]}"),
    "no_http": _raw(b"SSH-2.0-OpenSSH_9.9\r\n"),
    "nothing": _body(b""),
    "page": _body(b"<html>Bad Gateway</html>", status=502),
    "no_unicode": _body(b'{"choices": [{"message": {"content": "\xff\xfe"}}]}'),
    "half_character": _text('{"value": "\ud83d", "quotes": []}'),
    "nul": _text('{"value": "a\\u0000b", "quotes": []}'),
    "no_choices": lambda right: _more(right, choices=[]),
    "choices_of_another_kind": lambda right: _more(right, choices={"0": "Yes"}),
    "text_of_another_kind": _text(["Yes"]),
    "reply_twice": _twice,
    "length_short": _short,
    "cookies": _cookies,
    "long_reply": _text('{"value": "' + "word " * 200_000 + '", "quotes": []}'),
}
"""By name: what becomes of the right reply."""
