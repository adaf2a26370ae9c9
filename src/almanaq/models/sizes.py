"""How large a model is, by its name or what its server says of it: a small one is asked in another way."""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from typing import Any

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
    known = run_sync(_ask_server(provider, name)) if provider != GGUF[:-1] else {}
    told, context = known.get("parameters"), known.get("context")
    return (told is not None and told <= SMALL_PARAMETERS) or (context is not None and context < LEAST_CONTEXT)


def reads_texts(model: str) -> bool:
    """Return whether a model is asked about texts, by the size that its name or its weights tell.

    >>> reads_texts("ollama:qwen2.5-coder:0.5b"), reads_texts("ollama:qwen3:4b"), reads_texts("openai:nano-0.5b")
    (False, True, True)
    """
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
    """Return the parameters that a model's name tells; None where it tells none.

    >>> read_parameters("qwen2.5-coder:0.5b"), read_parameters("SmolLM2-135M-Instruct"), read_parameters("phi4")
    (500000000.0, 135000000.0, None)
    """
    found = _NAMED.findall(name)
    return float(found[-1][0]) * (1e9 if found[-1][1] in "bB" else 1e6) if found else None


async def _ask_server(provider: str, name: str) -> dict[str, float]:
    """Return `parameters` and `context` of a model as its server tells them."""
    address = find_address(provider)
    found: dict[str, float] = {}
    with suppress(NoReply, ValueError, LookupError, TypeError, AttributeError):
        server = JsonServer(address, {"authorization": f"Bearer {NO_KEY}"}, timeout=_SECONDS, most_bytes=2**20)
        try:
            listed: list[dict[str, Any]] = json.loads((await server.get("/models")).body)["data"]
        finally:
            await server.close()
        model = next(each for each in listed if each["id"] == name)
        meta = model.get("meta") or {}
        for key, value in (("parameters", meta.get("n_params")), ("context", meta.get("n_ctx"))):
            if isinstance(value, int | float):
                found[key] = value
        if isinstance(length := model.get("max_model_len"), int):
            found["context"] = length
    with suppress(NoReply, ValueError, LookupError, TypeError, AttributeError):
        if provider == "ollama":
            root = JsonServer(address.removesuffix("/v1"), {}, timeout=_SECONDS, most_bytes=2**24)
            try:
                shown = json.loads((await root.post("/api/show", {"model": name})).body)
            finally:
                await root.close()
            if (size := read_parameters(shown["details"]["parameter_size"])) is not None:
                found["parameters"] = size
    return found
