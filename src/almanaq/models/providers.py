"""Where model servers are and how large their models: addresses, keys, servers of this machine, what `auto` picks.

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
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from almanaq.errors import AlmanaqError, ModelError, UsageError
from almanaq.event_loops import run_sync
from almanaq.models.http import JsonServer, NoReply, redact_address
from almanaq.models.protocols import LanguageModel
from almanaq.models.weights import GGUF, chosen_file, find_weights, model_of

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
    """Return the addresses to probe, by provider: those of ALMANAQ_LOCAL_SERVERS, or the usual ports here."""
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
    with suppress(NoReply, ValueError):
        return await _ask_for_models(address, key, seconds)
    return None


async def _ask_for_models(address: str, key: str, seconds: float) -> tuple[str, ...]:
    """Return the models that a server lists; raises NoReply, or ValueError for a reply that is no list of models."""
    headers = {"authorization": f"Bearer {key}"}
    server = JsonServer(address, headers, timeout=seconds, secrets=(key,), most_bytes=_LIST_BYTES)
    reply = await server.get("/models")
    if not reply.succeeded:
        raise ValueError(f"it answers {reply.status}")
    try:
        names = [item["id"] for item in json.loads(reply.body)["data"]]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as problem:
        raise ValueError("its reply is no list of models") from problem
    # A server is not trusted: names that are safe to print and to pass back.
    return tuple(n for n in names if isinstance(n, str) and n.isprintable() and 0 < len(n) <= _LONGEST_NAME)


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
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The model that `auto` picked, the place that texts go to (None: this process), and why this one."""

    name: str
    place: str | None
    reason: str


def choose_model() -> ModelChoice:
    """Pick the model of OPENAI_BASE_URL, of a server on this machine, or of weights here; else `local`.

    Raises ModelError where OPENAI_BASE_URL is set and does not lead to one model: nothing else takes its place.
    """
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
    name_it = "set OPENAI_MODEL, or give --model openai:NAME"
    try:
        names = run_sync(_ask_for_models(address, os.environ.get("OPENAI_API_KEY") or NO_KEY, _REMOTE_SECONDS))
    except NoReply as problem:
        state, remedy = f"gives no reply ({problem})", "start the server, or correct or unset OPENAI_BASE_URL"
    except ValueError as problem:
        state, remedy = f"does not say which models it has ({problem})", f"{name_it}; or check OPENAI_API_KEY"
    else:
        writers = Server("openai", address, names).writers
        if len(writers) == 1:
            return ModelChoice(f"openai:{writers[0]}", shown, "OPENAI_BASE_URL; the only model there")
        some = f" ({', '.join(writers[:_MOST_NAMED])}{', …' * (len(writers) > _MOST_NAMED)})" * bool(writers)
        state, remedy = f"lists {len(writers):,} models{some}", name_it
    raise ModelError(f"auto takes the model of OPENAI_BASE_URL, but {shown} {state}: {remedy}; or give --model local")


SMALL_PARAMETERS = 4e9
"""A model of at most so many parameters is small."""
READING_PARAMETERS = 1e9
"""A model of fewer is not asked about texts: it was not shown to read better than `local` does, at seconds a text
(experiments/small_model/texts.json)."""
LEAST_CONTEXT = 8192
"""Tokens of context below which the prompts for large models do not fit."""
_BYTES_A_PARAMETER = 0.8
"""Of weights of 4 bits, tables of words included: what a file says of its model where its name says nothing."""
_SECONDS = 2.0
USUAL_CONTEXT = 32_000
"""Tokens that a model is taken to read at once where neither a setting nor the server says."""
_LEAST, _MOST = 256, 10_000_000
"""Credible lengths."""
_MOST_AT_ONCE = 131_072
"""Longer prompts take more time than a call has: no model is given more, even if it could read more."""
_LISTED = ("max_model_len", "loaded_context_length", "context_length", "context_window", "max_context_length")
"""What vLLM, LM Studio, OpenRouter, Groq and Mistral call it in their lists of models."""
_NUM_CTX = re.compile(r"^num_ctx\s+(\d+)$", re.MULTILINE)
_NAMED = re.compile(r"(?<![a-z0-9.])(\d+(?:\.\d+)?)\s*([bm])(?![a-z0-9])", re.IGNORECASE)


def is_small(model: LanguageModel | None) -> bool:
    """Return whether a model on this machine gets the prompts for small models; False where nothing is known of it.

    ALMANAQ_PROFILE, `small` or `full`, decides for any model. Its name tells, else its server where that says how many
    parameters or how much context it has.
    """
    chosen = os.environ.get("ALMANAQ_PROFILE", "")
    if chosen not in ("", "small", "full"):
        raise UsageError(f"ALMANAQ_PROFILE: {chosen!r} is no profile: set it to small or full, or unset it")
    if model is None or chosen:
        return model is not None and chosen == "small"
    provider, _, name = model.name.partition(":")
    if provider not in (GGUF[:-1], *DEFAULT_PORTS):
        return False
    parameters = find_parameters(model.name)
    if parameters is not None:
        return parameters <= SMALL_PARAMETERS
    stated, context = run_sync(_ask_size(provider, name)) if provider != GGUF[:-1] else (None, None)
    return (stated is not None and stated <= SMALL_PARAMETERS) or (context is not None and context < LEAST_CONTEXT)


