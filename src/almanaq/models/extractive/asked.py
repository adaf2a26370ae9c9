"""What an open question asks for: its question word, the noun that names the answer, and the words that lead to it."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from almanaq.models.extractive.tokens import STOPS, read_tokens
from almanaq.text.words import QUESTION_WORDS, stem

_RELATIVE = ("who", "which", "whose", "where", "when")
_MEASURES = frozenset("many much long old far tall high large big fast deep wide often".split())
_AUXILIARIES = frozenset("is are was were does do did has have had can could will would should 's be been".split())
_CLOSING = frozenset(
    """of in for that which who whose with at on by to from where when as located whom during under held between after
    before named called , ?""".split()
)
_NAMING = frozenset(("name", "names", "type", "kind", "sort"))
_NOUNS: dict[str, str] = tomllib.loads((files(__package__) / "nouns.toml").read_text("utf-8"))
"""Nouns that name what is asked for, by the kind of answer."""
_KINDS = {stem(word): kind for kind, words in _NOUNS.items() for word in words.split()}
_EMPTY = frozenset(stem(word) for word in ("many", "much", "year", "name"))
_LONGEST = 6
_FOLLOWING = 8


@dataclass(frozen=True, slots=True)
class Asked:
    """What a question asks for.

    Attributes:
        kind: "who", "when", "how many", …; for what and which "what:" and the kind of noun that follows.
        head: stem of the noun that names the answer ("county"), empty where none does.
        stems: the stems of the question that carry meaning.
        focus: those that say how the answer stands to its subject: the noun asked for and what follows it.
    """

    kind: str
    head: str
    stems: frozenset[str]
    focus: frozenset[str]


@lru_cache(maxsize=1_000)
def asked(question: str) -> Asked:
    """Return what a question asks for."""
    words = [token.lower for token in read_tokens(question).tokens]
    at = _question_word(words)
    first, end = _noun(words, at)
    noun = [word for word in words[first:end] if word[0].isalnum()]
    while len(noun) > 1 and noun[-1].endswith("ed"):
        noun.pop()
    content = [stem(word) for word in words if _carries(word)]
    following = [] if at is None else [stem(w) for w in words[max(end, at + 1) :][:_FOLLOWING] if _carries(w)][:3]
    focus = {*following, *(stem(word) for word in noun)} if at is not None else set()
    head = stem(noun[-1]) if noun else ""
    return Asked(_kind(words, at, noun), head, frozenset(content) - _EMPTY, frozenset(focus))


def _carries(word: str) -> bool:
    return word not in STOPS and word[0].isalnum()


def _question_word(words: Sequence[str]) -> int | None:
    """Return the place of the word that asks; a "who" or "which" inside the question may only tie a clause to it."""
    surely = any(word in ("what", "how") for word in words)
    for i, word in enumerate(words):
        if word in QUESTION_WORDS:
            ties = word in _RELATIVE and i > 0 and surely and words[i - 1] not in (*_CLOSING, "and")
            if not ties:
                return i
    return None


def _noun(words: Sequence[str], at: int | None) -> tuple[int, int]:
    """Return the words that name what is asked for: "how many GOALS", "what RIVER runs", "what is the MASCOT of"."""
    start = 0 if at is None else at + 1
    word = "what" if at is None else words[at]
    if word == "how":
        if start < len(words) and words[start] in ("many", "much"):
            return start + 1, _until(words, start + 1)
        return start, start
    if word not in ("what", "which", "whose"):
        return start, start
    if at is not None and start < len(words) and words[start] in _AUXILIARIES:
        if start + 1 < len(words) and words[start + 1] in ("the", "a", "an", "their", "his", "her", "its", "that"):
            return _past_naming(words, start + 2, _until(words, start + 2))
        return start, start
    return _past_naming(words, start, _until(words, start))


def _until(words: Sequence[str], first: int) -> int:
    end = first
    while end < min(len(words), first + _LONGEST) and words[end] not in _AUXILIARIES and words[end] not in _CLOSING:
        end += 1
    return end


def _past_naming(words: Sequence[str], first: int, end: int) -> tuple[int, int]:
    """Go on from "the name of" or "type of" to what is named."""
    if end - first == 1 and words[first] in _NAMING and words[end : end + 1] == ["of"]:
        start = end + 1 + (words[end + 1 : end + 2] in (["the"], ["a"], ["an"]))
        if (last := _until(words, start)) > start:
            return start, last
    return first, end


def _kind(words: Sequence[str], at: int | None, noun: Sequence[str]) -> str:
    word = "none" if at is None else words[at]
    if at is not None and word == "how":
        measure = words[at + 1] if at + 1 < len(words) else ""
        return f"how {measure}" if measure in _MEASURES else "how"
    if word not in ("what", "which", "whose", "none"):
        return "who" if word == "whom" else word
    if "year" in noun:
        return "what:year"
    kinds = [_KINDS[stem(each)] for each in reversed(noun) if stem(each) in _KINDS]
    return "what:" + (kinds[0] if kinds else "thing" if noun else "")
