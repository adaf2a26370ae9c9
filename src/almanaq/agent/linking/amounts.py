"""Numbers, comparisons, superlatives and periods in a question."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from almanaq.agent.linking.days import Span as Days
from almanaq.agent.linking.days import spans as day_spans
from almanaq.agent.linking.english import MAGNITUDES, SPELLED, Measured, english
from almanaq.agent.linking.spans import Span
from almanaq.agent.linking.words import Token

_SUFFIXED = re.compile(r"(\d+(?:\.\d+)?)(k|m|bn|b|st|nd|rd|th)?")
_CURRENCIES = ("$", "€", "£")
_MORE, _LESS = ("more", "higher", "greater", "larger", "bigger", "better"), ("less", "lower", "fewer", "smaller")
_ORDINALS = {"second": 2, "third": 3, "fourth": 4, "fifth": 5}
_SIGNS = {"since": ">=", "until": "<="} | dict.fromkeys(("after", "later than", "newer than", "younger than"), ">")
_SIGNS |= dict.fromkeys(("before", "earlier than", "older than"), "<")
for _at in ("on", "in", "at"):
    _SIGNS |= {f"{_at} or after": ">=", f"{_at} or before": "<=", f"after or {_at}": ">=", f"before or {_at}": "<="}
_TIMES = ("since", "before", "after", "until", "prior", "later", "earlier")
_ONWARD = ("on", "onward", "onwards")
_FLIPPED = {">": "<=", "<": ">=", ">=": "<", "<=": ">"}
TIMES = "times"
"""The unit of a comparison that says how many rows there are of one thing: "more than once"."""
_SAID_TIMES = {"once": 1.0, "twice": 2.0}
_FIRST_YEAR, _LAST_YEAR = 1500, 2200
_MOST_BETWEEN = 4
"""Most words between a comparative and its "than"."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number with its unit ("" for none)."""

    value: float
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison with one number, or two ("between").

    Attributes:
        measured: what the adjective of "older than" measures; None where none says so.
    """

    sign: str
    numbers: tuple[float, ...]
    unit: str = ""
    measured: Measured | None = None


@dataclass(frozen=True, slots=True)
class Superlative:
    """What ranks first.

    Attributes:
        extreme: "most", "least", "top", "bottom", "common", "rare", or "measured".
        limit: how many; None where it is not said. `offset` skips those that rank before ("second largest").
    """

    extreme: str
    measured: Measured | None = None
    limit: int | None = None
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Period:
    """Days from `start` up to and without `after`, compared by `sign` ("=" within, ">" later, …).

    Attributes:
        year: the bare year that was written, which may be a number as well; None for other days.
        days: where no year was said, what can be placed near a known day.
    """

    sign: str
    start: date
    after: date
    year: int | None = None
    days: Days | None = None


def number_at(tokens: Sequence[Token], at: int) -> tuple[float, int] | None:
    """Return the number that begins at a token ("1.5 million"), and the token after it; None where none does."""
    if not 0 <= at < len(tokens):
        return None
    folded = tokens[at].folded
    match = _SUFFIXED.fullmatch(folded.replace(",", ""))
    article = folded in ("a", "an") and at + 1 < len(tokens) and tokens[at + 1].folded in MAGNITUDES
    if match:
        value = float(match[1]) * MAGNITUDES.get(match[2] or "", 1.0)
    elif folded in SPELLED or article:
        value = SPELLED.get(folded, 1.0)
    else:
        return None
    last = at + 1
    while last < len(tokens) and tokens[last].folded in MAGNITUDES and len(tokens[last].folded) > 1:
        value *= MAGNITUDES[tokens[last].folded]
        last += 1
    return value, last


def numbers(tokens: Sequence[Token]) -> Iterator[Span]:
    """Yield bare numbers, and those with "or more" after them or "between … and" around them."""
    known = english()
    for i, token in enumerate(tokens):
        found = number_at(tokens, i)
        if found is None:
            end, unit = _unit(tokens, i + 1)
            if token.folded == "in" and len(unit) > 1 and unit != "old":
                yield Span(i, end, "silent", (unit,), 1.0 * (end - i), "unit")  # "in square km"
            continue
        value, last = found
        within = i > 0 and tokens[i - 1].folded == "in"
        if token.folded == "one" and (within or last == len(tokens) or not tokens[last].is_word):
            continue  # "the cheapest one" is no number, and "in one year" not the first
        if tokens[last : last + 1] and tokens[last].folded == TIMES:
            yield _times(i, last, "=", value)  # "who appear three times"
        last, unit = _unit(tokens, last)
        first = i
        if i and tokens[i - 1].folded in _CURRENCIES:
            first, unit = i - 1, unit or tokens[i - 1].folded
        ordinal = token.folded[-2:] in ("st", "nd", "rd", "th") and token.folded[:1].isdigit()
        if unit and last < len(tokens) and (measured := known.measures.get(tokens[last].folded)):
            comparison = Comparison("=", (value,), unit, measured)  # "70 inches tall"
            yield Span(first, last + 1, "compare", (comparison,), 1.0 * (last + 1 - first))
        if not ordinal:
            yield Span(first, last, "number", (Number(value, unit),), 0.9 * (last - first))
        for end in range(min(last + 3, len(tokens)), last, -1):
            kind, sign = known.phrases.get(tuple(t.folded for t in tokens[last:end]), ("", ""))
            if kind == "after" or (tokens[last].folded == "+" and end == last + 1):
                comparison = Comparison(sign or ">=", (value,), unit)
                yield Span(first, end, "compare", (comparison,), 1.02 * (end - first) + 0.1)
                break
        if first and tokens[first - 1].folded in ("between", "from") and last < len(tokens):
            if tokens[last].folded in ("and", "to", "-") and (other := number_at(tokens, last + 1)):
                low = value * _shared_magnitude(value, tokens, last + 1, other[0])
                end, same = _unit(tokens, other[1])
                if not (_is_year(value) and tokens[first - 1].folded == "from"):
                    comparison = Comparison("between", (low, other[0]), unit or same)
                    yield Span(first - 1, end, "compare", (comparison,), 1.05 * (end - first + 1) + 0.1)


def _shared_magnitude(value: float, tokens: Sequence[Token], at: int, other: float) -> float:
    """Return by how much a number counts that shares the magnitude of the next: "between 10 and 12 million"."""
    plain = number_at(tokens[: at + 1], at)
    factor = other / plain[0] if plain and plain[0] else 1.0
    return factor if factor > 1 and value < factor else 1.0


def _unit(tokens: Sequence[Token], at: int) -> tuple[int, str]:
    """Return the token after a unit that stands at a token, and the unit; "" where none does."""
    known = english().units | {"%"}
    square = at + 1 < len(tokens) and tokens[at].folded in ("square", "sq")
    where = at + square
    if where < len(tokens) and tokens[where].folded in known:
        unit = tokens[where].folded + ("2" if square else "")
        old = unit in ("year", "years", "yr", "yrs") and where + 1 < len(tokens)
        if old and tokens[where + 1].folded in ("old", "olds"):
            return where + 2, "old"
        return where + 1, unit
    return at, ""


def comparisons(tokens: Sequence[Token]) -> Iterator[Span]:
    """Yield operators and comparatives with the number after them, and what waits for something else than a number."""
    known = english()
    for first in range(len(tokens)):
        for last in range(min(first + known.longest, len(tokens)), first, -1):
            kind, sign = known.phrases.get(tuple(t.folded for t in tokens[first:last]), ("", ""))
            if kind == "operator":
                yield from _compared(tokens, first, last, sign, known.measured_by(tokens[first].folded))
        measured = known.measured_by(tokens[first].folded)
        if measured and first + 1 < len(tokens) and tokens[first + 1].folded == "than":
            yield from _compared(tokens, first, first + 2, ">" if measured[0][1] else "<", measured)
    for at in range(len(tokens)):
        if tokens[at].folded == "than" and (found := _comparative_before(tokens, at)) is not None:
            yield Span(found[0], found[0] + 1, "silent", (), 0.7)
            yield Span(at, at + 1, "than", ((found[1], None),), 0.75)


def _comparative_before(tokens: Sequence[Token], at: int) -> tuple[int, str] | None:
    """Return the comparative that a "than" some words after belongs to, with its sign: "a higher price than"."""
    for first in range(at - 2, max(at - 2 - _MOST_BETWEEN, -1), -1):
        word = tokens[first].folded
        measured = english().measured_by(word)
        if word in _MORE or word in _LESS or measured:
            return first, "<" if word in _LESS or (measured and not measured[0][1]) else ">"
    return None


def _compared(tokens: Sequence[Token], first: int, last: int, sign: str, measured: Measured | None) -> Iterator[Span]:
    if tokens[first].folded == "within" and not _unit(tokens, last + 1)[1]:
        return  # "within 500 m", but not "within Bern" or "within 2023"
    negated = first and tokens[first - 1].folded in ("not", "no", "nothing") and sign in _FLIPPED
    at = last
    while at < len(tokens) and tokens[at].folded in ("a", "an", "the", "or", "equal", "to", *_CURRENCIES):
        if number_at(tokens, at):
            break
        at += 1
    comparative = tokens[last - 1].folded == "than"
    found = number_at(tokens, at)
    if comparative or sign in "<>" or (found is None and sign != "="):
        yield Span(first, last, "than", ((sign, measured),), 0.75 * (last - first))
        if negated:
            yield Span(first - 1, last, "than", ((_FLIPPED[sign], measured),), 0.9 * (last - first + 1))
    if at < len(tokens) and found is None and tokens[at].folded == "single":
        found = 1.0, at + 1
    if at < len(tokens) and tokens[at].folded in _SAID_TIMES:
        yield _times(first, at, sign, _SAID_TIMES[tokens[at].folded])
    if found is None:
        return
    value, end = found
    if any(t.folded == "or" for t in tokens[last:at]):
        sign += "="
    currency = next((t.folded for t in tokens[last:at] if t.folded in _CURRENCIES), "")
    if tokens[end : end + 1] and tokens[end].folded == TIMES:
        yield _times(first, end, sign, value)
    end, unit = _unit(tokens, end)
    if negated:
        first, sign = first - 1, _FLIPPED[sign]
    comparison = Comparison(sign, (value,), unit or currency, measured)
    timely = tokens[first].folded in _TIMES and _is_year(value) and not unit
    yield Span(first, end, "compare", (comparison,), (0.8 if timely else 1.0) * (end - first) + 0.1)


def _times(first: int, last: int, sign: str, value: float) -> Span:
    """Return the comparison of how often something is there."""
    return Span(first, last + 1, "compare", (Comparison(sign, (value,), TIMES),), 1.1 * (last + 1 - first))


def superlatives(tokens: Sequence[Token]) -> Iterator[Span]:
    """Yield what ranks first: "the most", "top 5", "3 cheapest", "second largest"."""
    known = english()
    folded = [token.folded for token in tokens]
    for first, token in enumerate(tokens):
        either = "or" in folded and "than" not in folded and "or" not in folded[max(first - 1, 0) : first + 2]
        if token.folded in ("more", "fewer") and either:  # "more in A or B?", "do A or B have more?"
            extreme = "most" if token.folded == "more" else "least"
            yield Span(first, first + 1, "superlative", (Superlative(extreme, limit=2),), 0.9, "either")
        measured = known.measured_by(token.folded) if token.folded.endswith("est") else None
        if measured:
            yield from _ranked(tokens, first, first + 1, Superlative("measured", measured))
        for last in range(first + 1, min(first + known.longest, len(tokens)) + 1):
            kind, detail = known.phrases.get(tuple(t.folded for t in tokens[first:last]), ("", ""))
            if kind == "superlative":
                period = last < len(tokens) and tokens[last].folded in ("week", "month", "quarter", "half")
                if not period:
                    yield from _ranked(tokens, first, last, Superlative("measured", detail))
            elif kind == "extreme" and not (first and tokens[first - 1].folded == "at"):
                adjective = next((m for t in tokens[first:last] if (m := known.measured_by(t.folded))), None)
                yield from _ranked(tokens, first, last, Superlative(detail, adjective))


def orders(tokens: Sequence[Token]) -> Iterator[Span]:
    """Yield "most first", "youngest first": in what direction groups or rows are put, and what that measures."""
    for span in superlatives(tokens[:-1]):
        meant: Superlative = span.meanings[0]
        placed = span.last - span.first < 4 and (span.first or span.last + 2 >= len(tokens))
        if tokens[span.last].folded != "first" or meant.limit is not None or not placed:
            continue
        down = meant.extreme in ("most", "top", "common")
        if meant.extreme == "measured" and meant.measured:
            down = meant.measured[0][1]
        direction = "descending" if down else "ascending"
        yield Span(span.first, span.last + 1, "direction", (direction, meant.measured), 1.2 * (span.size + 1))


def _ranked(tokens: Sequence[Token], first: int, last: int, plain: Superlative) -> Iterator[Span]:
    """Yield a superlative alone, with the number beside it, and with an ordinal before it."""
    ordinal = re.fullmatch(r"(\d+)(?:st|nd|rd|th)", tokens[first - 1].folded) if first else None
    before = number_at(tokens, first - 1) if first and not ordinal else None
    after = number_at(tokens, last)
    made = (plain.extreme, plain.measured)
    score = 1.02
    if before and before[1] == first and before[0] == int(before[0]) <= 1000 and tokens[first - 1].folded != "one":
        begin = first - 1 - (first > 1 and tokens[first - 2].folded == "top")  # "top 3 best"
        yield Span(begin, last, "superlative", (Superlative(*made, int(before[0])),), (score + 0.05) * (last - begin))
    if after and after[1] == last + 1 and after[0] == int(after[0]) <= 1000 and not _is_year(after[0]):
        yield Span(
            first, last + 1, "superlative", (Superlative(*made, int(after[0])),), score * (last - first + 1) + 0.05
        )
    nth = _ORDINALS.get(tokens[first - 1].folded) if first else None
    nth = int(ordinal[1]) if ordinal else nth
    if nth is not None:
        yield Span(first - 1, last, "superlative", (Superlative(*made, 1, nth - 1),), score * (last - first + 1) + 0.05)
    yield Span(first, last, "superlative", (plain,), score * (last - first) + 0.02)


def averages(tokens: Sequence[Token]) -> Iterator[Span]:
    """Yield "above average", "heavier than average"; meanings are (sign, what is measured)."""
    known = english()
    for first in range(len(tokens)):
        for last in range(first + 1, min(first + known.longest, len(tokens)) + 1):
            kind, _ = known.phrases.get(tuple(t.folded for t in tokens[first:last]), ("", ""))
            if kind != "average":
                continue
            down = any(t.folded.startswith(("below", "under")) for t in tokens[first:last])
            begins, measured = first, None
            if tokens[first].folded == "than":
                before = tokens[first - 1].folded if first else ""
                measured = known.measured_by(before)
                if measured is None and before not in (*_MORE, *_LESS):
                    if (apart := _comparative_before(tokens, first)) is None:
                        continue
                    yield Span(first, last, "average", ((apart[1], None),), 1.1 * (last - first))
                    continue
                down = before in _LESS or bool(measured and not measured[0][1])
                begins = first - 1
            yield Span(begins, last, "average", (("<" if down else ">", measured),), 1.1 * (last - begins))


def periods(tokens: Sequence[Token], question: str, today: date) -> Iterator[Span]:
    """Yield dates, months, years and what counts from today, with the word of time before them."""
    calendar: list[tuple[int, int, Period]] = []
    for each in day_spans(question, today):
        inside = [i for i, t in enumerate(tokens) if each.first <= t.start and t.end <= each.last]
        if inside:
            meant = Period("=", each.start, each.after, days=each if each.yearless else None)
            calendar.append((inside[0], inside[-1] + 1, meant))
    for i, token in enumerate(tokens):
        if len(token.folded) == 4 and token.folded.isdigit() and _is_year(int(token.folded)):
            year = int(token.folded)
            calendar.append((i, i + 1, Period("=", date(year, 1, 1), date(year + 1, 1, 1), year)))
    for first, last, meant in calendar:
        before = tokens[first - 1].folded if first else ""
        if (
            before in ("between", "from")
            and last + 1 < len(tokens)
            and tokens[last].folded in ("and", "to", "until", "-", "through")
        ):
            for begins, end, until in calendar:
                if begins == last + 1:
                    start = meant.start if not meant.days or until.days else meant.start.replace(year=until.start.year)
                    both = Period("=", start, until.after, days=meant.days if until.days else None)
                    yield Span(first - 1, end, "period", (both,), 1.05 * (end - first + 1) + 0.15)
        said = {k: " ".join(token.folded for token in tokens[k:first]) for k in range(max(first - 3, 0), first)}
        begins = next((k for k, words in said.items() if words in _SIGNS), first)
        sign = _SIGNS.get(said.get(begins, ""), "=")
        if before == "from" and last < len(tokens) and tokens[last].folded in _ONWARD:
            sign, begins, last = ">=", first - 1, last + 1
        of = Period(sign, meant.start, meant.after, meant.year, meant.days)
        yield Span(begins, last, "period", (of,), 1.0 * (last - begins) + 0.05)


def _is_year(number: float) -> bool:
    return _FIRST_YEAR <= number < _LAST_YEAR and number == int(number)
