"""English as searches and follow-ups read it, from `en/search.toml`, and the cues of turns, from `cues.toml`; it knows
nothing of any source.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from almanaq.agent.local_old.words import word_set


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads(files("almanaq.agent.local_old").joinpath(name).read_text("utf-8"))


_DATA = _read("en/search.toml")

BEFORE_VALUES = word_set(_DATA["before_values"])
"""Words that may stand between a negation and what it denies."""
COUNTING, TITLES = word_set(_DATA["counting"]), word_set(_DATA["titles"])
TELLING, WISHING = word_set(_DATA["telling"]), word_set(_DATA["wishing"])
BEING_SOMEWHERE = word_set(_DATA["being_somewhere"])
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
ASKED_BY: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = tuple(
    (tuple(opening.split()), tuple(roles.split())) for opening, roles in _DATA["asked_by"].items()
)
"""Question words, and the roles of the columns that they ask for, the likeliest first."""
ROLE_WORDS: Mapping[str, frozenset[str]] = {role: word_set(names) for role, names in _DATA["roles"].items()}
"""What a column is about, by the words of its name."""

_FOLLOWUPS = _read("en/followups.toml")
INTERJECTIONS, NOISE = word_set(_FOLLOWUPS["interjections"]), word_set(_FOLLOWUPS["noise"])
KIN = tuple(map(word_set, _FOLLOWUPS["kin"]))
"""Words of one kind: "cost" may mean a condition on a price."""
REWRITES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), into) for pattern, into in _FOLLOWUPS["rewrites"]
)
"""Comparatives and the superlatives of the same meaning."""
ORDINALS: Mapping[str, int] = _FOLLOWUPS["ordinals"]
NUMBERS: Mapping[str, int] = _FOLLOWUPS["numbers"]

_SET = r"(?:them|these|those|the (?:\w+ )?(?:ones|three|two|four|five|results|list))"
_COMPARATIVE = (
    r"(?:cheaper|pricier|fancier|costlier|dearer|better|worse|higher|lower|longer|shorter|newer|older|younger|bigger"
    r"|larger|smaller|closer|nearer|quicker|faster|slower|earlier|later|taller|heavier|lighter|richer|poorer|fewer"
    r"|stronger)"
)


@cache
def cue(name: str) -> re.Pattern[str]:
    """Return the pattern that matches where any expression of a list does."""
    listed = "|".join(f"(?:{each})" for each in _lists()[name])
    return re.compile(listed.replace("{set}", _SET).replace("{comparative}", _COMPARATIVE), re.IGNORECASE)


@cache
def _lists() -> dict[str, list[str]]:
    return _read("cues.toml")
