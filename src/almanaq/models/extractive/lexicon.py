"""What questions ask about, and the words in which texts speak of it: a lexicon of our own, in lexicon.toml."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import groupby
from typing import Literal

from almanaq.models.words import stem, words

CueKind = Literal["other", "no", "yes", "topic", "blame", "praise"]
_KINDS: tuple[CueKind, ...] = ("other", "no", "yes", "topic", "blame", "praise")


@dataclass(frozen=True, slots=True)
class Hit:
    """Words of a clause that are a cue: `stems[start:end]`, its words joined by spaces."""

    kind: CueKind
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Concept:
    """A matter that questions ask about.

    Attributes:
        cues: by the stem that opens them, one pattern with a group per cue, the longest first, and the groups' kinds.
        graded: texts name the matter without saying that it is so: praise or blame beside its name decides.
    """

    name: str
    cues: Mapping[str, tuple[re.Pattern[str], tuple[CueKind, ...]]]
    graded: bool

    def hits(self, stems: str) -> list[Hit]:
        """Give the cues in a clause, from left to right; the longest one at a place decides, and spends its words."""
        found: list[Hit] = []
        at = 0
        while at < len(stems):
            end = stems.find(" ", at)
            end = len(stems) if end < 0 else end
            entry = self.cues.get(stems[at:end])
            match = entry[0].match(stems, at) if entry else None
            if entry and match and match.lastindex:
                found.append(Hit(entry[1][match.lastindex - 1], at, match.end()))
                end = match.end()
            at = end + 1
        return found


@dataclass(frozen=True, slots=True)
class Trigger:
    """Words of a question that mean a concept, or its opposite (`inverse`)."""

    stems: tuple[str, ...]
    concept: str
    inverse: bool
    weak: bool


@cache
def concept(name: str) -> Concept:
    """Give the concept of that name."""
    entry = dict(_entries()[name])
    if "topic" in entry:
        general = _entries()["positive"]
        entry.setdefault("praise", general["yes"])
        entry.setdefault("blame", general["no"])
    return Concept(name, _index(entry), "topic" in entry)


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


def _index(entry: Mapping[str, Sequence[str]]) -> dict[str, tuple[re.Pattern[str], tuple[CueKind, ...]]]:
    cues = {_stems(phrase): kind for kind in reversed(_KINDS) for phrase in entry.get(kind, ())}
    ordered = sorted(cues, key=lambda parts: (parts[0], -len(parts), parts))
    index = {}
    for first, group in groupby(ordered, key=lambda parts: parts[0]):
        alternatives = list(group)
        pattern = "|".join(f"({_pattern(parts)})" for parts in alternatives)
        index[first] = (re.compile(rf"(?:{pattern})(?!\S)"), tuple(cues[parts] for parts in alternatives))
    return index


def _stems(phrase: str) -> tuple[str, ...]:
    tokens = phrase.replace("-", " ").split()
    return tuple(part for token in tokens for part in (["*"] if token == "*" else [stem(w) for w in words(token)]))


def _pattern(parts: Sequence[str]) -> str:
    return re.escape(parts[0]) + "".join(
        r"(?: \S+){0,3}?" if part == "*" else " " + re.escape(part) for part in parts[1:]
    )
