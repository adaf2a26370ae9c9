"""How large a model is and how much it reads at once, by its name or what its server says of it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from almanaq.errors import AlmanaqError, UsageError
from almanaq.event_loops import run_sync
from almanaq.models.http import JsonServer, NoReply
from almanaq.models.protocols import LanguageModel
from almanaq.models.providers import DEFAULT_PORTS, NO_KEY, find_address
from almanaq.models.weights import GGUF, find_weights

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


async def _get(server: JsonServer, path: str, content: Mapping[str, Any] | None = None) -> object:
    try:
        reply = await (server.get(path) if content is None else server.post(path, content))
        return json.loads(reply.body) if reply.status == 200 else None
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
