"""read(text, question): yes or no, a form's words, or the words of the right shape nearest to what is asked."""

from __future__ import annotations

import re
from itertools import pairwise

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
_PLACED = re.compile(r"\b(?:in|at|on|near|to|from|of)(?: the)? ?$")
_SUBJECT = re.compile(r"^\s*\w+ (?:this \w+|it|he|she|they|there)\b", re.IGNORECASE)
_CENTURY = re.compile(r"\b([0-9]{1,2})(?:st|nd|rd|th)[- ]century\b", re.IGNORECASE)
_CALLED = re.compile(r"\b(?:nicknamed|called) ['\"]?([A-Z]\w+)['\"]?\??$")
_SHORT, _TOGETHER, _PAIRS = 6, 3, 3
"""A passage of so many sentences is read as one; words asked side by side stand so near; asked of so many pairs."""
_BORN = re.compile(r"\bborn (?:on |in )(.+?)\??$", re.IGNORECASE)
_DIED = re.compile(r"\b(?:die|died) (?:on |in )(.+?)\??$", re.IGNORECASE)
_OPENERS = frozenset(
    """the a an in on at he she it they his her its their this these as for after before during since when while
    however although therefore there one some many most both during by with from and but of""".split()
)
"""Words in capitals only because they open a sentence."""
_ENOUGH, _NAMED = 0.8, 0.7
"""Share of a question's words that a passage must hold; where it holds two of the question's names, fewer do."""
_REACH = 12
"""How many words away from what is asked its answer may stand, to count half."""


def read(text: str, question: str) -> str | None:
    """Return what the text answers, None when nothing of the right shape stands near what is asked."""
    question = " ".join(question.split()).strip()
    if _AUX.match(question):
        return "Yes" if _is_so(text, question) else "No"
    for form in FORMS:
        found = form.find(text, question)
        if found:
            return _whole_name(tidy(found), text, question)
    found = _nearest(text, question)
    return None if found is None else _whole_name(found, text, question)


def _whole_name(found: str, text: str, question: str) -> str:
    """Return a person's name in full where only the last name stands beside what is asked."""
    if not question.casefold().startswith(("who", "whom")) or " " in found:
        return found
    longer = re.search(rf"((?:[A-Z][\w.'’-]+ ){{1,3}}{re.escape(found)})\b", text)
    return tidy(longer[1]) if longer else found


def _is_so(text: str, question: str) -> bool:
    """Return whether the text bears out a yes-or-no question."""
    dated = _BORN.search(question) or _DIED.search(question)
    if dated and re.search(YEAR, dated[1]):
        when = "when was this person born?" if _BORN.search(question) else "when did this person die?"
        said = read(text, when)
        return said is not None and set(words(dated[1])) - {"the", "of"} <= set(words(said))
    rest = _SUBJECT.sub("", question) or question
    return any(_bears_out(passage, rest) for passage in text.split("\n\n"))


def _bears_out(passage: str, question: str) -> bool:
    called = _CALLED.search(question)
    if called and called[1] in passage.split("(")[0].split():
        return True
    century = _CENTURY.search(question)
    if century and any(-(-int(year) // 100) == int(century[1]) for year in re.findall(YEAR, passage)):
        question = question.replace(century[0], "")
    wanted = content(question)
    return bool(wanted) and _holds(passage, question, wanted)


def _holds(passage: str, question: str, wanted: list[str]) -> bool:
    """Return whether a passage holds every number and name of a question, and most of its other
    words close together.
    """
    held = set(stems(passage))
    names = re.findall(r"[0-9][0-9,.]*[0-9]|[0-9]|(?<=\s)[A-Z][\w’'-]+", question)
    for name in names:
        if not all(_any_form(part, held) for part in stems(name)):
            return False
    parts = [set(stems(sentence)) for sentence in sentences(passage)]
    windows = [a | b for a, b in zip(parts, [*parts[1:], set()], strict=True)]
    if not windows:
        return False
    best = max(sum(_any_form(word, window) for word in wanted) for window in windows)
    whole = sum(_any_form(word, held) for word in wanted) == len(wanted)
    enough = _ENOUGH if len(names) < 2 else _NAMED
    if best < enough * len(wanted) and not (whole and (len(wanted) > 6 or len(parts) <= _SHORT)):
        return False
    return _side_by_side(passage, wanted)


def _side_by_side(passage: str, wanted: list[str]) -> bool:
    """Return whether at least half of the words that a question puts side by side stand near each other."""
    said = stems(passage)
    places = {word: [i for i, s in enumerate(said) if s in alike(word)] for word in wanted}
    pairs = list(pairwise(wanted))
    near = sum(any(0 < abs(i - j) <= _TOGETHER for i in places[a] for j in places[b]) for a, b in pairs)
    return len(pairs) < _PAIRS or near * 2 >= len(pairs)


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
    """Return the words of the right shape that stand nearest to most of the question's words."""
    wanted = content(question)
    shape = re.compile(_shape(question))
    asked = set(stems(question))
    noun = _counted(question)
    best, answer = 0.0, None
    for sentence in sentences(text):
        tokens = [(m.start(), stem(m[0])) for m in re.finditer(r"[^\W_]+(?:[.,][0-9]+)*", sentence)]
        for match in shape.finditer(sentence):
            if shape.pattern == PLACE and not _PLACED.search(sentence[: match.start()]):
                continue
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
    """Return the stems of the noun that "how many" counts."""
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
