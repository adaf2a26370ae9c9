# ruff: noqa: E501 (a pattern reads best whole)
"""read(text, question): yes or no, a form's words, or the words of the right shape nearest to what is asked."""

from __future__ import annotations

import re

from oracle.forms import FORMS
from oracle.language import (
    LOOSE_DATE,
    NAME,
    NATIONS,
    NUMBER,
    PLACE,
    YEAR,
    alike,
    content,
    sentences,
    stem,
    stems,
    tidy,
    words,
)

_AUX = re.compile(r"^\s*(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would)\b", re.IGNORECASE)
_SUBJECT = re.compile(
    r"^\s*\w+ (?:this|the|it|he|she|they|there)(?: (?:person|team|player|city|place|athlete|club|film|song|school|venue|"
    r"driver|rider|artist|album|country|town|station|building|band|event|company|island|river|airport|stadium|actor))?\b",
    re.IGNORECASE,
)
_BORN = re.compile(r"\bborn (?:on |in )(.+?)\??$", re.IGNORECASE)
_DIED = re.compile(r"\b(?:die|died) (?:on |in )(.+?)\??$", re.IGNORECASE)
_OPENERS = frozenset(
    """the a an in on at he she it they his her its their this these as for after before during since when while
    however although therefore there one some many most both during by with from and but of""".split()
)
"""Words in capitals only because they open a sentence."""
_ENOUGH = 0.8
_REACH = 12
"""How many words away from what is asked its answer may stand, to count half."""


def read(text: str, question: str) -> str | None:
    """Give what the text answers, None when nothing of the right shape stands near what is asked."""
    question = " ".join(question.split()).strip()
    if _AUX.match(question):
        return "Yes" if _is_so(text, question) else "No"
    for form in FORMS:
        found = form.find(text, question)
        if found:
            return tidy(found)
    return _nearest(text, question)


def _is_so(text: str, question: str) -> bool:
    """Say whether the text bears out a yes-or-no question."""
    dated = _BORN.search(question) or _DIED.search(question)
    if dated and re.search(YEAR, dated[1]):
        when = "when was this person born?" if _BORN.search(question) else "when did this person die?"
        said = read(text, when)
        return said is not None and set(words(dated[1])) - {"the", "of"} <= set(words(said))
    rest = _SUBJECT.sub("", question) or question
    wanted = [s for s in content(rest) if s]
    if not wanted:
        return False
    return any(_holds(passage, rest, wanted) for passage in text.split("\n\n"))


def _holds(passage: str, question: str, wanted: list[str]) -> bool:
    """Say whether a passage holds every number and name of a question, and most of its other words close together."""
    held = set(stems(passage))
    for name in re.findall(r"[0-9][0-9,.]*[0-9]|[0-9]|(?<=\s)[A-Z][\w’'-]+", question):
        if not all(_any_form(part, held) for part in stems(name)):
            return False
    parts = [set(stems(sentence)) for sentence in sentences(passage)]
    windows = [a | b for a, b in zip(parts, [*parts[1:], set()], strict=True)]
    if not windows:
        return False
    best = max(sum(_any_form(word, window) for word in wanted) for window in windows)
    return best >= _ENOUGH * len(wanted) or (len(wanted) > 6 and sum(_any_form(w, held) for w in wanted) == len(wanted))


def _any_form(word: str, held: set[str]) -> bool:
    if alike(word) & held:
        return True
    for nation, forms in NATIONS.items():
        names = {stem(part) for name in (nation, *forms) for part in [name]}
        if word in names:
            return bool(names & held)
    return False


def _shape(question: str) -> str:
    asked = question.casefold()
    shapes = (
        (r"\bhow many\b|\bhow much\b|\bnumber of\b|\bhow often\b|\bpercent", NUMBER),
        (r"\b(?:what|which) (?:year|season)\b", YEAR),
        (r"\bwhen\b|\b(?:what|which) (?:date|day)\b|\bdate\b", LOOSE_DATE),
        (r"\bwhere\b|\b(?:what|which) (?:city|town|country|state|place|county|region|location)\b", PLACE),
        (r"\bwhat (?:rank|place)\b", r"\b[a-z0-9]+(?:st|nd|rd|th|first|second|third)\b"),
    )
    return next((shape for pattern, shape in shapes if re.search(pattern, asked)), NAME)


def _nearest(text: str, question: str) -> str | None:
    """Give the words of the right shape that stand nearest to most of the question's words."""
    wanted = content(question)
    shape = re.compile(_shape(question))
    asked = set(stems(question))
    noun = _counted(question)
    best, answer = 0.0, None
    for sentence in sentences(text):
        tokens = [(m.start(), stem(m[0])) for m in re.finditer(r"[^\W_]+(?:[.,][0-9]+)*", sentence)]
        for match in shape.finditer(sentence):
            found = set(stems(match[0]))
            if not found or found <= asked or match[0].casefold() in _OPENERS:
                continue
            score = _near(tokens, match, wanted)
            if noun and _followed(tokens, match, noun):
                score += 1.0
            if score > best + 1e-9:
                best, answer = score, match[0]
    return tidy(answer) if answer is not None and best >= 0.5 else None


def _near(tokens: list[tuple[int, str]], match: re.Match[str], wanted: list[str]) -> float:
    first = sum(start < match.start() for start, _ in tokens)
    last = sum(start < match.end() for start, _ in tokens)
    total = 0.0
    for word in dict.fromkeys(wanted):
        forms = alike(word)
        gaps = [
            first - i if i < first else i - last + 1
            for i, (_, s) in enumerate(tokens)
            if s in forms and not first <= i < last
        ]
        if gaps:
            total += 1.0 / (1.0 + min(gaps) / _REACH)
    return total


def _counted(question: str) -> frozenset[str]:
    """Give the stems of the noun that "how many" counts."""
    found = re.search(r"how many (?:different |other |total )?(\w+)(?: (\w+))?", question, re.IGNORECASE)
    return (
        frozenset()
        if not found
        else frozenset().union(
            *(
                alike(stem(g))
                for g in found.groups()
                if g and g not in ("did", "does", "are", "were", "has", "have", "was", "is")
            )
        )
    )


def _followed(tokens: list[tuple[int, str]], match: re.Match[str], noun: frozenset[str]) -> bool:
    after = [s for start, s in tokens if start >= match.end()][:4]
    return any(s in noun for s in after)
