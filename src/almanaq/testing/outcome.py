"""One HTTP reply of a stand-in server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Self


@dataclass(frozen=True, slots=True)
class Outcome:
    """One HTTP reply.

    Attributes:
        cut: the connection breaks off in its middle.
        raw: gives the bytes of the whole reply, head included, in the place of the other attributes; they are sent for
            as long as somebody reads.
        keeps: with `raw`, whether the connection stays open.
    """

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: bool = False
    raw: Callable[[], Iterator[bytes]] | None = None
    keeps: bool = False

    @classmethod
    def of(cls, content: object, *, cut: bool = False) -> Self:
        """Give the reply that carries `content` as JSON."""
        return cls(200, json.dumps(content).encode(), cut=cut)

    @classmethod
    def error(cls, status: int, message: str, headers: Mapping[str, str] | None = None) -> Self:
        """Give an error in the protocol's form."""
        body = json.dumps({"error": {"message": message, "type": "error", "code": None}}).encode()
        return cls(status, body, headers or {})
