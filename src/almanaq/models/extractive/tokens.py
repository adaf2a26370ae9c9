"""Tokens of a text with their places, and the sentences that they make: the ground of span extraction."""

from __future__ import annotations

import re
from dataclasses import dataclass

from almanaq.text.stopwords import STOPWORDS
from almanaq.text.words import stem

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
    tokens = tuple(_token(match) for match in _TOKEN.finditer(text))
    ends = [i + 1 for i in range(len(tokens)) if _ends(tokens, i, text)]
    starts = [0, *ends]
    pairs = zip(starts, [*ends, len(tokens)], strict=True)
    return Tokens(tokens, tuple((a, b) for a, b in pairs if b > a))


def _token(match: re.Match[str]) -> Token:
    lower = match[0].lower()
    stop = lower in STOPS and match[0] != "May"
    carries = lower[0].isalnum() and not stop
    return Token(match.start(), match.end(), match[0], lower, stem(lower) if carries else "", stop)


def _ends(tokens: tuple[Token, ...], i: int, text: str) -> bool:
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
