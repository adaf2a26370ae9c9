"""Clauses of a text, with their stems, their places, and what turns them round: negation, doubt, hearsay."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from almanaq.text.words import stem

_SENTENCE = re.compile(r"[^.!?\n]*(?:(?:\.(?=\S)|[.!?](?=\d))[^.!?\n]*)*[.!?]*")
_TURN = re.compile(
    r";\s|\s[-\u2013\u2014]+\s|\u2014"
    r"|,?\s(?=(?:but|however|although|though|yet|whereas|except that|while|and on top of|on the other hand|plus)\b)"
    r"|,\s(?=and (?:the|there|they|it|we|our|i|you|my|he|she|everyone|nobody|not)\b)",
    re.IGNORECASE,
)
_TOKEN = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)?")

_NEGATORS = """not no never none nothing nobody nowhere neither nor without hardly barely scarcely cannot lack lacks
    lacked zero"""
_HEARSAY = re.compile(
    r"\b(?:they say|claim(?:s|ed)?|advertis\w+|(?:sign|website|menu)\b.{0,12}\bsays|on the sign)\b", re.I
)
_DOUBTING = """might maybe perhaps supposedly apparently allegedly heard reportedly possibly could wish if"""
NEGATORS = frozenset(stem(word) for word in _NEGATORS.split())
_HEDGES = frozenset(_DOUBTING.split())
_CONTRACTED = {"can't": ["cannot"], "won't": ["will", "not"], "cant": ["cannot"], "dont": ["do", "not"]}
_NEGATION_REACH = 6
_BREAK = re.compile(r"(?:^| )(?:and|so|becaus|sinc) (?!no |not )")
"""Where the reach of a negation ends: "they do not rush you and the room is lovely"."""
_UPSETTING = """minded problem trouble issue glares sighs worry rush judged wonder doubt complaint regret complain need
    other believe"""
_HARMLESS = frozenset(stem(word) for word in _UPSETTING.split())
"""Words after which a negation denies only that something is amiss: "nobody minded the puppy"."""


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
        """Return whether a negation stands shortly before the place `at` in `stems`, and not before `since`.

        Two of them cancel out.
        """
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
    return tuple(_clauses(passage))


def _clauses(passage: str) -> Iterator[Clause]:
    for sentence in _SENTENCE.finditer(passage):
        if not sentence[0].strip():
            continue
        cuts = [sentence.start(), *(m.end() for m in _TURN.finditer(passage, *sentence.span())), sentence.end()]
        question = sentence[0].rstrip().endswith("?")
        for start, end in pairwise(cuts):
            text = passage[start:end].strip()
            if text:
                place = passage.index(text, start)
                tokens = tokens_of(text)
                doubtful = question or not _HEDGES.isdisjoint(tokens) or _HEARSAY.search(text) is not None
                yield Clause(text, place, " ".join(stem(token) for token in tokens), doubtful)


def tokens_of(text: str) -> list[str]:
    """Return the words of a clause as its stems are made of them: "isn't" is two words, "dog's" is "dog"."""
    found: list[str] = []
    for match in _TOKEN.finditer(text):
        word = match[0].casefold().replace("\u2019", "'")
        head, mark, tail = word.partition("'")
        if word in _CONTRACTED:
            found += _CONTRACTED[word]
        elif mark and tail == "t" and head.endswith("n"):
            found += [head[:-1], "not"]
        else:
            found += [head, tail] if mark and tail != "s" else [head]
    return found
