"""What stands before the colon in a model's name: where its server is, and which key it gets.

A key goes only to the server that it was given for: OPENAI_API_KEY to OPENAI_BASE_URL or OpenAI, AZURE_OPENAI_API_KEY
to AZURE_OPENAI_ENDPOINT, none to the servers of this machine.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field

from almanaq.errors import ModelError
from almanaq.models.local_servers import NO_KEY, USUAL_PORTS, address_of

PROVIDERS = ("openai", "azure", *USUAL_PORTS)
_SECONDS, _SECONDS_HERE = 60.0, 300.0


@dataclass(frozen=True, slots=True)
class Place:
    """Where a provider's models are; None for an address or key takes that of OPENAI_BASE_URL or OPENAI_API_KEY."""

    address: str | None = field(repr=False)
    key: str | None = field(repr=False)
    usual_timeout: float = _SECONDS


def place_of(provider: str, base_url: str | None = None, api_key: str | None = None) -> Place:
    """Return where a provider's models are, what is given by hand first; raise ModelError for a missing setting."""
    if provider == "openai":
        return Place(base_url, api_key)
    if provider == "azure":
        return Place(base_url or _azure_address(), api_key or _azure_key())
    # A small machine's model takes minutes over a long document.
    return Place(base_url or address_of(provider), api_key or NO_KEY, _SECONDS_HERE)


def call_timeout(usual: float) -> float:
    """Return the seconds after which a call is given up: ALMANAQ_TIMEOUT, else what is usual."""
    written = os.environ.get("ALMANAQ_TIMEOUT")
    if not written:
        return usual
    try:
        seconds = float(written)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise ModelError(f"ALMANAQ_TIMEOUT: {written!r} is no number of seconds above 0: set it to one such as 300")
    return seconds


def _azure_address() -> str:
    endpoint = os.environ.get("AZURE_OPENAI_ENDPOINT", "").rstrip("/")
    if not endpoint:
        raise ModelError(
            "azure: needs the resource's address: set AZURE_OPENAI_ENDPOINT, as https://NAME.openai.azure.com"
        )
    return endpoint if endpoint.endswith("/openai/v1") else f"{endpoint}/openai/v1"


def _azure_key() -> str:
    key = os.environ.get("AZURE_OPENAI_API_KEY", "")
    if not key:
        raise ModelError("azure: needs the resource's key: set AZURE_OPENAI_API_KEY")
    return key
