"""Takes the words of a turn: for values, numbers, names, orders; and for nothing, where they only tell of the asker."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from almanaq.agent.local_old.lexicon import ADJECTIVES, BEFORE_VALUES, COUNTING, IGNORED, NEGATIONS, QUALITY, TITLES, UNITS
from almanaq.agent.local_old.once_a_turn import once_a_turn
from almanaq.agent.local_old.recognize.heard import heard
from almanaq.agent.local_old.recognize.names import OTHER_FORM
from almanaq.agent.local_old.recognize.spans import Span, best_cover
from almanaq.agent.local_old.recognize.tokens import Token
from almanaq.agent.local_old.recognize.vocabulary import Vocabulary
from almanaq.agent.local_old.search.chatter import drop_chatter
from almanaq.agent.local_old.search.domain import Domain, domain_of
from almanaq.agent.local_old.search.links import Links, Value
from almanaq.agent.local_old.words import stems

_TAKEN = "VRCODSNH"
"""Kinds of spans that a search makes something of; what other spans hold may be a wish that only texts tell."""
_LEFT = "&|w?vrBXAPUEFGM"
_NEAR = 3
"""Most words between "average" and the column that it is of."""
_QUOTED = re.compile('"([^"]+)"|“([^”]+)”')


@once_a_turn
def link(question: str, vocabulary: Vocabulary) -> Links:
    """Return what the words of a turn are taken for."""
    tokens, spans = heard(question, vocabulary)
    found = Links(question, tokens, ["mark" if t.text in ",;?!." else None for t in tokens])
    found.domain = domain_of(vocabulary.index.catalog)
    found.idioms = frozenset(_idioms(found))
    spans = [span for span in spans if span.score != OTHER_FORM or span.kind not in "CV"]  # left to the texts
    near = [each for span in spans if span.kind in _TAKEN + _LEFT for each in _meant(found, span, vocabulary)]
    cover = sorted(best_cover([*near, *_loose(found, vocabulary)], len(tokens)), key=lambda span: span.first)
    for span in cover:
        _take(found, span)
    for i, token in enumerate(tokens):
        if token.folded == "rated" and found.folded(i - 1) in ("well", "highly"):
            found.take(i, i + 1, "praise")
    drop_chatter(found)
    found.counts = any(span.kind == "H" and found.used[span.first - 1 : span.first] != ["C"] for span in cover)
    found.kin = frozenset(name for span in cover if span.kind == "r" for name in span.data)
    found.computed = _is_computed(found, cover)
    return found


def _is_computed(links: Links, cover: Sequence[Span]) -> bool:
    """Return whether figures or groups are asked for, which no search gives."""
    kinds = "".join(span.kind for span in cover)
    ranked = bool(re.search("C[wB]*S[w]*R", kinds)) and not links.values  # "which city has the most restaurants"
    figures = any(span.kind == "A" and _is_of_column(span, links.columns) for span in cover)
    grouped = "B" in kinds and not set("SF") & set(kinds)
    return ranked or figures or grouped or "P" in kinds or {"H", "U"} <= set(kinds)


def _is_of_column(span: Span, columns: Sequence[Span]) -> bool:
    """Return whether a column stands after a word for a figure: "I mean" asks for no mean."""
    return any(0 <= column.first - span.last <= _NEAR for column in columns)


def _idioms(links: Links) -> Iterator[int]:
    """Yield the tokens of fixed expressions, that they are not taken one by one."""
    for i in range(len(links.tokens) - 1):
        if (links.stem(i), links.stem(i + 1)) in links.domain.idioms:
            yield from (i, i + 1)


def _meant(links: Links, span: Span, vocabulary: Vocabulary) -> Iterator[Span]:
    """Yield what a span means in a search: no part of an idiom, no praised part of a row, no item of a long text."""
    if span.kind not in "VRC":
        yield span
        return
    idiom = set(range(span.first, span.last)) <= links.idioms
    if span.kind == "V" and links.folded(span.first - 1) in ("most", "least"):
        return  # "the most expensive" is a superlative
    if idiom or (span.kind != "R" and praised(links, span.first)):
        return
    if span.kind == "R":
        yield span
        return
    if span.kind == "V":
        data = tuple(meaning for meaning in span.data if not vocabulary.is_list(meaning[0]))
    else:
        data = tuple((place, sure) for place, sure in span.data if place.kind != "prose" or sure == 1)
    if data:
        yield replace(span, data=data)


def praised(links: Links, i: int) -> bool:
    """Return whether a word names a part of the row, and asks how good it is: "with great desserts"."""
    having = ("with", "has", "have", "having", "serves", "serve")
    return links.folded(i - 1) in QUALITY and links.folded(i - 2) in having


def _take(links: Links, span: Span) -> None:
    """Note what one span of the cover is."""
    if span.kind == "r":
        links.take(span.first, span.last, "kin")
    if span.kind not in _TAKEN:
        return
    if span.kind == "V":
        negated = _denies(links, span.first)
        links.values.append(
            Value(span.first, span.last, links.text(span.first, span.last), span.data, span.said, negated)
        )
    elif span.kind == "N":
        _number(links, span)
        return
    elif span.kind == "H":
        return
    else:
        kept = {"R": links.relations, "C": links.columns, "O": links.bounds, "D": links.days, "S": links.orders}
        kept[span.kind].append(span)
    links.take(span.first, span.last, span.kind)
    if span.kind in "OS":
        _take_unit(links, span)
    if span.kind == "S" and span.data[2]:
        links.limit = span.data[2]


def _take_unit(links: Links, span: Span) -> None:
    """Take the words beside a number that only say what it is of: "rated 4", "4 stars", "30 years old"."""
    for k in (span.first - 1, span.last, span.last + 1):
        beside = k <= span.last or links.used[k - 1 : k] == ["unit"]
        if 0 <= k < len(links.tokens) and beside and links.free(k, k + 1) and links.stem(k) in UNITS:
            links.take(k, k + 1, "unit")


def _denies(links: Links, first: int) -> bool:
    """Return whether a negation stands before token `first`, and take it."""
    for k in range(first - 1, max(first - 4, -1), -1):
        word = links.folded(k)
        if word in NEGATIONS or (word == "than" and links.folded(k - 1) == "other"):
            links.take(k, k + 1, "negation")
            return True
        if word == "or" and any(value.negated and value.last == k for value in links.values):
            return True
        if word not in BEFORE_VALUES:
            return False
    return False


def _number(links: Links, span: Span) -> None:
    """Take a bare number as how many rows are wanted, or as a comparison where its unit or its place says so."""
    number, unit = span.data
    alternative = links.folded(span.first - 1) == "or" and links.used[span.first - 2 : span.first - 1] in (["O"], ["D"])
    more = links.folded(span.last) == "+"
    if unit in ("star", "stars", "$", "dollars") or alternative or more:
        last = span.last + more
        links.bounds.append(Span(span.first, last, "O", (">=" if more else "=", (number,), unit, None), span.score))
        links.take(span.first, last, "O")
    elif unit is None and number == int(number) and 0 < number <= 1000:
        opening = all(links.folded(k) in COUNTING for k in range(span.first))
        if opening or links.used[span.last : span.last + 1] == ["S"]:
            links.limit = int(number)
            links.take(span.first, span.last, "limit")


def _loose(links: Links, vocabulary: Vocabulary) -> Iterator[Span]:
    """Recognize values by a part of them, and misspelt ones."""
    index, tokens = vocabulary.index, links.tokens
    yield from _quoted(links, vocabulary)
    for size in (2, 1):
        for first in range(len(tokens) - size + 1):
            inside = tokens[first : first + size]
            if set(range(first, first + size)) <= links.idioms or praised(links, first):
                continue
            parts = stems(links.text(first, first + size))
            plain = any(t.folded in IGNORED or not t.folded.isalpha() for t in inside)
            options = (
                index.options_with(*parts) if len(parts) == size and not _is_ordinary(inside, links.domain) else ()
            )
            if options:
                yield Span(first, first + size, "V", options, 0.75 * size)
            elif not plain and (near := index.misspelt(parts)):
                yield Span(first, first + size, "V", near, 0.5 * size, "misspelt")
    yield from _parts_of_names(links, vocabulary)


def _is_ordinary(inside: Sequence[Token], domain: Domain) -> bool:
    """Return whether words only describe: of a longer option they say nothing by themselves."""
    if len(inside) > 1:
        return all(t.folded in IGNORED for t in inside)
    word = inside[0]
    return word.folded in IGNORED or word.folded in ADJECTIVES | domain.ordinary or len(word.stem) < 4


def _quoted(links: Links, vocabulary: Vocabulary) -> Iterator[Span]:
    for match in _QUOTED.finditer(links.question):
        inside = [i for i, t in enumerate(links.tokens) if t.start >= match.start() and t.end <= match.end()]
        parts = stems(match[1] or match[2])
        exact = vocabulary.index.meanings(parts) or vocabulary.index.misspelt(parts)
        found = exact or vocabulary.index.named_like(parts)
        if inside and found:
            yield Span(inside[0], inside[-1] + 1, "V", found, 1.2 * len(inside), "" if exact else "part")


def _parts_of_names(links: Links, vocabulary: Vocabulary) -> Iterator[Span]:
    """Recognize runs of capitalised words that are part of a name."""
    tokens, i = links.tokens, 0
    while i < len(tokens):
        end = i
        while end < len(tokens) and tokens[end].text[:1].isupper() and (end > i or tokens[end].folded not in IGNORED):
            end += 1
        first = i + (end > i + 1 and tokens[i].folded in TITLES)
        found = vocabulary.index.named_like(stems(links.text(first, end))) if end > first else ()
        if found and (first > 0 or end - first > 1):
            yield Span(i, end, "V", found, 0.7 * (end - i), "part")
        i = max(end, i + 1)
