"""Clauses of a text and what turns them round (negation, doubt, hearsay), and words that say what a clause speaks of.

Words about places to eat are the sample's.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from itertools import groupby, pairwise
from typing import Literal

from almanaq.models.extractive.words import WORDS, stem_set
from almanaq.sample import read_toml
from almanaq.text.words import SMALL_WORDS, stem, without_small, words

_SENTENCE = re.compile(r"[^.!?\n]*(?:(?:\.(?=\S)|[.!?](?=\d))[^.!?\n]*)*[.!?]*")
_TURN = re.compile(
    r";\s|\s[-\u2013\u2014]+\s|\u2014"
    r"|,?\s(?=(?:(?<!anything )but|however|although|though|yet|whereas|while|except that|plus)\b)"
    r"|,?\s(?=(?:and on top of|on the other hand)\b)"
    r"|,\s(?=and (?:the|there|they|it|we|our|i|you|my|he|she|everyone|nobody|not)\b)",
    re.IGNORECASE,
)
_TOKEN = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)?")

NEGATORS = stem_set(WORDS["negators"])
_HEARSAY = re.compile(
    r"\b(?:they say|claim(?:s|ed)?|advertis\w+|(?:sign|website|menu)\b.{0,12}\bsays|on the sign)\b", re.I
)
_NEGATION_REACH = 6
_BREAK = re.compile(r"(?:^| )(?:and|so|becaus|sinc) (?!no |not )")
"""Where the reach of a negation ends: "they do not rush you and the room is lovely"."""
_ANYTHING_BUT = re.compile(r"\banything but\b", re.IGNORECASE)
_HARMLESS = stem_set(WORDS["harmless"])


@dataclass(frozen=True, slots=True)
class Clause:
    """Part of a passage that says one thing.

    Attributes:
        text: the words, `passage[start : start + len(text)]`.
        stems: their stems joined by spaces; "n't" is its own word "not".
        doubtful: it is a question, a wish or hearsay.
    """

    text: str
    start: int
    stems: str
    doubtful: bool

    def negated(self, at: int, since: int = 0) -> bool:
        """Return whether a negation stands shortly before `at` in `stems`, and not before `since`; two cancel out."""
        before = _BREAK.split(self.stems[since:at])[-1].split()[-_NEGATION_REACH:]
        count = sum(
            word in NEGATORS and not _HARMLESS.intersection(before[i + 1 : i + 3]) for i, word in enumerate(before)
        )
        if "only" in before and "not" in before:
            return False
        return count % 2 == 1


@lru_cache(maxsize=50_000)
def clauses(passage: str) -> tuple[Clause, ...]:
    """Return the clauses of a passage, in order."""
    found = []
    for sentence in _SENTENCE.finditer(passage):
        if not sentence[0].strip():
            continue
        cuts = [sentence.start(), *(m.end() for m in _TURN.finditer(passage, *sentence.span())), sentence.end()]
        question = sentence[0].rstrip().endswith("?")
        for start, end in pairwise(cuts):
            text = passage[start:end].strip().rstrip(" ,;:")
            if text:
                place = passage.index(text, start)
                tokens = tokens_of(text)
                doubtful = question or not WORDS["hedges"].isdisjoint(tokens) or _HEARSAY.search(text) is not None
                found.append(Clause(text, place, " ".join(stem(token) for token in tokens), doubtful))
    return tuple(found)


def clauses_of(passages: Sequence[str]) -> Iterator[tuple[int, Clause]]:
    """Yield the clauses of a document, each with the number of its passage."""
    return ((number, clause) for number, passage in enumerate(passages) for clause in clauses(passage))


def tokens_of(text: str) -> list[str]:
    """Return the words of a clause as its stems are made of them: "isn't" is two words, "dog's" is "dog"."""
    found: list[str] = []
    for match in _TOKEN.finditer(_ANYTHING_BUT.sub("not", text)):
        word = match[0].casefold().replace("\u2019", "'")
        head, mark, tail = word.partition("'")
        if mark and tail == "t" and head.endswith("n"):
            found += [head[:-1], "not"]
        else:
            found += [head, tail] if mark and tail != "s" else [head]
    return found


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
        tokens = tokens_of(clause.text) if self.literal and found else []
        forms = ((hit, self.literal.get(clause.stems[hit.start : hit.end])) for hit in found)
        return [hit for hit, said in forms if said is None or tokens[clause.stems.count(" ", 0, hit.start)] in said]

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

    def end_in(self, tokens: Sequence[str], at: int) -> int:
        """Return where the words end in tokens that they begin at a place of; 0 where they do not stand there."""
        end = at
        for wanted in self.stems:
            while at < end < len(tokens) and tokens[end] != wanted and tokens[end] in SMALL_WORDS:
                end += 1
            if end == len(tokens) or tokens[end] != wanted:
                return 0
            end += 1
        return end


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
    kinds = {_read_cue(phrase): kind for kind in reversed(_KINDS) for phrase in entry.get(kind, ())}
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
    """Return the words that ask for concepts (`of_places`: those of places to eat too), the longest first."""
    kinds = (("ask", False, False), ("ask_not", True, False), ("weak", False, True))
    found = [
        Trigger(without_small([stem(word) for word in words(phrase)]), name, inverse, weak)
        for name, entry in (entries() if of_places else _of_any_text()).items()
        for kind, inverse, weak in kinds
        for phrase in entry.get(kind, ())
    ]
    return tuple(sorted(found, key=lambda trigger: (trigger.weak, -len(trigger.stems))))


@cache
def entries() -> dict[str, dict[str, list[str]]]:
    """Return the words of every concept by name and kind: the sample's concepts, then those of any review."""
    return read_toml("concepts.toml") | _of_any_text()


@cache
def _of_any_text() -> dict[str, dict[str, list[str]]]:
    return tomllib.loads((files(__package__) / "lexicon.toml").read_text("utf-8"))


@cache
def place_stems() -> tuple[frozenset[str], frozenset[str]]:
    """Return words of which one shows that a text is about a place to eat, and those of which two do."""
    spoken = read_toml("places.toml")
    rows, plainly, texts, foods = (stem_set(spoken[key].split()) for key in ("rows", "plainly", "texts", "foods"))
    return rows | plainly, texts | foods


def _read_cue(phrase: str) -> Cue:
    tokens = phrase.replace("-", " ").split()
    return tuple(part for token in tokens for part in (["*"] if token == "*" else [stem(w) for w in words(token)]))


@lru_cache(maxsize=20_000)
def _pattern(cues: tuple[Cue, ...]) -> re.Pattern[str]:
    """Return one pattern for cues with the same first stem, a group for each; made when a text first holds it."""
    gap = r"(?: \S+){0,3}?"
    written = ("".join(gap if part == "*" else " " + re.escape(part) for part in cue)[1:] for cue in cues)
    return re.compile("(?:" + "|".join(f"({each})" for each in written) + r")(?!\S)")
