"""Answers to open questions: the clause that speaks most of what is asked, and the words in it of the right type."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from almanaq.models.extractive.clauses import Clause, clauses
from almanaq.models.protocols import Quote
from almanaq.models.words import stems

_MONTH = (
    "(?:January|February|March|April|May|June|July|August|September|October|November|December|Jan|Feb|Mar|Apr|Jun|Jul|"
    r"Aug|Sept?|Oct|Nov|Dec)\.?"
)
_DATE = re.compile(
    rf"\b\d{{4}}-\d{{2}}-\d{{2}}\b|\b\d{{1,2}}(?:st|nd|rd|th)?\s+{_MONTH}\s+\d{{4}}\b"
    rf"|\b{_MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?,?\s+\d{{4}}\b|\b{_MONTH}\s+\d{{4}}\b|\b\d{{1,2}}/\d{{1,2}}/\d{{4}}\b"
)
_YEAR = re.compile(r"\b(?:1[0-9]|20)\d{2}\b")
_MONEY = re.compile(
    r"(?:US)?[$€£]\s?\d[\d,]*(?:\.\d+)?\s?(?:k|m|bn|million|billion|thousand)?\b"
    r"|\b\d[\d,]*(?:\.\d+)?\s(?:dollars|bucks|euros|pounds)\b",
    re.IGNORECASE,
)
_TIME = re.compile(r"\b\d{1,2}:\d{2}(?::\d{2})?(?:\.\d+)?\s?(?:am|pm)?\b|\b\d{1,2}\s?(?:am|pm)\b", re.IGNORECASE)
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?(?:\s?(?:%|percent|million|billion|thousand))?(?!\w)")
_NAME = re.compile(
    r"\b[A-Z][\w'\u2019.&-]*[\w](?:\s+(?:(?:of|the|de|la|le|van|von|and|&)\s+)?[A-Z][\w'\u2019.&-]*[\w])*"
)
_PLACE = re.compile(r"\b(?:in|at|near|on|from|to)\s+(?:the\s+)?(" + _NAME.pattern + ")")

_LEAST_OVERLAP = 0.5
"""Share of the question's words that a clause and its neighbours must hold for its span to count as an answer."""


@dataclass(frozen=True, slots=True)
class Span:
    """Words that answer a question; `confidence` from 0 to 1."""

    quote: Quote
    confidence: float


def answer_kind(question: str, type: str) -> str:
    """Give what kind of words answers a question: its type decides, else its question word."""
    kinds = {"date": "date", "timestamp": "date", "time": "time", "number": "number", "integer": "number"}
    asked = question.lower()
    if type in kinds:
        return "money" if kinds[type] == "number" and re.search(r"\b(?:price|cost|pay|spend)", asked) else kinds[type]
    patterns = (
        (r"\bhow much\b.*\b(?:cost|pay|price|spend)|\bprice\b|\bcost\b", "money"),
        (r"\bhow (?:many|much|old|far|long|tall|high|big|large)\b|\bnumber of\b|\bhow often\b", "number"),
        (r"\b(?:what|which) year\b|\byear\b", "year"),
        (r"\bwhat time\b|\bopening hours\b|\bhow early\b|\bhow late\b", "time"),
        (r"\bwhen\b|\b(?:what|which) (?:date|day|month)\b|\bdate of\b|\bbirth ?date\b", "date"),
        (r"\bwhere\b|\b(?:what|which) (?:city|country|place|town|state|location)\b", "place"),
        (r"\bwho\b|\bwhom\b|\bname\b|\b(?:what|which) (?:person|team|club|company|player|actor|director)\b", "name"),
    )
    return next((kind for pattern, kind in patterns if re.search(pattern, asked)), "sentence")


def best_span(passages: Sequence[str], question: str, type: str) -> Span | None:
    """Give the words of the document that best answer an open question, None when nothing speaks of it."""
    keys = set(stems(question)) - _QUESTION_STEMS
    kind = answer_kind(question, type)
    best: Span | None = None
    for number, passage in enumerate(passages):
        around = clauses(passage)
        for at, clause in enumerate(around):
            overlap = _overlap(keys, clause, around[max(0, at - 1) : at])
            if best is not None and overlap <= best.confidence:
                continue
            for start, text in _candidates(clause, kind, question):
                if overlap >= _LEAST_OVERLAP:
                    best = Span(Quote(number, clause.start + start, text), overlap)
                    break
    return best


_QUESTION_STEMS = frozenset(stems("year number name date time much many kind type often first"))


def _overlap(keys: set[str], clause: Clause, before: Sequence[Clause]) -> float:
    """Give the share of the question's words that a clause holds; those of the clause before count half."""
    if not keys:
        return _LEAST_OVERLAP
    held = set(clause.stems.split())
    near = {word for other in before for word in other.stems.split()} - held
    return (len(keys & held) + len(keys & near) / 2) / len(keys)


def _candidates(clause: Clause, kind: str, question: str) -> Iterator[tuple[int, str]]:
    """Give (start, words) of what could answer in a clause, the likeliest first."""
    if kind == "sentence":
        yield 0, clause.text
        return
    patterns = {
        "date": (_DATE, _YEAR),
        "year": (_YEAR,),
        "money": (_MONEY, _NUMBER),
        "time": (_TIME,),
        "number": (_NUMBER,),
        "place": (_PLACE, _NAME),
        "name": (_NAME,),
    }[kind]
    asked = question.lower()
    for pattern in patterns:
        matches = list(pattern.finditer(clause.text))
        if kind == "number":
            matches.sort(key=lambda match: _counts(match, clause.text, question), reverse=True)
        for match in matches:
            group = 1 if pattern is _PLACE else 0
            text = match[group]
            # A name that the question itself gives does not answer it; nor does the word that opens a sentence.
            if kind in ("name", "place") and (text.lower() in asked or not stems(text)):
                continue
            yield match.start(group), text


def _counts(match: re.Match[str], text: str, question: str) -> int:
    """Say how well a number fits: it counts a thing that was asked for (2), it could (1), it looks like a year (0)."""
    following = set(stems(text[match.end() : match.end() + 24])[:1])
    if following & set(stems(question)):
        return 2
    return 0 if _YEAR.fullmatch(match[0]) else 1
