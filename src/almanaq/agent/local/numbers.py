"""Numbers of a question with the comparisons they stand in, and how many rows it asks for."""

from __future__ import annotations

import re

from almanaq.agent.local.links import Links, NumberLink
from almanaq.agent.local.quantities import COMPARISONS, COMPARISONS_AFTER, NUMBER_WORDS, ROLE_WORDS, SUPERLATIVES, UNITS

_NUMBER = re.compile(r"([$€£]?)(\d[\d,]*(?:\.\d+)?)([kKmM]?)(\+?)$")
_NAMED = frozenset(UNITS) | frozenset(word for words in ROLE_WORDS.values() for word in words)
"""Stems that may stand between a comparison and its number: "above AGE 20"."""
_NO_UNIT = frozenset((",", ";", "in", "of", "the", "a", "an", "at", "for", "to", "on", "with", "by", "and", "or"))
_SCALES = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "k": 1e3, "m": 1e6}
_LIMIT_CUES = (
    "top",
    "best",
    "first",
    "show",
    "give",
    "list",
    "find",
    "recommend",
    "suggest",
    "any",
    "me",
    "are",
    "highest-rated",
    "name",
    "bottom",
)


def number(text: str) -> float | None:
    """Give the number that a word spells, None when it spells none: "$1,200", "4.5", "20k", "three"."""
    match = _NUMBER.match(text)
    if match:
        return float(match[2].replace(",", "")) * _SCALES.get(match[3].casefold(), 1)
    return float(NUMBER_WORDS[text.casefold()]) if text.casefold() in NUMBER_WORDS else None


def link_numbers(links: Links) -> None:
    """Find comparisons, then a wish for a number of rows; what is neither stays unlinked."""
    i = 0
    while i < len(links.words):
        if links.free(i, i + 1) and number(links.words[i].text) is not None:
            i = max(_between(links, i) or _compared(links, i) or i + 1, i + 1)
        else:
            i += 1
    for i in range(len(links.words)):
        _row_limit(links, i)
        if links.says(i, ("out", "of", "stock")) and links.free(i, i + 3):
            links.numbers.append(NumberLink(i, i + 3, "=", (0.0,), ("stock",), ("quantity",), False))
            links.take(i, i + 3, "number")


def _read(links: Links, i: int) -> tuple[float, int]:
    """Give the number at word i, scaled by the word after it, and the index after both."""
    value = number(links.words[i].text) or 0.0
    scale = _SCALES.get(links.folded(i + 1)) if len(links.folded(i + 1)) > 1 else None
    return (value * scale, i + 2) if scale else (value, i + 1)


def _between(links: Links, i: int) -> int | None:
    low, after = _read(links, i)
    cue = links.folded(i - 1)
    if cue not in ("between", "from") or links.folded(after) not in ("and", "to") or after + 1 >= len(links.words):
        return None
    if number(links.words[after + 1].text) is None:
        return None
    high, end = _read(links, after + 1)
    _add(links, (i - 1, end), "between", (low, high))
    return end


def _compared(links: Links, i: int) -> int | None:
    """Link the number at word i when a comparison or a unit stands beside it."""
    value, end = _read(links, i)
    first, operator = i, ""
    start = i - 1 if links.stem(i - 1) in _NAMED and links.words[i].text[0].isdigit() else i
    for cue, sign in COMPARISONS:
        near = next((at for at in dict.fromkeys((i, start)) if links.says(at - len(cue), cue)), None)
        if near is not None:
            first, operator = near - len(cue), sign
            break
    for cue, sign in COMPARISONS_AFTER:
        if links.says(end, cue):
            operator, end = sign, end + len(cue)
            break
    else:
        skip = end + 1
        for cue, sign in COMPARISONS_AFTER:
            if not operator and skip < len(links.words) and links.says(skip, cue):
                operator = sign
                links.take(skip, skip + len(cue), "comparison")
    if links.words[i].text.endswith("+"):
        operator = ">="
    written = links.words[i].text
    plain = not operator
    if plain and written[0].isalpha():
        return None
    named = start < i or _alternative(links, i) or links.folded(i - 1) in ("either", "is", "equals")
    if plain and not (named or _unit(links, end) or written[0] in "$€£" or _year(links, i, value)):
        return None
    _add(links, (first, end), operator or "=", (value,))
    return end


