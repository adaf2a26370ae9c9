"""Tokens, what an open question asks for, the spans of a text that could answer it, and the features that rank them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import log

from almanaq.models.extractive.words import WORDS
from almanaq.text.words import QUESTION_WORDS, STOPWORDS, stem

_TOKEN = re.compile(
    r"\d+(?:[.,:/\u2013-]\d+)*(?:st|nd|rd|th|s)?\b"  # 1,200 · 12:30 · 1999-2001 · 21st
    r"|[^\W\d_](?:\.[^\W\d_])+\.?"  # U.S.
    r"|[^\W_]+(?:[-'\u2019&.][^\W_]+)*"
    r"|[^\w\s]"
)
_STOPS = STOPWORDS | {"also", "its", "s", "'s", "t"}
"""Words that neither open nor close an answer."""


@dataclass(frozen=True, slots=True)
class Token:
    """A word, a number or a mark of a text: `text[start:end]`; `stem` is empty where it is a mark or a `stop` word."""

    start: int
    end: int
    text: str
    lower: str
    stem: str
    stop: bool


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of a text, and its sentences as (first, end) among them."""

    tokens: tuple[Token, ...]
    sentences: tuple[tuple[int, int], ...]


def read_tokens(text: str) -> Tokens:
    """Return the tokens and sentences of a text; pre-tokenised text ("the city 's") reads like ordinary text."""
    tokens = []
    for match in _TOKEN.finditer(text):
        lower = match[0].lower()
        stop = lower in _STOPS and match[0] != "May"
        carries = lower[0].isalnum() and not stop
        tokens.append(Token(match.start(), match.end(), match[0], lower, stem(lower) if carries else "", stop))
    cuts = [0, *(i + 1 for i in range(len(tokens)) if _ends(tokens, i, text)), len(tokens)]
    return Tokens(tuple(tokens), tuple((a, b) for a, b in pairwise(cuts) if b > a))


def _ends(tokens: Sequence[Token], i: int, text: str) -> bool:
    token = tokens[i]
    following = tokens[i + 1] if i + 1 < len(tokens) else None
    if following is not None and "\n" in text[token.end : following.start]:
        return True
    if token.text not in (".", "!", "?"):
        return False
    before = tokens[i - 1].text if i else ""
    if token.text == "." and (before.lower() in WORDS["abbreviated"] or (len(before) == 1 and before.isupper())):
        return False
    return following is None or not following.text[0].islower()


_NUMERAL = re.compile(r"\d[\d.,:/\u2013-]*(?:st|nd|rd|th|s)?")
_YEAR = re.compile(r"(?:1\d|20)\d\d")
_RANKED = re.compile(r"(?:st|nd|rd|th|s)$")
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}|\d{1,2}/\d{1,2}/\d{4}")


def shape(span: Sequence[Token]) -> str:
    """Return the shape of words: date, daymonth, year, money, time, percent, number, number unit, name, …"""
    numerals = [_NUMERAL.fullmatch(token.lower) is not None for token in span]
    return (
        _date(span, numerals)
        or ("money" if any(token.lower in "$€£" or token.lower == "dollars" for token in span) else "")
        or _number(span, numerals)
        or _words(span, any(numerals))
    )


def _date(span: Sequence[Token], numerals: Sequence[bool]) -> str:
    month = any(token.lower in WORDS["months"] and (token.lower != "may" or token.text == "May") for token in span)
    if month and any(numerals):
        return "date" if len(span) > 2 and any(_YEAR.fullmatch(token.lower) for token in span) else "daymonth"
    if len(span) == 1 and _ISO_DATE.fullmatch(span[0].lower):
        return "date"
    return "year" if len(span) == 1 and _YEAR.fullmatch(span[0].lower) else ""


def _number(span: Sequence[Token], numerals: Sequence[bool]) -> str:
    words, spelled = [token.lower for token in span], WORDS["number_words"]
    if not numerals[0] and words[0] not in spelled:
        return ""
    if ":" in words[0] or words[-1] in ("am", "pm"):
        return "time"
    if "%" in words or "percent" in words:
        return "percent"
    if all(number or word in spelled or word in ",–-" for number, word in zip(numerals, words, strict=True)):
        return "ranked" if len(span) == 1 and numerals[0] and _RANKED.search(words[0]) else "number"
    return "number unit" if any(word in WORDS["units"] for word in words[1:]) else "number words"


