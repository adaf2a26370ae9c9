"""Recognizers of phrases and amounts: what `en/words.toml` has, numbers with units, comparisons, superlatives, days."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import date

from almanaq.agent.local_old.calendar_spans import Span as Days
from almanaq.agent.local_old.calendar_spans import spans as calendar_spans
from almanaq.agent.local_old.recognize.called import HEADED, OWN
from almanaq.agent.local_old.recognize.spans import CHOSEN, HOW, IN_UNIT, Span
from almanaq.agent.local_old.recognize.tokens import MAGNITUDES, SPELLED, Token, runs
from almanaq.agent.local_old.recognize.vocabulary import Vocabulary
from almanaq.agent.local_old.recognize.words import DIRECTIONS, words

_OF_ONE_MEASURE = "tall high old long deep wide heavy fast expensive hot cold dense populous".split()
"""Adjectives of which "how" asks for one thing; how big something is may be its area or its people."""
_PERIODS = "day week month quarter half decade".split()
_BEFORE_PERIODS = "per by each every and".split()
_ORDINALS = {
    name: i
    for i, names in enumerate(("second 2nd", "third 3rd", "fourth 4th", "fifth 5th"), 2)
    for name in names.split()
}
_SORTING = ("sort", "order", "arrange", "rank")
_AGES = ("year", "years")
_MORE = "more higher greater larger bigger better".split()
_LESS = "less lower fewer smaller".split()
_UNITS_END = ("?", ".", ",", "of", "for", "by", "per", "and")
_CHOOSING = "which who what is are was were did does do has have".split()
_UNTIL = ("and", "to", "until", "till", "through")
_SIGNS = {"after": ">", "since": ">=", "before": "<", "until": "<=", "from": "="}
Found = tuple[int, int, tuple[date, date], Days | None]
"""Where days are named, the days, and the span where no year was said."""


def phrases(tokens: Sequence[Token], vocabulary: Vocabulary) -> Iterator[Span]:
    known = words()
    for first, last in runs(tokens, known.longest):
        kind, detail = known.phrases.get(tuple(t.folded for t in tokens[first:last]), ("", ""))
        if kind in _COMPOSED:
            yield from _COMPOSED[kind](tokens, vocabulary, first, last, detail)
        elif kind in _DOUBTFUL and not _DOUBTFUL[kind](tokens, first, vocabulary):
            continue
        elif len(kind) == 1:
            each = 1.1 if kind == "E" and tokens[last - 1].folded == "first" else 0.95
            yield Span(first, last, kind, detail, each * (last - first) + 0.06 * (last - first > 1))


def _makes_groups(tokens: Sequence[Token], at: int, vocabulary: Vocabulary) -> bool:
    """Return whether a part of the calendar makes groups: "per month"; "which month", where no column is called so."""
    before = tokens[at - 1].folded if at else ""
    asked = before in ("which", "what") and not vocabulary.columns_named((tokens[at].stem,))
    return asked or before in _BEFORE_PERIODS


def _counts(tokens: Sequence[Token], at: int, vocabulary: Vocabulary) -> bool:
    """Return whether "number of" counts: not where "number" belongs to a column named before it, "phone number of"."""
    of_column = tokens[at].folded in ("number", "numbers") and at > 0
    if tokens[at].folded == "count" and at > 0 and tokens[at - 1].folded not in words().silent:  # "page count"
        named = vocabulary.columns_named((tokens[at - 1].stem,))
        return not any(quality >= HEADED and place.kind == "number" for place, quality in named)
    before = tokens[at - 1].stem
    of_column = of_column and (
        any(quality >= OWN for _, quality in vocabulary.columns_named((before,)))
        or any(quality == 1 for _, quality in vocabulary.columns_named((before, "number")))
    )
    return not of_column or (at > 1 and tokens[at - 2].folded in _BEFORE_PERIODS)


def _is_part(tokens: Sequence[Token], at: int, vocabulary: Vocabulary) -> bool:
    """Return whether "share of" asks for a part of rows: not "the highest share", where a column is called so."""
    kind = words().phrases.get((tokens[at - 1].folded,), ("",))[0] if at else ""
    called = any(quality >= OWN for _, quality in vocabulary.columns_named((tokens[at].stem,)))
    return not (called and kind in ("A", "extreme"))


_DOUBTFUL: dict[str, Callable[[Sequence[Token], int, Vocabulary], bool]] = {
    "H": _counts,
    "P": _is_part,
    "Y": _makes_groups,
}
"""Kinds of phrases that mean what they do only beside some words."""


def _operator(tokens: Sequence[Token], vocabulary: Vocabulary, first: int, last: int, sign: str) -> Iterator[Span]:
    yield from _comparison(tokens, vocabulary, first, last, sign)
    if sign in "<>" and last < len(tokens):
        yield Span(first, last, "Z", (sign, words().measured(tokens[first].folded)), 0.5 * (last - first))
    if any(number_of(token) is not None for token in tokens[last + 1 : last + 5]):
        yield Span(first, last, "k", sign, 0.6 * (last - first))


def _average(tokens: Sequence[Token], _: Vocabulary, first: int, last: int, __: str) -> Iterator[Span]:
    """Recognize "above average", "heavier than average"; "less than" takes the word before along."""
    down = any(t.folded.startswith(("below", "under")) for t in tokens[first:last])
    before = tokens[first - 1].folded if first else ""
    than = bool(before) and tokens[first].folded == "than"
    measured = words().measured(before) if than else None
    if than and not (measured or before in (*_MORE, *_LESS)):
        return
    down = down or before in _LESS or bool(measured and not measured[0][1])
    wide = first - 1 if than else first
    yield Span(wide, last, "G", ("<" if down else ">", measured), 1.1 * (last - wide))


def _irregular(
    tokens: Sequence[Token], _: Vocabulary, first: int, last: int, measured: tuple[tuple[str, bool], ...]
) -> Iterator[Span]:
    """Recognize superlatives with a meaning of their own; "the first week of 2018" has none."""
    if last < len(tokens) and tokens[last].folded in _PERIODS:
        return
    ahead = _amount(tokens, first - 1)
    wide = first - 1 if ahead is not None else first
    yield Span(wide, last, "S", ("measured", measured, ahead or _amount(tokens, last)), 1.05 * (last - wide))


def _extreme(tokens: Sequence[Token], _: Vocabulary, first: int, last: int, detail: str) -> Iterator[Span]:
    """Recognize "the most", "top 5", "5 largest"; "at most" is no superlative."""
    if first and tokens[first - 1].folded == "at" and tokens[first].folded in ("most", "least"):
        return
    after = _amount(tokens, last)
    before = _amount(tokens, first - 1)
    meant = next((words().measured(t.folded) for t in tokens[first:last] if words().measured(t.folded)), None)
    phrase = " ".join(t.folded for t in tokens[first:last])
    if after is not None:
        yield Span(first, last + 1, "S", (detail, meant, after), 1.0 * (last + 1 - first) + 0.05, phrase)
    elif before is not None:
        yield Span(first - 1, last, "S", (detail, meant, before), 1.0 * (last - first + 1) + 0.05, phrase)
    yield Span(first, last, "S", (detail, meant, None), 1.0 * (last - first) + 0.02, phrase)


_COMPOSED: dict[str, Callable[..., Iterator[Span]]] = {
    "operator": _operator,
    "average_reference": _average,
    "extreme": _extreme,
    "superlative": _irregular,
}
"""Kinds of phrases that take along what stands beside them."""


def _amount(tokens: Sequence[Token], at: int) -> int | None:
    """Return the number right after a superlative: 5 of "top 5"."""
    number = number_of(tokens[at]) if 0 <= at < len(tokens) else None
    return int(number) if number is not None and number == int(number) and 0 < number <= 1000 else None


def apart(tokens: Sequence[Token], _: Vocabulary) -> Iterator[Span]:
    """Recognize "more" and "than" around what is compared: "more land than Oslo"."""
    for i, token in enumerate(tokens):
        than = next((j for j in range(i + 2, min(i + 5, len(tokens))) if tokens[j].folded == "than"), None)
        if than is not None and token.folded in (*_MORE, *_LESS):
            yield Span(i, i + 1, "w", "", 0.9)
            sign = "<" if token.folded in _LESS else ">"
            yield Span(than, than + 1, "Z", (sign, None), 0.9)
            for last in (than + 2, than + 3):
                if words().phrases.get(tuple(t.folded for t in tokens[than:last]), ("",))[0] == "average_reference":
                    yield Span(than, last, "G", (sign, None), 1.1 * (last - than))


def in_units(tokens: Sequence[Token], vocabulary: Vocabulary) -> Iterator[Span]:
    """Recognize in which unit a figure is asked for, where a column is in it: "average length in minutes"."""
    for i in range(1, len(tokens) - 1):
        unit = tokens[i + 1].folded
        ends = i + 2 == len(tokens) or tokens[i + 2].folded in (*_UNITS_END, *words().units)
        if tokens[i].folded == "in" and unit in words().units | vocabulary.units and ends:
            yield Span(i, i + 2, "w", f"{IN_UNIT}{unit}", 1.2)


def superlatives(tokens: Sequence[Token], vocabulary: Vocabulary) -> Iterator[Span]:
    """Recognize superlatives and comparatives of adjectives that measure something."""
    for i, token in enumerate(tokens):
        if token.folded == "how" and i + 1 < len(tokens):
            yield from _asked_measure(tokens, i, vocabulary)
        meant = words().measured(token.folded)
        if meant is None:
            continue
        if token.folded.endswith("est") and token.folded not in DIRECTIONS:
            before, after = _amount(tokens, i - 1), _amount(tokens, i + 1)
            first, last = (i - 1 if before else i), (i + 2 if after and not before else i + 1)
            yield Span(first, last, "S", ("measured", meant, before or after), 1.0 * (last - first) + 0.01)
        elif i + 1 < len(tokens) and tokens[i + 1].folded == "than":
            up = ">" if meant[0][1] else "<"
            yield from _comparison(tokens, vocabulary, i, i + 2, up, meant)
            yield Span(i, i + 2, "Z", (up, meant), 1.1)


def chosen(tokens: Sequence[Token], _: Vocabulary) -> Iterator[Span]:
    """Recognize by what one of two is chosen: "which is heavier, A or B", "did A or B sell more tickets"."""
    said = {token.folded for token in tokens}
    if not tokens or tokens[0].folded not in _CHOOSING or "or" not in said or "than" in said:
        return
    for i, token in enumerate(tokens):
        meant = words().measured(token.folded) if token.folded.endswith("er") else None
        if token.folded in ("more", "less", "fewer"):
            most = "most" if token.folded == "more" else "least"
            yield Span(i, i + 1, "S", (most, None, None), 1.05, f"{CHOSEN} {most}")
        elif token.folded in (*_MORE, *_LESS):
            up = token.folded in _MORE
            detail = ("most", "highest") if up else ("least", "lowest")
            yield Span(i, i + 1, "S", (detail[0], meant, None), 1.05, f"{CHOSEN} {detail[1]}")
        elif meant:
            yield Span(i, i + 1, "S", ("measured", meant, None), 1.05, CHOSEN)


def ordinals(tokens: Sequence[Token], spans: Sequence[Span]) -> list[Span]:
    """Return superlatives with the ordinal before them: "second largest" is the second one alone."""
    before = [(span, _ORDINALS.get(tokens[span.first - 1].folded)) for span in spans if span.kind == "S" and span.first]
    return [
        replace(span, first=span.first - 1, data=(*span.data[:2], -nth), score=span.score + 1.0)
        for span, nth in before
        if nth is not None and span.data[2] is None
    ]


def _asked_measure(tokens: Sequence[Token], at: int, vocabulary: Vocabulary) -> Iterator[Span]:
    """Recognize what "how tall" and "how long" ask for: a column."""
    adjective = tokens[at + 1].folded
    meant = words().measures.get(adjective) if adjective in _OF_ONE_MEASURE else None
    relations = [relation.name for relation in vocabulary.index.catalog.relations] if meant else []
    measuring = [vocabulary.measured_by(meant, {name}) for name in relations] if meant else []
    places = tuple((each[0], OWN) for each in measuring if each is not None)
    if places:
        yield Span(at, at + 2, "C", places, 2.0, HOW)


def numbers(tokens: Sequence[Token], vocabulary: Vocabulary) -> Iterator[Span]:
    """Recognize numbers, with what follows them: "10 or more", "between 3 and 5"."""
    for i, token in enumerate(tokens):
        number = number_of(token)
        if number is None:
            continue
        last, unit = _unit(tokens, i + 1, vocabulary)
        yield Span(i, last, "N", (number, unit), 0.9 * (last - i))
        for end in range(last + 1, min(last + 3, len(tokens)) + 1):
            kind, sign = words().phrases.get(tuple(t.folded for t in tokens[last:end]), ("", ""))
            if kind == "after":
                yield Span(i, end, "O", (sign, (number,), unit, None), 1.0 * (end - i) + 0.1)
        other = number_of(tokens[last + 1]) if last + 1 < len(tokens) and tokens[last].folded == "and" else None
        if other is not None and " " not in token.text:
            number *= _shared_magnitude(number, tokens[last + 1], other)
        if other is not None and i and tokens[i - 1].folded == "between":
            end, same = _unit(tokens, last + 2, vocabulary)
            yield Span(i - 1, end, "O", ("between", (number, other), unit or same, None), 1.1 * (end - i + 1))


def _shared_magnitude(number: float, after: Token, other: float) -> float:
    """Return by how much a number counts that shares the magnitude of the next: "between 10 and 12 million"."""
    magnitude = math.prod(MAGNITUDES[word] for word in after.folded.split(" ")[1:])
    return magnitude if number < other / magnitude else 1.0


def number_of(token: Token) -> float | None:
    """Return the number that a token writes, in digits or as a word."""
    return token.number if token.number is not None else SPELLED.get(token.folded)


def sorting(tokens: Sequence[Token], _: Vocabulary) -> Iterator[Span]:
    """Recognize "sort the shops by size": the first "by" after a verb of order, which begins a clause, says by what."""
    begun = [
        i for i, t in enumerate(tokens) if t.folded in _SORTING and (not i or tokens[i - 1].folded in ("and", ","))
    ]
    for first in begun[-1:]:
        by = next((i for i in range(first + 1, len(tokens)) if tokens[i].folded == "by"), None)
        if by is not None:
            yield Span(first, first + 1, "w", tokens[first].folded, 1.0)
            yield Span(by, by + 1, "F", "none", 1.2)
            yield from (
                Span(i, i + 1, "w", "", 0.3) for i in range(first, by) if tokens[i].folded in ("results", "result")
            )


def _unit(tokens: Sequence[Token], at: int, vocabulary: Vocabulary) -> tuple[int, str | None]:
    known = words().units | vocabulary.units | {"%"}
    squared = at + 1 < len(tokens) and tokens[at].folded in ("square", "sq")
    at += squared
    if (
        tokens[at : at + 1]
        and tokens[at].folded in _AGES
        and tokens[at + 1 : at + 2]
        and tokens[at + 1].folded == "old"
    ):
        return at + 2, "old"
    if at < len(tokens) and tokens[at].folded in known:
        return at + 1, tokens[at].folded + "2" * squared
    return at - squared, None


def _comparison(
    tokens: Sequence[Token],
    vocabulary: Vocabulary,
    first: int,
    last: int,
    operator: str,
    meant: Sequence[tuple[str, bool]] | None = None,
) -> Iterator[Span]:
    """Recognize words of comparison with the number after them; between them only an article or a currency stands."""
    at = last
    while at < len(tokens) and tokens[at].folded in ("a", "an", "the", "$", "€", "£", "or", "equal", "to"):
        at += 1
    number = number_of(tokens[at]) if at < len(tokens) else None
    if at < len(tokens) and at > last and tokens[at].folded == "single":
        number = 1.0  # "more than a single document"
    measured = meant or words().measured(tokens[first].folded)
    if number is None:
        return
    if tokens[last:at] and any(t.folded == "or" for t in tokens[last:at]):
        operator += "="
    end, unit = _unit(tokens, at + 1, vocabulary)
    currency = next((t.folded for t in tokens[last:at] if t.folded in "$€£"), None)
    yield Span(first, end, "O", (operator, (number,), unit or currency, measured), 1.0 * (end - first) + 0.1)


def days(tokens: Sequence[Token], question: str, today: date) -> Iterator[Span]:
    """Recognize dates, months, years, with the word of time before them."""
    calendar = list(_calendar(tokens, question, today))
    for start, end, meant, yearless in calendar:
        inside = [i for i, t in enumerate(tokens) if t.start >= start and t.end <= end]
        if not inside:
            continue
        first, last = inside[0], inside[-1] + 1
        before = tokens[first - 1].folded if first else ""
        if before in ("between", "from") and last + 1 < len(tokens) and tokens[last].folded in _UNTIL:
            for other in (each for each in calendar if each[0] == tokens[last + 1].start):
                begun = meant[0] if yearless is None or other[3] else meant[0].replace(year=other[2][0].year)
                until = next((i for i, t in enumerate(tokens) if t.end >= other[1]), last + 1) + 1
                yield Span(first - 1, until, "D", ("=", (begun, other[2][1]), None), 1.0 * (until - first + 1) + 0.1)
                break
        first -= before in _SIGNS
        yield Span(first, last, "D", (_SIGNS.get(before, "="), meant, yearless), 1.0 * (last - first) + 0.02)


def _calendar(tokens: Sequence[Token], question: str, today: date) -> Iterator[Found]:
    for each in calendar_spans(question, today):
        yield each.first, each.last, (each.start, each.after), each if each.yearless else None
    for token in tokens:
        if token.number is not None and len(token.text) == 4 and 1500 <= token.number < 2200:
            year = int(token.number)
            yield token.start, token.end, (date(year, 1, 1), date(year + 1, 1, 1)), None