def _alternative(links: Links, i: int) -> bool:
    """Say whether word i goes on after a number that was compared: "grade 9 or 10"."""
    return links.folded(i - 1) in ("or", ",") and any(
        n.operator == "=" and i - 2 <= n.last <= i - 1 for n in links.numbers
    )


def _unit(links: Links, i: int) -> bool:
    return links.stem(i) in ("star", "dollar", "buck") or (
        links.stem(i) in ("year", "minute", "hour") and links.folded(i + 1) in ("old", "long")
    )


def _year(links: Links, i: int, value: float) -> bool:
    return (
        value == int(value)
        and 1000 <= value <= 2100
        and "," not in links.words[i].text
        and links.words[i].text[0].isdigit()
    )


def _add(links: Links, span: tuple[int, int], operator: str, numbers: tuple[float, ...]) -> None:
    first, end = span
    units = _around(links, first, end)
    roles: dict[str, None] = {}
    money = next((w.text[0] for w in links.words[first:end] if w.text[0] in "$€£"), None)
    for unit in ([money] if money else []) + list(units):
        for role in UNITS.get(unit, ()):
            roles.setdefault(role)
    operator = _turned(links, span, operator)
    year = all(n == int(n) and 1000 <= n <= 2100 for n in numbers) and not money
    bare = end >= len(links.words) or links.used[end] == "mark" or links.folded(end) in _NO_UNIT
    links.numbers.append(NumberLink(first, end, operator, numbers, units, tuple(roles), year, bare))
    links.take(first, end, "number")
    if UNITS.get(links.stem(end)) and links.free(end, end + 1):
        links.take(end, end + 1, "unit")
        if links.folded(end + 1) in ("old", "long", "tall"):
            links.take(end + 1, end + 2, "unit")


def _turned(links: Links, span: tuple[int, int], operator: str) -> str:
    """Turn a comparison that "not" stands before."""
    turned = {">": "<=", "<": ">=", ">=": "<", "<=": ">", "=": "<>"}
    if links.folded(span[0] - 1) in ("not", "n't") and operator in turned:
        links.take(span[0] - 1, span[0], "negation")
        return turned[operator]
    return operator


def _around(links: Links, first: int, end: int) -> tuple[str, ...]:
    """Give the stems near a number, nearest first; its own comparison words ("older") count as well."""
    found: list[str] = []
    for k in (*range(first, end), end, end + 1, first - 1, first - 2, end + 2, first - 3, first - 4):
        word = links.stem(k)
        between = links.words[max(k, 0) : first] if k < first else links.words[end:k]
        if word in _NO_UNIT or any(w.text[0].isdigit() for w in between):  # what is beyond another number is of that
            continue
        if word and number(word) is None:
            found.append(word)
    return tuple(found)


def _row_limit(links: Links, i: int) -> None:
    """Take a whole number after "top", or before a noun at the start of a request, as the number of rows asked for."""
    if links.limit is not None or not links.free(i, i + 1):
        return
    value = number(links.words[i].text)
    before = links.folded(i - 1)
    if value is None or value != int(value) or not 0 < value <= 1000:
        return
    opening = all(
        links.folded(k)
        in ("the", "what", "which", "are", "give", "me", "list", "show", "find", "a", "i", "want", "need")
        for k in range(i)
    )
    if (
        before in _LIMIT_CUES
        or before in SUPERLATIVES
        or opening
        or links.folded(i + 1)
        in ("best", "cheapest", "most", "highest", "top", "oldest", "youngest", "largest", "longest")
    ):
        links.limit = int(value)
        links.take(i, i + 1, "limit")
