"""Users of a server: a file says who they are by the hashes of their tokens, with roles, attributes and a budget."""

from __future__ import annotations

import hashlib
import hmac
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any

from almanaq.errors import UsageError, suggest

EVERYTHING = "*"
"""The role that sees every row of every relation."""
_HASH = re.compile(r"[0-9a-f]{64}")
_KEYS = ("token_sha256", "roles", "attributes", "calls_per_day", "money_per_day")


@dataclass(frozen=True, slots=True)
class User:
    """Who asks.

    Attributes:
        roles: as the schema file names them; `*` sees everything.
        attributes: what the rules of roles compare rows with, `:region` with `region`; `:user` is the name.
        calls_per_day: most calls of a language model from midnight to midnight, UTC; None: any.
        money_per_day: most US dollars for them in that time; None: any.
    """

    name: str
    roles: tuple[str, ...] = ()
    attributes: Mapping[str, object] = field(default_factory=dict)
    calls_per_day: int | None = None
    token_sha256: str = field(default="", repr=False)
    money_per_day: float | None = None

    @property
    def sees_everything(self) -> bool:
        return EVERYTHING in self.roles

    def value(self, name: str) -> object:
        """Return what `:name` stands for in a rule; raises KeyError where the user has no such attribute."""
        return self.name if name == "user" else self.attributes[name]


ANYONE = User("anyone")
"""Whoever reaches a server that tells no users apart."""


@dataclass(frozen=True, slots=True)
class Users:
    """The users of a server; `header`: the header in which a proxy names the user, in lower case; "": none."""

    known: tuple[User, ...]
    header: str = ""

    def with_token(self, token: str) -> User | None:
        """Return whose token it is; None: nobody's. It takes the same time for all."""
        given = hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()
        found = [user for user in self.known if hmac.compare_digest(user.token_sha256, given)]
        return found[0] if found else None

    def named(self, name: str) -> User | None:
        return next((user for user in self.known if user.name == name), None)


def read_users(path: str | Path, header: str = "") -> Users:
    """Return the users of a TOML file; raises UsageError with the faulty entry."""
    path = Path(path)
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"--users {path}: {getattr(error, 'strerror', None) or error}") from error
    known = tuple(_read_user(name, entry, f"{path.name}, [{name}]") for name, entry in document.items())
    hashes = [user.token_sha256 for user in known if user.token_sha256]
    if len(set(hashes)) < len(hashes):
        raise UsageError(f"{path.name}: two users have the same token")
    if not known:
        raise UsageError(f"{path.name} names no users: write [NAME] with token_sha256 and roles")
    return Users(known, header.lower())


def _read_user(name: str, entry: Any, where: str) -> User:
    if not isinstance(entry, dict):
        raise UsageError(f"{where}: a table of settings is expected")
    for key in entry:
        if key not in _KEYS:
            raise UsageError(f"{where}: no setting {key!r}{suggest(key, _KEYS)}")
    token, roles, calls = entry.get("token_sha256", ""), entry.get("roles", []), entry.get("calls_per_day")
    if token and not (isinstance(token, str) and _HASH.fullmatch(token)):
        raise UsageError(f"{where}: token_sha256 takes 64 hexadecimal digits, as `printf %s TOKEN | sha256sum` prints")
    if not isinstance(roles, list) or not all(isinstance(role, str) for role in roles):
        raise UsageError(f"{where}: roles is a list of names")
    if calls is not None and not (isinstance(calls, int) and not isinstance(calls, bool) and calls >= 0):
        raise UsageError(f"{where}: calls_per_day is a whole number")
    money = entry.get("money_per_day")
    if money is not None and not (isinstance(money, int | float) and not isinstance(money, bool) and 0 <= money < inf):
        raise UsageError(f"{where}: money_per_day is a number of US dollars")
    attributes = entry.get("attributes", {})
    values = attributes.values() if isinstance(attributes, dict) else ()
    items = [each for value in values for each in (value if isinstance(value, list) else [value])]
    if not isinstance(attributes, dict) or any(isinstance(each, dict | list) for each in items):
        raise UsageError(f"{where}: attributes are texts, numbers, dates, or lists of them")
    return User(name, tuple(roles), attributes, calls, token, money)
