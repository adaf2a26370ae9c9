"""English as searches and follow-ups read it, from `en/search.toml`; it knows nothing of any source."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib.resources import files

from almanaq.agent.local.words import word_set

_DATA = tomllib.loads(files("almanaq.agent.local").joinpath("en/search.toml").read_text("utf-8"))

IGNORED = word_set(_DATA["ignored"])
GLUE = word_set(_DATA["glue"])
ENTITY_WORDS = word_set(_DATA["entity_words"])
QUALITY = word_set(_DATA["quality"])
NEGATIONS = word_set(_DATA["negations"])
ADJECTIVES = word_set(_DATA["adjectives"])
NOT_ADJECTIVES = word_set(_DATA["not_adjectives"])
ADJECTIVE_ENDINGS = tuple(_DATA["adjective_endings"].split())
OWNING, VERBS = word_set(_DATA["owning"]), word_set(_DATA["verbs"])
SEEKING, MOVING = word_set(_DATA["seeking"]), word_set(_DATA["moving"])

SYNONYMS: tuple[frozenset[str], ...] = tuple(frozenset(group.split(",")) for group in _DATA["synonyms"])
PRICE_SCALE = SYNONYMS[:4]
"""Words for prices, from cheap to dear."""

UNITS: Mapping[str, tuple[str, ...]] = {word: tuple(roles.split()) for word, roles in _DATA["units"].items()}
"""Words beside a number, and the roles of the columns they speak of, the likeliest first."""
ADMIRED: Mapping[str, str] = _DATA["admired"]
"""Adjectives after "most" and "least", and the roles of the columns that they speak of."""
ROLE_WORDS: Mapping[str, frozenset[str]] = {role: word_set(names) for role, names in _DATA["roles"].items()}
"""What a column is about, by the words of its name."""
