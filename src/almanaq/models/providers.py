"""Where model servers are: a provider's address and key, servers found on this machine, and what `auto` picks.

A key goes only to the server that it was given for: OPENAI_API_KEY to OPENAI_BASE_URL or OpenAI, AZURE_OPENAI_API_KEY
to AZURE_OPENAI_ENDPOINT, none to the servers of this machine.

`--model auto` takes the model of OPENAI_BASE_URL (or of the user's settings), else that of a server here, else the
weights that `almanaq models get` or `use` chose, else `local`. A key alone selects nothing: documents go to a paid
server only where its address was given too.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from almanaq.errors import ModelError, UsageError
from almanaq.event_loops import run_sync
from almanaq.models.http import JsonServer, NoReply, redact_address
from almanaq.models.weights import chosen_file, model_of

DEFAULT_PORTS = {"ollama": 11434, "llamacpp": 8080, "lmstudio": 1234, "vllm": 8000}
"""By provider, in order of preference."""

NO_KEY = "none"
"""Sent to servers of this machine: a key in the environment belongs to another server."""

LIST_SECONDS = 0.3
CONNECT_SECONDS = 0.15
_LIST_BYTES = 2**20
_LONGEST_NAME = 200
_NON_CHAT = ("embed", "rerank", "minilm", "bge-", "e5-", "whisper", "tts")
"""Name parts of models that do not generate text."""


@dataclass(frozen=True, slots=True)
class Server:
    """A server that answered: its provider, its address, and the models that it lists."""

    provider: str
    address: str
    models: tuple[str, ...]

    @property
    def writers(self) -> tuple[str, ...]:
        """The models that generate text, judged by name."""
        return tuple(name for name in self.models if not any(part in name.lower() for part in _NON_CHAT))


def server_addresses() -> dict[str, str]:
    """Return the addresses to probe, by provider: those of ALMANAQ_LOCAL_SERVERS, else the default ports here.

    The variable is `none`, or a comma-separated list such as `ollama=http://127.0.0.1:11434/v1`.
    """
    named = os.environ.get("ALMANAQ_LOCAL_SERVERS", "").strip()
    if named.lower() == "none":
        return {}
    if named:
        return dict(_parse_server(part) for part in named.split(","))
    return {name: f"http://127.0.0.1:{port}/v1" for name, port in DEFAULT_PORTS.items()}


def find_address(provider: str) -> str:
    """Return the address of a provider's server, without probing it."""
    return server_addresses().get(provider) or f"http://127.0.0.1:{DEFAULT_PORTS[provider]}/v1"


def find_servers(places: Mapping[str, str] | None = None) -> tuple[Server, ...]:
    """Return the servers that answer within 0.3 s, in the order of their providers; all are probed at once."""
    return run_sync(_find_servers(server_addresses() if places is None else places))


def list_models(address: str, key: str, seconds: float) -> tuple[str, ...] | None:
    """Return the models that a server lists; None where it does not reply in time."""
    return run_sync(_list_models(address, key, seconds))


def _parse_server(part: str) -> tuple[str, str]:
    provider, _, address = part.strip().partition("=")
    if provider not in DEFAULT_PORTS or urlsplit(address).scheme not in ("http", "https"):
        known = ", ".join(DEFAULT_PORTS)
        raise UsageError(
            f"ALMANAQ_LOCAL_SERVERS: {part.strip()!r} names no server: give PROVIDER=http://HOST:PORT/v1, with a"
            f" provider of {known}; or none"
        )
    return provider, address


async def _find_servers(places: Mapping[str, str]) -> tuple[Server, ...]:
    # Most machines have no such server, and importing a client takes longer than probing a port.
    open_ = await asyncio.gather(*(_is_listening(address) for address in places.values()))
    there = [place for place, listens in zip(places.items(), open_, strict=True) if listens]
    if there:
        import aiohttp  # noqa: F401 - loaded before the clock runs
    listings = await asyncio.gather(
        *(_list_models(address, NO_KEY, LIST_SECONDS - CONNECT_SECONDS) for _, address in there)
    )
    return tuple(
        Server(provider, address, names) for (provider, address), names in zip(there, listings, strict=True) if names
    )


async def _is_listening(address: str) -> bool:
    parts = urlsplit(address)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(CONNECT_SECONDS):
            _, writer = await asyncio.open_connection(parts.hostname, port)
            writer.close()
            return True
    return False


