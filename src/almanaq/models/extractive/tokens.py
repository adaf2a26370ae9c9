"""Tokens of a text with their places, the sentences that they make, and what kind of thing words look like."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from almanaq.text.words import STOPWORDS, stem

_TOKEN = re.compile(
    r"\d+(?:[.,:/\u2013-]\d+)*(?:st|nd|rd|th|s)?\b"  # 1,200 · 12:30 · 1999-2001 · 21st
    r"|[^\W\d_](?:\.[^\W\d_])+\.?"  # U.S.
    r"|[^\W_]+(?:[-'\u2019&.][^\W_]+)*"
    r"|[^\w\s]"
)
_ABBREVIATED = frozenset(
    """mr mrs ms dr st jr sr no vs gen col lt capt prof rev inc co ltd approx c ca b d jan feb mar apr jun jul aug sep
    sept oct nov dec""".split()
)
STOPS = STOPWORDS | {"also", "its", "s", "'s", "t"}
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
        stop = lower in STOPS and match[0] != "May"
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
    if token.text == "." and (before.lower() in _ABBREVIATED or (len(before) == 1 and before.isupper())):
        return False
    return following is None or not following.text[0].islower()


_MONTHS = frozenset(
    """january february march april may june july august september october november december jan feb mar apr jun jul aug
    sep sept oct nov dec""".split()
)
NUMBER_WORDS = frozenset(
    """one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion
    dozen""".split()
)
_ORDINALS = frozenset("first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth last".split())
UNITS = frozenset(
    """km kilometers kilometres kilometer kilometre miles mile mi m meters metres meter metre feet foot ft acres
    hectares ha km² mi² percent % years year months weeks days day hours minutes seconds people inhabitants residents kg
    lb pounds seats times million billion thousand square sq am pm""".split()
)
INNER = frozenset(
    "of the and de la le for in & - – du von van del da al der di to on at a an or with by from 's".split()
)
"""Words that may stand inside a name or another answer."""

_NUMERAL = re.compile(r"\d[\d.,:/\u2013-]*(?:st|nd|rd|th|s)?")
_YEAR = re.compile(r"(?:1\d|20)\d\d")
_RANKED = re.compile(r"(?:st|nd|rd|th|s)$")
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}|\d{1,2}/\d{1,2}/\d{4}")


def shape(span: Sequence[Token]) -> str:
    """Return the shape of words: date, daymonth, year, money, time, percent, number, number unit, ordinal, name, …"""
    numerals = [_NUMERAL.fullmatch(token.lower) is not None for token in span]
    return (
        _date(span, numerals)
        or ("money" if any(token.lower in "$€£" or token.lower == "dollars" for token in span) else "")
        or _number(span, numerals)
        or ("ordinal" if all(token.lower in _ORDINALS for token in span) else "")
        or _words(span, any(numerals))
    )


def _date(span: Sequence[Token], numerals: Sequence[bool]) -> str:
    month = any(token.lower in _MONTHS and (token.lower != "may" or token.text == "May") for token in span)
    if month and any(numerals):
        return "date" if len(span) > 2 and any(_YEAR.fullmatch(token.lower) for token in span) else "daymonth"
    if len(span) == 1 and _ISO_DATE.fullmatch(span[0].lower):
        return "date"
    return "year" if len(span) == 1 and _YEAR.fullmatch(span[0].lower) else ""


def _number(span: Sequence[Token], numerals: Sequence[bool]) -> str:
    words = [token.lower for token in span]
    if not numerals[0] and words[0] not in NUMBER_WORDS:
        return ""
    if ":" in words[0] or words[-1] in ("am", "pm"):
        return "time"
    if "%" in words or "percent" in words:
        return "percent"
    if all(number or word in NUMBER_WORDS or word in ",–-" for number, word in zip(numerals, words, strict=True)):
        return "ranked" if len(span) == 1 and numerals[0] and _RANKED.search(words[0]) else "number"
    return "number unit" if any(word in UNITS for word in words[1:]) else "number words"


def _words(span: Sequence[Token], digits: bool) -> str:
    capital = [token.text[0].isupper() for token in span if token.lower not in INNER and token.text[0].isalnum()]
    if capital and all(capital):
        return "name" if len(span) > 1 else "one name"
    if any(capital):
        return "mixed"
    return "words and digits" if digits else "words"
