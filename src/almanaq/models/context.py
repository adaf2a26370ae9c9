"""How much a model reads at once, as its server says it: each kind of server in a place of its own."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from almanaq.models.http import JsonServer, NoReply

USUAL_CONTEXT = 32_000
"""Tokens that a model is taken to read at once where neither a setting nor the server says."""
_SECONDS = 2.0
_LEAST, _MOST = 256, 10_000_000
"""Credible lengths."""
_MOST_AT_ONCE = 131_072
"""Longer prompts take more time than a call has: no model is given more, whatever it could read."""
_LISTED = ("max_model_len", "loaded_context_length", "context_length", "context_window", "max_context_length")
"""What vLLM, LM Studio, OpenRouter, Groq and Mistral call it in their lists of models."""
_NUM_CTX = re.compile(r"^num_ctx\s+(\d+)$", re.MULTILINE)


async def ask_context(address: str, headers: Mapping[str, str], secrets: tuple[str, ...], model: str) -> int | None:
    """Return the tokens that a model reads at once, prompt and reply together; None where its server does not say.

    Args:
        address: of the protocol, which ends in /v1; what else a server says of itself is beside that.
    """
    parts = urlsplit(address)
    beside = urlunsplit(parts._replace(path=parts.path.rstrip("/").removesuffix("/v1")))
    server, root = (JsonServer(each, headers, timeout=_SECONDS, secrets=secrets) for each in (address, beside))
    places: tuple[tuple[JsonServer, str, Callable[[Any], Iterable[object]]], ...] = (
        (server, "/models", lambda found: _in_list(found["data"], model)),
        (root, "/api/v0/models", lambda found: _in_list(found["data"], model)),  # LM Studio
        (root, "/props", lambda found: [found["default_generation_settings"]["n_ctx"]]),  # llama.cpp
        (root, "/api/ps", lambda found: _in_list(found["models"], model)),  # Ollama, of a model that is loaded
    )
    try:
        for place, path, read in places:
            if (found := _credible(await _get(place, path), read)) is not None:
                return found
        return _credible(await _get(root, "/api/show", {"model": model}), _shown_by_ollama)
    finally:
        await server.close()
        await root.close()


async def _get(server: JsonServer, path: str, content: Mapping[str, Any] | None = None) -> object:
    """Return the JSON at a path; None where there is none."""
    try:
        reply = await (server.get(path) if content is None else server.post(path, content))
        return json.loads(reply.body) if reply.status == 200 else None
    except (NoReply, ValueError, RecursionError):
        return None


def _credible(content: object, read: Callable[[Any], Iterable[object]]) -> int | None:
    """Return the first credible length of those that are read from a reply; None where there is none."""
    try:
        stated = list(read(content))
    except (LookupError, TypeError, AttributeError):
        return None
    lengths = (length for length in stated if isinstance(length, int) and not isinstance(length, bool))
    return next((min(length, _MOST_AT_ONCE) for length in lengths if _LEAST <= length <= _MOST), None)


def _in_list(models: Iterable[Mapping[str, Any]], model: str) -> list[object]:
    """Return what a list of models says of one; where it has only one, that is meant, whatever it is called."""
    listed = list(models)
    named = [each for each in listed if model in (each.get("id"), each.get("name"), each.get("model"))]
    return [
        length
        for each in named or (listed if len(listed) == 1 else ())
        for length in ((each.get("meta") or {}).get("n_ctx"), *map(each.get, _LISTED))
    ]


def _shown_by_ollama(shown: Any) -> list[object]:
    """Return the context that Ollama gives a model: `num_ctx`, or at most what the usual one and the model allow."""
    if set_ := _NUM_CTX.search(shown.get("parameters") or ""):
        return [int(set_[1])]
    return [
        min(length, USUAL_CONTEXT) for name, length in shown["model_info"].items() if name.endswith(".context_length")
    ]