def reads_texts(model: str) -> bool:
    """Return whether a model is asked about texts, by the size that its name or its weights tell."""
    parameters = find_parameters(model) if model.partition(":")[0] in (GGUF[:-1], *DEFAULT_PORTS) else None
    return parameters is None or parameters >= READING_PARAMETERS


def find_parameters(model: str) -> float | None:
    """Return the parameters of a model by its name, or by the size of its weights here; None where neither tells."""
    provider, _, name = model.partition(":")
    parameters = read_parameters(name)
    if parameters is None and provider == GGUF[:-1]:
        with suppress(AlmanaqError, OSError):
            return find_weights(name).stat().st_size / _BYTES_A_PARAMETER
    return parameters


def read_parameters(name: str) -> float | None:
    """Return the parameters that a model's name tells; None where it tells none."""
    found = _NAMED.findall(name)
    return float(found[-1][0]) * (1e9 if found[-1][1] in "bB" else 1e6) if found else None


async def _ask_size(provider: str, name: str) -> tuple[float | None, int | None]:
    address, headers = find_address(provider), {"authorization": f"Bearer {NO_KEY}"}
    stated: object = None
    async with _connect(address, headers, ()) as (server, root):
        with suppress(LookupError, TypeError, AttributeError):
            if provider == "ollama":
                shown: Any = await _get(root, "/api/show", {"model": name})
                stated = read_parameters(shown["details"]["parameter_size"])
            else:
                listed: Any = await _get(server, "/models")
                stated = {each["id"]: each for each in listed["data"]}[name]["meta"]["n_params"]
    return stated if isinstance(stated, int | float) else None, await ask_context(address, headers, (), name)


async def ask_context(address: str, headers: Mapping[str, str], secrets: tuple[str, ...], model: str) -> int | None:
    """Return the tokens that a model reads at once, prompt and reply together; None where its server does not say."""
    async with _connect(address, headers, secrets) as (server, root):
        places: tuple[tuple[JsonServer, str, Callable[[Any], Iterable[object]]], ...] = (
            (server, "/models", lambda found: _read_list(found["data"], model)),
            (root, "/api/v0/models", lambda found: _read_list(found["data"], model)),  # LM Studio
            (root, "/props", lambda found: [found["default_generation_settings"]["n_ctx"]]),  # llama.cpp
            (root, "/api/ps", lambda found: _read_list(found["models"], model)),  # Ollama, of a model that is loaded
        )
        for place, path, read in places:
            if (found := _read_length(await _get(place, path), read)) is not None:
                return found
        return _read_length(await _get(root, "/api/show", {"model": model}), _read_ollama)


@asynccontextmanager
async def _connect(
    address: str, headers: Mapping[str, str], secrets: tuple[str, ...]
) -> AsyncIterator[tuple[JsonServer, JsonServer]]:
    """Give the server of the protocol, whose address ends in /v1, and the one beside it, which says more of itself."""
    parts = urlsplit(address)
    beside = urlunsplit(parts._replace(path=parts.path.rstrip("/").removesuffix("/v1")))
    server, root = (JsonServer(each, headers, timeout=_SECONDS, secrets=secrets) for each in (address, beside))
    try:
        yield server, root
    finally:
        await server.close()
        await root.close()


async def _get(server: JsonServer, path: str, content: dict[str, Any] | None = None) -> object:
    try:
        reply = await (server.get(path) if content is None else server.post(path, content))
        return json.loads(reply.body) if reply.succeeded else None
    except (NoReply, ValueError, RecursionError):
        return None


def _read_length(content: object, read: Callable[[Any], Iterable[object]]) -> int | None:
    try:
        stated = list(read(content))
    except (LookupError, TypeError, AttributeError):
        return None
    lengths = (length for length in stated if isinstance(length, int) and not isinstance(length, bool))
    return next((min(length, _MOST_AT_ONCE) for length in lengths if _LEAST <= length <= _MOST), None)


def _read_list(models: Iterable[Mapping[str, Any]], model: str) -> list[object]:
    listed = list(models)
    own = [each for each in listed if model in (each.get("id"), each.get("name"), each.get("model"))]
    return [
        length
        for each in own or (listed if len(listed) == 1 else ())
        for length in ((each.get("meta") or {}).get("n_ctx"), *map(each.get, _LISTED))
    ]


def _read_ollama(shown: Any) -> list[object]:
    if set_ := _NUM_CTX.search(shown.get("parameters") or ""):
        return [int(set_[1])]
    return [
        min(length, USUAL_CONTEXT) for name, length in shown["model_info"].items() if name.endswith(".context_length")
    ]