async def _list_models(address: str, key: str, seconds: float) -> tuple[str, ...] | None:
    headers = {"authorization": f"Bearer {key}"}
    server = JsonServer(address, headers, timeout=seconds, secrets=(key,), most_bytes=_LIST_BYTES)
    with suppress(NoReply, ValueError, LookupError, TypeError, AttributeError):
        reply = await server.get("/models")
        if reply.status == 200:
            names = [item["id"] for item in json.loads(reply.body)["data"]]
            # A server is not trusted: names that are safe to print and to pass back.
            return tuple(n for n in names if isinstance(n, str) and n.isprintable() and 0 < len(n) <= _LONGEST_NAME)
    return None


PROVIDERS = ("openai", "azure", *DEFAULT_PORTS)
_TIMEOUT, _LOCAL_TIMEOUT = 60.0, 300.0


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A provider's address and key; None takes OPENAI_BASE_URL or OPENAI_API_KEY."""

    address: str | None = field(repr=False)
    key: str | None = field(repr=False)
    usual_timeout: float = _TIMEOUT


def find_endpoint(provider: str, base_url: str | None = None, api_key: str | None = None) -> Endpoint:
    """Return a provider's endpoint, arguments before the environment; raises ModelError for a missing setting."""
    if provider == "openai":
        return Endpoint(base_url, api_key)
    if provider == "azure":
        endpoint = os.environ.get("AZURE_OPENAI_ENDPOINT", "").rstrip("/")
        address = base_url or (endpoint and f"{endpoint.removesuffix('/openai/v1')}/openai/v1")
        key = api_key or os.environ.get("AZURE_OPENAI_API_KEY", "")
        if not address:
            raise ModelError(
                "azure: needs the resource's address: set AZURE_OPENAI_ENDPOINT, as https://NAME.openai.azure.com"
            )
        if not key:
            raise ModelError("azure: needs the resource's key: set AZURE_OPENAI_API_KEY")
        return Endpoint(address, key)
    # A model on a small machine may take minutes for a long document.
    return Endpoint(base_url or find_address(provider), api_key or NO_KEY, _LOCAL_TIMEOUT)


def call_timeout(usual: float) -> float:
    """Return the seconds after which a call is abandoned: ALMANAQ_TIMEOUT, else the default given."""
    value = os.environ.get("ALMANAQ_TIMEOUT")
    if not value:
        return usual
    try:
        seconds = float(value)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise ModelError(f"ALMANAQ_TIMEOUT: {value!r} is not a number of seconds above 0: set it to one such as 300")
    return seconds


AUTO = "auto"
_REMOTE_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The model that `auto` picked, the place that texts go to (None: this process), and why this one."""

    name: str
    place: str | None
    reason: str


def choose_model() -> ModelChoice:
    """Pick the model of OPENAI_BASE_URL, of a server on this machine, or of weights here; else `local`."""
    address = os.environ.get("OPENAI_BASE_URL", "").rstrip("/")
    if address:
        return _choose_from_environment(address)
    return choose_from_servers(find_servers())


def choose_from_servers(found: tuple[Server, ...]) -> ModelChoice:
    """Pick the first model that generates text of the servers that answered; else of weights here, else `local`."""
    for server in found:
        if server.writers:
            more = len(server.writers) - 1
            rest = f"; {more} more there: almanaq models" if more else ""
            return ModelChoice(
                f"{server.provider}:{server.writers[0]}", server.address, f"answers on this machine{rest}"
            )
    weights = chosen_file()
    if weights is not None:
        return ModelChoice(model_of(weights), str(weights), "chosen with almanaq models; texts are read by local")
    reason = "no model server answers on this machine"
    if os.environ.get("OPENAI_API_KEY"):
        reason += "; OPENAI_API_KEY alone sends nothing: set OPENAI_BASE_URL too, or give --model openai:NAME"
    return ModelChoice("local", None, reason)


def auto_is_off() -> bool:
    """Return whether `auto` has nothing to find: no address, no weights, and ALMANAQ_LOCAL_SERVERS is `none`."""
    return not os.environ.get("OPENAI_BASE_URL") and not server_addresses() and chosen_file() is None


def _choose_from_environment(address: str) -> ModelChoice:
    shown = redact_address(address)
    if name := os.environ.get("OPENAI_MODEL"):
        return ModelChoice(f"openai:{name}", shown, "OPENAI_BASE_URL and OPENAI_MODEL")
    names = list_models(address, os.environ.get("OPENAI_API_KEY") or NO_KEY, _REMOTE_SECONDS)
    writers = Server("openai", address, names or ()).writers
    if len(writers) == 1:
        return ModelChoice(f"openai:{writers[0]}", shown, "OPENAI_BASE_URL; the only model there")
    state = "does not say which models it has" if names is None else f"has {len(writers):,} models"
    return ModelChoice("local", None, f"{shown} {state}: set OPENAI_MODEL, or give --model openai:NAME")
