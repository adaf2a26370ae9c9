"""What questions ask about, and the words in which texts speak of it: a lexicon of our own, in lexicon.toml."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from almanaq.models.words import stem, words


@dataclass(frozen=True, slots=True)
class Concept:
    """A matter that questions ask about; cues are matched against the stems of a clause, joined by spaces."""

    name: str
    yes: re.Pattern[str]
    no: re.Pattern[str]
    other: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Trigger:
    """Words of a question that mean a concept, or its opposite (`inverse`)."""

    stems: tuple[str, ...]
    concept: str
    inverse: bool
    weak: bool


@cache
def concepts() -> dict[str, Concept]:
    """Give every concept by name."""
    return {
        name: Concept(name, _cues(entry["yes"]), _cues(entry["no"]), _cues(entry.get("other", [])))
        for name, entry in _entries().items()
    }


@cache
def triggers() -> tuple[Trigger, ...]:
    """Give the words that ask for concepts, the longest first, so that "dog friendly" is not taken for "friendly"."""
    kinds = (("ask", False, False), ("ask_not", True, False), ("weak", False, True))
    found = [
        Trigger(tuple(stem(word) for word in words(phrase)), name, inverse, weak)
        for name, entry in _entries().items()
        for kind, inverse, weak in kinds
        for phrase in entry.get(kind, ())
    ]
    return tuple(sorted(found, key=lambda trigger: (trigger.weak, -len(trigger.stems))))


@cache
def _entries() -> dict[str, dict[str, list[str]]]:
    return tomllib.loads((files(__package__) / "lexicon.toml").read_text("utf-8"))


def _cues(phrases: Sequence[str]) -> re.Pattern[str]:
    """Give one pattern for all the phrases, the longest first: the most specific words decide."""
    if not phrases:
        return re.compile(r"(?!)")
    parts = sorted({_cue(phrase) for phrase in phrases}, key=len, reverse=True)
    return re.compile(r"(?<!\S)(?:" + "|".join(parts) + r")(?!\S)")


def _cue(phrase: str) -> str:
    pattern = ""
    for token in phrase.replace("-", " ").split():
        if token == "*":
            pattern += r"(?: \S+){0,3}"
        else:
            pattern += (" " if pattern else "") + " ".join(re.escape(stem(word)) for word in words(token))
    return pattern
