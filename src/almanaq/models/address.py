"""Addresses of model servers: what of one may be shown and kept, and what of it is a key."""

from __future__ import annotations

import hashlib
import re
from urllib.parse import parse_qsl, urlsplit, urlunsplit

HIDDEN = "[key]"
_PLAIN = ("api-version", "api_version", "version", "deployment", "model")
"""What may stand in a query as it is; any other value in one may be a key."""

_NAMES_OF_KEYS = re.compile(r"key|token|secret|sig|pass|pwd|auth|cred|code|jwt|sas", re.IGNORECASE)
SHORTEST = 6
"""Characters from which a value is looked for in texts: a shorter one would also be found where it is a word."""


def shown_address(address: str) -> str:
    """Return an address as messages and the cache may hold it: without a password, and without values of its query."""
    try:
        parts = urlsplit(address)
        asked = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:
        return "an address that cannot be read"
    host = parts.netloc.rpartition("@")
    shown = "&".join(f"{name}={value if name.lower() in _PLAIN else HIDDEN}" for name, value in asked)
    if parts.query and not asked:
        shown = HIDDEN
    return urlunsplit(parts._replace(netloc=f"{HIDDEN}@{host[2]}" if host[1] else host[2], query=shown, fragment=""))


def identity_of(address: str) -> str:
    """Return what tells an address from others in keys of the cache: as it is shown, with a hash of what chooses there.

    What looks like a key is left out: another key at the same server gets the same replies.
    """
    asked = parse_qsl(urlsplit(address).query, keep_blank_values=True)
    chosen = [pair for pair in asked if pair[0].lower() not in _PLAIN and not _NAMES_OF_KEYS.search(pair[0])]
    shown = shown_address(address)
    return f"{shown} {hashlib.blake2b(repr(chosen).encode(), digest_size=6).hexdigest()}" if chosen else shown


def secrets_in(address: str) -> tuple[str, ...]:
    """Return the parts of an address that no message, log or file may hold, as they are written and as
    they are meant.
    """
    try:
        parts = urlsplit(address)
        meant = [value for name, value in parse_qsl(parts.query) if name.lower() not in _PLAIN]
        written = [pair.partition("=")[2] for pair in parts.query.split("&") if pair.partition("=")[0] not in _PLAIN]
        found = [*meant, *written, *(part for part in (parts.username, parts.password) if part)]
    except ValueError:
        return ()
    return tuple(dict.fromkeys(value for value in found if len(value) >= SHORTEST))


def without(text: str, secrets: tuple[str, ...]) -> str:
    """Return a text without any of the secrets, those too short to be told from words left in."""
    for secret in secrets:
        if len(secret) >= SHORTEST:
            text = text.replace(secret, HIDDEN)
    return text