def _words(span: Sequence[Token], digits: bool) -> str:
    inner = WORDS["inner"]
    capital = [token.text[0].isupper() for token in span if token.lower not in inner and token.text[0].isalnum()]
    if capital and all(capital):
        return "name" if len(span) > 1 else "one name"
    if any(capital):
        return "mixed"
    return "words and digits" if digits else "words"


_RELATIVE = ("who", "which", "whose", "where", "when")
_KINDS = {stem(word): name.removeprefix("kind_") for name in WORDS if name.startswith("kind_") for word in WORDS[name]}
"""The kind of answer by the noun that names what is asked for."""
_LONGEST_NOUN = 6
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
def read_question(question: str) -> Asked:
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
    return Asked(_kind(words, at, noun), head, frozenset(content), frozenset(focus))


def _carries(word: str) -> bool:
    return word not in _STOPS and word[0].isalnum()


def _question_word(words: Sequence[str]) -> int | None:
    # A "who" or "which" inside the question may only tie a clause to it.
    surely = any(word in ("what", "how") for word in words)
    for i, word in enumerate(words):
        if word in QUESTION_WORDS:
            ties = word in _RELATIVE and i > 0 and surely and words[i - 1] not in (*WORDS["closing"], "and")
            if not ties:
                return i
    return None


def _noun(words: Sequence[str], at: int | None) -> tuple[int, int]:
    """Return where the words are that name what is asked for: "how many GOALS", "what is the MASCOT of"."""
    start = 0 if at is None else at + 1
    word = "what" if at is None else words[at]
    if word == "how":
        if start < len(words) and words[start] in ("many", "much"):
            return start + 1, _until(words, start + 1)
        return start, start
    if word not in ("what", "which", "whose"):
        return start, start
    if at is not None and start < len(words) and words[start] in WORDS["auxiliaries"]:
        if start + 1 < len(words) and words[start + 1] in ("the", "a", "an", "their", "his", "her", "its", "that"):
            return start + 2, _until(words, start + 2)
        return start, start
    return start, _until(words, start)


def _until(words: Sequence[str], first: int) -> int:
    stop, ends = min(len(words), first + _LONGEST_NOUN), WORDS["auxiliaries"] | WORDS["closing"]
    return next((k for k in range(first, stop) if words[k] in ends), stop)


def _kind(words: Sequence[str], at: int | None, noun: Sequence[str]) -> str:
    word = "none" if at is None else words[at]
    if at is not None and word == "how":
        measure = words[at + 1] if at + 1 < len(words) else ""
        return f"how {measure}" if measure in WORDS["measures"] else "how"
    if word not in ("what", "which", "whose", "none"):
        return "who" if word == "whom" else word
    if "year" in noun:
        return "what:year"
    kinds = [_KINDS[stem(each)] for each in reversed(noun) if stem(each) in _KINDS]
    return "what:" + (kinds[0] if kinds else "thing" if noun else "")


Features = dict[str, float]

_LONGEST = 8
_MOST_SENTENCES = 24
_INSIDE = frozenset((",", ".", "-", "–", "'", "&", "%", '"', "$", "/", ":"))


@dataclass(frozen=True, slots=True)
class Candidate:
    """Words of a passage that could answer: `tokens` in its sentence from character `start` to `end`."""

    tokens: tuple[Token, ...]
    start: int
    end: int
    features: Features


