"""`--model auto`: the model that is at hand, found without asking anybody twice.

An address and a key in the environment, or in the user's own settings, come first; then a server on this machine;
else `local`. A key alone chooses nothing: documents go to a paid server only where its address was given too.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from almanaq.models.address import shown_address
from almanaq.models.local_servers import NO_KEY, Server, addresses, answering, models_at

AUTO = "auto"
_REMOTE_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Choice:
    """What `auto` stands for.

    Attributes:
        name: as `--model` would say it.
        place: the address that documents go to; None: they stay in this process.
        reason: why it is this one, in a few words.
    """

    name: str
    place: str | None
    reason: str


def choose() -> Choice:
    """Return the model at hand: of OPENAI_BASE_URL, else of a server on this machine, else `local`."""
    address = os.environ.get("OPENAI_BASE_URL", "").rstrip("/")
    if address:
        return _of_environment(address)
    return of_servers(answering())


def of_servers(found: tuple[Server, ...]) -> Choice:
    """Return the first model that writes text, of the servers that answered on this machine; else `local`."""
    for server in found:
        if server.writers:
            more = len(server.writers) - 1
            rest = f"; {more} more there: almanaq models" if more else ""
            return Choice(f"{server.provider}:{server.writers[0]}", server.address, f"answers on this machine{rest}")
    reason = "no model server answers on this machine"
    if os.environ.get("OPENAI_API_KEY"):
        reason += "; OPENAI_API_KEY alone sends nothing: set OPENAI_BASE_URL too, or give --model openai:NAME"
    return Choice("local", None, reason)


def looks_nowhere() -> bool:
    """Return whether nothing is looked for: no address is given, and ALMANAQ_LOCAL_SERVERS is `none`."""
    return not os.environ.get("OPENAI_BASE_URL") and not addresses()


def _of_environment(address: str) -> Choice:
    shown = shown_address(address)
    if name := os.environ.get("OPENAI_MODEL"):
        return Choice(f"openai:{name}", shown, "OPENAI_BASE_URL and OPENAI_MODEL")
    names = models_at(address, os.environ.get("OPENAI_API_KEY") or NO_KEY, _REMOTE_SECONDS)
    writers = Server("openai", address, names or ()).writers
    if len(writers) == 1:
        return Choice(f"openai:{writers[0]}", shown, "OPENAI_BASE_URL; the only model there")
    state = "does not say which models it has" if names is None else f"has {len(writers):,} models"
    return Choice("local", None, f"{shown} {state}: set OPENAI_MODEL, or give --model openai:NAME")
