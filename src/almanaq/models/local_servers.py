"""Model servers on this machine: where they usually listen, and which of them answer."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

from almanaq.errors import UsageError
from almanaq.event_loops import run_sync
from almanaq.models.http import JsonServer, NoReply

USUAL_PORTS = {"ollama": 11434, "llamacpp": 8080, "lmstudio": 1234, "vllm": 8000}
"""By provider, in the order in which they are preferred."""

NO_KEY = "none"
"""Sent to a server of this machine: a key of the environment was given for another."""

_SECONDS = 0.3
_CONNECT_SECONDS = 0.15
_LIST_BYTES = 2**20
_LONGEST_NAME = 200
_NO_CHAT = ("embed", "rerank", "minilm", "bge-", "e5-", "whisper", "tts")
"""Parts of the names of models that write no text."""


@dataclass(frozen=True, slots=True)
class Server:
    """A server that answered: its provider, its address, and the models that it says it serves."""

    provider: str
    address: str
    models: tuple[str, ...]

    @property
    def writers(self) -> tuple[str, ...]:
        """The models that write text, as far as their names tell."""
        return tuple(name for name in self.models if not any(part in name.lower() for part in _NO_CHAT))


def addresses() -> dict[str, str]:
    """Return where each provider's server is looked for: ALMANAQ_LOCAL_SERVERS, else the usual ports of this machine.

    The variable holds `none`, or `ollama=http://127.0.0.1:11434/v1` and others, with commas between.
    """
    named = os.environ.get("ALMANAQ_LOCAL_SERVERS", "").strip()
    if named.lower() == "none":
        return {}
    if named:
        return dict(_named(part) for part in named.split(","))
    return {name: f"http://127.0.0.1:{port}/v1" for name, port in USUAL_PORTS.items()}


def address_of(provider: str) -> str:
    """Return the address of a provider's server, whether it answers or not."""
    return addresses().get(provider) or f"http://127.0.0.1:{USUAL_PORTS[provider]}/v1"


def answering(places: Mapping[str, str] | None = None) -> tuple[Server, ...]:
    """Return the servers that answer, all asked at once, in the order of their providers; at most 0.3 s are waited."""
    found: tuple[Server, ...] = run_sync(_answering(addresses() if places is None else places))
    return found


def models_at(address: str, key: str, seconds: float) -> tuple[str, ...] | None:
    """Return the models that a server says it serves; None where it does not say in time."""
    names: tuple[str, ...] | None = run_sync(_models(address, key, seconds))
    return names


def _named(part: str) -> tuple[str, str]:
    provider, _, address = part.strip().partition("=")
    if provider not in USUAL_PORTS or urlsplit(address).scheme not in ("http", "https"):
        known = ", ".join(USUAL_PORTS)
        raise UsageError(
            f"ALMANAQ_LOCAL_SERVERS: {part.strip()!r} names no server: give PROVIDER=http://HOST:PORT/v1, with a"
            f" provider of {known}; or none"
        )
    return provider, address


async def _answering(places: Mapping[str, str]) -> tuple[Server, ...]:
    # A client costs more to load than to ask: most machines have no such server.
    open_ = await asyncio.gather(*(_listens(address) for address in places.values()))
    there = [place for place, listens in zip(places.items(), open_, strict=True) if listens]
    if there:
        import aiohttp  # noqa: F401 - loaded before the clock runs
    listings = await asyncio.gather(*(_models(address, NO_KEY, _SECONDS - _CONNECT_SECONDS) for _, address in there))
    return tuple(
        Server(provider, address, names) for (provider, address), names in zip(there, listings, strict=True) if names
    )


async def _listens(address: str) -> bool:
    parts = urlsplit(address)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(_CONNECT_SECONDS):
            _, writer = await asyncio.open_connection(parts.hostname, port)
            writer.close()
            return True
    return False


async def _models(address: str, key: str, seconds: float) -> tuple[str, ...] | None:
    headers = {"authorization": f"Bearer {key}"}
    server = JsonServer(address, headers, timeout=seconds, secrets=(key,), most_bytes=_LIST_BYTES)
    with suppress(NoReply, ValueError, LookupError, TypeError, AttributeError):
        reply = await server.get("/models")
        if reply.status == 200:
            return tuple(_names(item["id"] for item in json.loads(reply.body)["data"]))
    return None


def _names(told: Iterable[object]) -> list[str]:
    """Return the names that can be shown and given again; a server is believed nothing."""
    return [n for n in told if isinstance(n, str) and n.isprintable() and 0 < len(n) <= _LONGEST_NAME]