class Scene:
    """A passage as one question sees it: which of its words the question holds, and how much each sentence does."""

    def __init__(self, question: Asked, passage: str) -> None:
        self.question = question
        self.read = read_tokens(passage)
        self.tokens = self.read.tokens
        stems = [token.stem for token in self.tokens]
        counts = Counter(stems)
        self._shared = [s != "" and s in question.stems for s in stems]
        self._focus = [s != "" and s in question.focus for s in stems]
        self._worth = [
            sum(1 / (1 + log(counts[s])) for s in {stems[k] for k in range(a, b) if self._shared[k]})
            for a, b in self.read.sentences
        ]
        self._focused = [len({stems[k] for k in range(a, b) if self._focus[k]}) for a, b in self.read.sentences]
        self._best = max(self._worth, default=0.0)
        self.covered = len(question.stems & set(stems)) / max(1, len(question.stems))
        self.focused = len(question.focus & set(stems)) / max(1, len(question.focus))

    def candidates(self) -> Iterator[Candidate]:
        """Yield what could answer, in the sentences that share most with the question."""
        order = sorted(range(len(self._worth)), key=lambda s: (-self._worth[s] - self._focused[s] / 2, s))
        for sentence in sorted(order[:_MOST_SENTENCES]):
            begin, stop = self.read.sentences[sentence]
            start, end = self.tokens[begin].start, self.tokens[stop - 1].end
            for first, last in _spans(self.tokens, begin, stop):
                span = (first, last, begin, stop)
                features = self._form(*span) | self._overlap(first, last) | self._sentence(sentence)
                yield Candidate(self.tokens[first:last], start, end, features | self._nearness(*span))

    def _form(self, first: int, last: int, start: int, end: int) -> Features:
        kind, form = self.question.kind, shape(self.tokens[first:last])
        before = _neighbour(self.tokens[first - 1], WORDS["before"]) if first > start else "^"
        after = _neighbour(self.tokens[last], WORDS["after"]) if last < end else "$"
        names = (f"{kind}|{form}", f"{kind}|length {min(last - first, 6)}", f"{kind}|< {before}", f"{form}|> {after}")
        return dict.fromkeys(names, 1.0)

    def _overlap(self, first: int, last: int) -> Features:
        found: Features = {}
        stems, head = [token.stem for token in self.tokens[first:last]], self.question.head
        shared, carrying = sum(self._shared[first:last]), sum(map(bool, stems))
        if shared:
            found |= {"shared": 1.0, "all shared": float(shared == carrying), "share": shared / max(carrying, 1)}
        if head and stems[-1] == head:
            found["ends in head"] = 1.0
        elif head and head in stems:
            found["holds head"] = 1.0
        if head and last < len(self.tokens) and self.tokens[last].stem == head:
            found["head after"] = 1.0
        if head and head in [token.stem for token in self.tokens[max(0, first - 2) : first]]:
            found["head before"] = 1.0
        return found

    def _sentence(self, sentence: int) -> Features:
        worth = self._worth[sentence]
        return {
            "worth": worth / 3,
            "relative worth": worth / self._best if self._best else 0.0,
            "focus": self._focused[sentence] / 2,
            "sentence place": min(sentence, 6) / 6,
        }

    def _nearness(self, first: int, last: int, start: int, end: int) -> Features:
        found: Features = {"place": (first - start) / max(1, end - start)}
        for name, held in (("near", self._shared), ("focus near", self._focus)):
            away = (first - k if k < first else k - last + 1 for k in range(start, end) if held[k])
            found[name] = sum(1 / (1 + distance) for distance in away if distance > 0)
        return found


def _spans(tokens: Sequence[Token], start: int, end: int) -> Iterator[tuple[int, int]]:
    # They neither open nor close with a stop word or a mark.
    for first in range(start, end):
        opening = tokens[first].lower
        if tokens[first].stop or not (opening[0].isalnum() or opening in '$€£"'):
            continue
        for last in range(first + 1, min(end, first + _LONGEST) + 1):
            closing = tokens[last - 1].lower
            if last - 1 > first and not closing[0].isalnum():
                if closing not in _INSIDE:
                    break
                if closing != "%" and not (closing == "." and len(tokens[last - 2].text) <= 2):
                    continue
            elif last - 1 > first and (tokens[last - 1].stop or closing in WORDS["inner"]):
                if closing in WORDS["inner"] or closing in ("his", "her", "their", "its"):
                    continue
                break
            yield first, last


def _neighbour(token: Token, known: frozenset[str]) -> str:
    if token.lower in known:
        return token.lower
    if token.text[0].isdigit():
        return "digit"
    if not token.text[0].isalnum():
        return "mark"
    return "verb" if token.lower.endswith(("ed", "ing")) else "word"
