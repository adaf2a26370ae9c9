"""What questions ask about, and the words in which texts speak of it: of places to eat, the sample has them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from itertools import groupby
from typing import Literal

from almanaq.models.extractive.clauses import Clause, tokens_of
from almanaq.sample import read_toml
from almanaq.text.words import stem, words

CueKind = Literal["other", "no", "yes", "topic", "blame", "praise"]
Cue = tuple[str, ...]
"""The stems of a cue; "*" stands for up to three words."""
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
        cues: by the stem that opens them, the longest first: the stems of each cue.
        kinds: what each cue means.
        graded: texts name the matter without saying that it is so: praise or blame beside its name decides.
        literal: by their stem, words that count in these forms alone: "pleased", not "please".
    """

    name: str
    cues: Mapping[str, tuple[Cue, ...]]
    kinds: Mapping[Cue, CueKind]
    graded: bool
    literal: Mapping[str, frozenset[str]]

    def hits_in(self, clause: Clause) -> list[Hit]:
        """Return the cues in a clause whose words stand there in a form that counts."""
        found = self.hits(clause.stems)
        if not self.literal or not found:
            return found
        tokens = tokens_of(clause.text)
        return [hit for hit in found if self._counts(clause.stems, hit, tokens)]

    def _counts(self, stems: str, hit: Hit, tokens: Sequence[str]) -> bool:
        forms = self.literal.get(stems[hit.start : hit.end])
        return forms is None or tokens[stems.count(" ", 0, hit.start)] in forms

    def hits(self, stems: str) -> list[Hit]:
        """Return the cues in a clause, from left to right; the longest one at a place decides, and spends its words."""
        found: list[Hit] = []
        at = 0
        while at < len(stems):
            end = stems.find(" ", at)
            end = len(stems) if end < 0 else end
            cues = self.cues.get(stems[at:end])
            match = _pattern(cues).match(stems, at) if cues else None
            if cues and match and match.lastindex:
                found.append(Hit(self.kinds[cues[match.lastindex - 1]], at, match.end()))
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
    """Return the concept of that name."""
    entry = dict(entries()[name])
    if "topic" in entry:
        general = entries()["positive"]
        entry.setdefault("praise", general["yes"])
        entry.setdefault("blame", general["no"])
    if name == "sentiment":
        entry |= {kind: [*entries()["positive"][kind], *entry[kind]] for kind in ("yes", "no")}
    kinds = {_stems(phrase): kind for kind in reversed(_KINDS) for phrase in entry.get(kind, ())}
    ordered = sorted(kinds, key=lambda cue: (cue[0], -len(cue), cue))
    literal: dict[str, frozenset[str]] = {}
    for word in entry.get("literal", ()):
        literal[stem(word)] = literal.get(stem(word), frozenset()) | {word}
    return Concept(
        name,
        {first: tuple(cues) for first, cues in groupby(ordered, lambda cue: cue[0])},
        kinds,
        "topic" in entry,
        literal,
    )


@cache
def triggers(of_places: bool) -> tuple[Trigger, ...]:
    """Return the words that ask for concepts, the longest first, so that "dog friendly" is not taken for "friendly".

    Args:
        of_places: whether the concepts of places to eat are among them.
    """
    kinds = (("ask", False, False), ("ask_not", True, False), ("weak", False, True))
    found = [
        Trigger(tuple(stem(word) for word in words(phrase)), name, inverse, weak)
        for name, entry in (entries() if of_places else _of_any_text()).items()
        for kind, inverse, weak in kinds
        for phrase in entry.get(kind, ())
    ]
    return tuple(sorted(found, key=lambda trigger: (trigger.weak, -len(trigger.stems))))


@cache
def entries() -> dict[str, dict[str, list[str]]]:
    """Return the words of every concept, by its name and their kind: the sample's concepts, then those
    of any review.
    """
    return read_toml("concepts.toml") | _of_any_text()


@cache
def _of_any_text() -> dict[str, dict[str, list[str]]]:
    return tomllib.loads((files(__package__) / "lexicon.toml").read_text("utf-8"))


@cache
def place_stems() -> tuple[frozenset[str], frozenset[str]]:
    """Return words of which one shows that a text is about a place to eat, and those of which two do."""
    spoken = read_toml("places.toml")
    rows, texts, foods = (frozenset(stem(word) for word in spoken[key].split()) for key in ("rows", "texts", "foods"))
    return rows | {stem(word) for word in spoken["plainly"].split()}, texts | foods


def _stems(phrase: str) -> Cue:
    tokens = phrase.replace("-", " ").split()
    return tuple(part for token in tokens for part in (["*"] if token == "*" else [stem(w) for w in words(token)]))


@lru_cache(maxsize=20_000)
def _pattern(cues: tuple[Cue, ...]) -> re.Pattern[str]:
    """Return one pattern for cues with the same first stem, a group for each.

    Made when a text first holds that stem.
    """
    return re.compile("(?:" + "|".join(f"({_write_pattern(cue)})" for cue in cues) + r")(?!\S)")


def _write_pattern(cue: Cue) -> str:
    return re.escape(cue[0]) + "".join(r"(?: \S+){0,3}?" if part == "*" else " " + re.escape(part) for part in cue[1:])
