"""Spans: what runs of tokens may mean, each with a score. The same tokens may be in several."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from almanaq.agent.local.calendar_spans import spans as calendar_spans
from almanaq.agent.local.recognize.tokens import Token
from almanaq.agent.local.recognize.vocabulary import OWN, Vocabulary
from almanaq.agent.local.recognize.words import words
from almanaq.agent.local.words import PAST, stem

SPELLED = dict(zip("one two three four five six seven eight nine ten eleven twelve".split(), range(1, 13), strict=True))
SPELLED |= dict(
    zip(
        "thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty "
        "ninety hundred thousand million".split(),
        (*range(13, 21), 30, 40, 50, 60, 70, 80, 90, 100, 1000, 1_000_000),
        strict=True,
    )
)
_LONGEST_NAME = 6
_AGGREGATES = ("average", "mean", "avg", "total", "sum", "maximum", "minimum", "max", "min", "median", "number", "how")
_COMPUTING = 9
"""How many of them compute something: the rest count."""
_GENERIC = ("code", "score", "number", "value", "level", "rate", "figure", "amount", "id")
"""Nouns that say nothing beside the name of a column: the "iata code"."""


@dataclass(frozen=True, slots=True)
class Span:
    """Tokens `first` to `last` (exclusive) with a meaning.

    Attributes:
        kind: one letter, as `compose` reads it: C column, R relation, V value, N number, O comparison with a number,
            K comparative, D days, A aggregate, H count, B grouping, S superlative, X negation, J a value denied,
            j a column denied, M missing, L a text to hold, Z more or less than a row, U distinct, G comparison with
            the average, P percentage of, Y period, F order, E direction, w silent, ? unknown.
        data: what the kind needs.
        score: how surely the tokens mean it, times how many they are.
        said: the word, of a verb; the stems, of a relation's name; "" of other words.
    """

    first: int
    last: int
    kind: str
    data: Any
    score: float
    said: str = ""


COMPUTED = "="
"""What `Span.said` holds for a column called after how it is computed: `average_temperature`."""
HOW = "how"
"""What `Span.said` holds for a column that "how tall" asks for."""
_NAMING = "CRVN?"
"""Kinds of spans that may be made of a name: what stands in quotation marks is no word of the question."""
_TIMED = "before after since until last first recently latest earliest".split()
_OF_ONE_MEASURE = "tall high old long deep wide heavy fast expensive".split()
"""Adjectives of which "how" asks for one thing; how big something is may be its area or its people."""
_BOUNDS = "above below over under".split()
_PERIODS = "day week month quarter half decade".split()
_ENDS = "?.,;!"
_MARKS = ('"', "“", "”", "`", "'")


def recognize(tokens: Sequence[Token], vocabulary: Vocabulary, question: str, today: date) -> list[Span]:
    """Return every span of a question."""
    found: list[Span] = []
    for recognizer in (_names, _values, _phrases, _numbers, _superlatives, _verbs, _lone):
        found += recognizer(tokens, vocabulary)
    quoted = _quoted(tokens)
    spelled = [span for span in found if span.kind in _NAMING or quoted.isdisjoint(range(span.first, span.last))]
    strange = [Span(i, i + 1, "?", tokens[i].text, -1.0) for i in quoted]
    return [*spelled, *strange, *_days(tokens, question, today), *_holdings(tokens, vocabulary, question)]


def _quoted(tokens: Sequence[Token]) -> frozenset[int]:
    """Return the tokens that stand as names do, whatever they mean as words: in quotation marks, in
    capitals, or last: "set ALL", "duel deck a?"."""
    shouted = all(t.text.isupper() for t in tokens if len(t.text) > 1 and t.text.isalpha())
    found = {i for i, t in enumerate(tokens) if len(t.text) > 1 and t.text.isupper() and not shouted}
    marks = [i for i, t in enumerate(tokens) if t.text in _MARKS]
    for first, last in zip(marks[::2], marks[1::2], strict=False):
        found |= set(range(first + 1, last))
    found |= {i for i, t in enumerate(tokens[:-1]) if t.text == "a" and tokens[i + 1].text in _ENDS}
    return frozenset(i for i in found if tokens[i].folded[:1].isalnum() and tokens[i].text != "I")


def _runs(tokens: Sequence[Token], longest: int) -> Iterator[tuple[int, int]]:
    for first in range(len(tokens)):
        for last in range(first + 1, min(first + longest, len(tokens)) + 1):
            yield first, last


def _names(tokens: Sequence[Token], vocabulary: Vocabulary) -> Iterator[Span]:
    """Recognize names of columns and relations; "date of birth" and "number of reviews" hold an "of"."""
    known = words()
    for first, last in _runs(tokens, _LONGEST_NAME):
        inside = tokens[first:last]
        said = tuple(t.stem for t in inside if t.folded not in ("of", "the") or len(inside) < 3)
        if inside[0].folded in ("of", "the") or inside[-1].folded in ("of", "the"):
            continue
        counting = len(inside) > 2 and inside[1].folded == "of" and inside[0].folded in ("number", "numbers", "count")
        if counting and vocabulary.relations_named(tuple(t.stem for t in inside[2:])):
            continue
        columns = vocabulary.columns_named(said)
        best = columns[0][1] if columns else 0.0
        if len(inside) == 1 and known.phrases.get((inside[0].folded,), ("",))[0] in ("aggregate", "extreme"):
            columns = ()
        spoken = best == 1.0 or not (inside[0].folded in _AGGREGATES or all(t.folded in words().silent for t in inside))
        rivals = len([place for place, quality in columns if quality == best])
        if rivals > 1 and best < OWN and len(inside) == 1 and _is_verb(inside[0].folded):
            columns = ()  # "ordered" is no order_id
        if columns and spoken:
            computed = COMPUTED if inside[0].folded in _AGGREGATES[:_COMPUTING] and len(inside) > 1 else ""
            score = (best + 0.05 * (best == 1.0)) * (last - first) + 0.01 * (last - first > 1)
            yield Span(first, last, "C", columns, score, computed)
        relations = vocabulary.relations_named(said)
        if relations:
            score = relations[0][1] * (last - first) + 0.08
            yield Span(first, last, "R", tuple(r for r, _ in relations), score, " ".join(said))


def _values(tokens: Sequence[Token], vocabulary: Vocabulary) -> Iterator[Span]:
    silent = words().silent
    for first, last in _runs(tokens, _LONGEST_NAME + 2):
        inside = tokens[first:last]
        if all(t.folded in silent or t.number is not None for t in inside) and not _proper(inside, first):
            continue
        if not (inside[0].folded[:1].isalnum() and inside[-1].folded[-1:].isalnum()):
            continue
        text = " ".join(t.text for t in inside)
        found = vocabulary.values_named(text, tuple(t.stem for t in inside if t.folded[:1].isalnum()))
        if found:
            best = max(quality for _, quality in found)
            meanings = tuple(m for m, quality in found if quality == best)
            yield Span(first, last, "V", meanings, best * (last - first) + 0.1 * (last - first > 1))


def _proper(inside: Sequence[Token], first: int) -> bool:
    """Return whether words stand as a name does: in capitals, or capitalised within the question."""
    return (
        all(t.text[:1].isupper() for t in inside) and (first > 0 or inside[0].text.isupper()) and inside[0].text != "I"
    )


_KINDS = {
    "aggregate": "A",
    "counts": "H",
    "distinct": "U",
    "by": "B",
    "and": "&",
    "empty": "w",
    "order": "F",
    "descending": "E",
    "ascending": "E",
    "negation": "X",
    "missing": "M",
    "share": "P",
    "average_reference": "G",
    "extreme": "S",
    "superlative": "S",
    "period": "Y",
}


def _phrases(tokens: Sequence[Token], vocabulary: Vocabulary) -> Iterator[Span]:
    known = words()
    for first, last in _runs(tokens, known.longest):
        meant = known.phrases.get(tuple(t.folded for t in tokens[first:last]))
        if meant is None:
            continue
        kind, detail = meant
        size = last - first
        if kind == "operator":
            yield from _comparison(tokens, vocabulary, first, last, detail)
            if detail in "<>" and last < len(tokens):
                yield Span(first, last, "Z", (detail, words().measured(tokens[first].folded)), 0.5 * size)
            if any(_number(token) is not None for token in tokens[last + 1 : last + 5]):
                yield Span(first, last, "k", detail, 0.6 * size)
        elif kind == "average_reference":
            down = any(t.folded.startswith(("below", "under")) for t in tokens[first:last])
            before = tokens[first - 1] if first else None
            meant_by = known.measured(before.folded) if before is not None and tokens[first].folded == "than" else None
            down = down or (before is not None and before.folded in ("less", "lower", "fewer", "smaller"))
            down = down or bool(meant_by and not meant_by[0][1])
            wide = first - 1 if tokens[first].folded == "than" and before is not None else first
            yield Span(wide, last, "G", ("<" if down else ">", meant_by), 1.1 * (last - wide))
        elif kind == "extreme":
            yield from _extreme(tokens, first, last, detail)
        elif kind == "superlative":
            if last < len(tokens) and tokens[last].folded in _PERIODS:
                continue  # "in the first week of 2018"
            ahead = _amount(tokens, first - 1) if first else None
            wide = first - 1 if ahead is not None else first
            yield Span(wide, last, "S", ("measured", detail, ahead or _amount(tokens, last)), 1.05 * (last - wide))
        elif kind == "period" and not (first and tokens[first - 1].folded in ("per", "by", "each", "every", "and")):
            continue
        elif kind in _KINDS:
            yield Span(first, last, _KINDS[kind], detail, 0.95 * size + 0.06 * (size > 1))


def _holdings(tokens: Sequence[Token], vocabulary: Vocabulary, question: str) -> Iterator[Span]:
    """Recognize what a text is to hold: "with Batman in the title", "names that start with S"."""
    for pattern, form in words().holdings:
        for match in pattern.finditer(question):
            column = [
                i for i, t in enumerate(tokens) if match.start("column") <= t.start and t.end <= match.end("column")
            ]
            inside = [i for i, t in enumerate(tokens) if match.start() <= t.start and t.end <= match.end()]
            named = vocabulary.columns_named(tuple(tokens[i].stem for i in column)) if column else ()
            text = match["text"].strip(" \"'“”‘’`?.")
            if named and text:
                yield Span(inside[0], inside[-1] + 1, "L", (form, text, named), 1.2 * len(inside))


def _is_timed(near: Sequence[Token]) -> bool:
    """Return whether the words after a verb tell when: "hired last", "joined before 2020", "born in May"."""
    if not near:
        return False
    first, second = near[0].folded, near[1].folded if len(near) > 1 else ""
    digits = len(near) > 1 and (near[1].number is not None or near[1].text[:1].isupper())
    return (
        first in _TIMED
        or (first in ("in", "on", "from", "between") and digits)
        or (first, second) == ("most", "recently")
    )


def _verbs(tokens: Sequence[Token], vocabulary: Vocabulary) -> Iterator[Span]:
    """Recognize verbs that speak of a column, and values that are denied: "earns", "was hired in", "undelivered"."""
    for i, token in enumerate(tokens):
        near = tokens[i + 1 : i + 4]
        timed = _is_timed(near) or tokens[0].folded == "when"
        places = vocabulary.spoken_by_verb(token.folded, timed=timed)
        if places and (
            timed
            or any(
                t.number is not None or t.folded in ("more", "less", "most", "least", "than", "average", *_BOUNDS)
                for t in near
            )
        ):
            yield Span(i, i + 1, "C", places, 0.95, token.folded)
        if token.folded.startswith("un") and len(token.folded) > 5:
            rest = token.folded[2:]
            values = tuple(m for m, quality in vocabulary.values_named(rest, (stem(rest),)) if quality == 1)
            columns = vocabulary.columns_named((stem(rest),))
            if values:
                yield Span(i, i + 1, "J", values, 0.9)
            elif columns and columns[0][1] >= OWN:
                yield Span(i, i + 1, "j", columns, 0.9)


def _amount(tokens: Sequence[Token], at: int) -> int | None:
    """Return the number right after a superlative: 5 of "top 5"."""
    number = _number(tokens[at]) if at < len(tokens) else None
    return int(number) if number is not None and number == int(number) and 0 < number <= 1000 else None


def _extreme(tokens: Sequence[Token], first: int, last: int, detail: str) -> Iterator[Span]:
    """Recognize "the most", "top 5", "5 largest"; "at most" is no superlative."""
    if first and tokens[first - 1].folded == "at" and tokens[first].folded in ("most", "least"):
        return
    after = _amount(tokens, last)
    before = _amount(tokens, first - 1) if first else None
    meant = next((words().measured(t.folded) for t in tokens[first:last] if words().measured(t.folded)), None)
    said = " ".join(t.folded for t in tokens[first:last])
    if after is not None:
        yield Span(first, last + 1, "S", (detail, meant, after), 1.0 * (last + 1 - first) + 0.05, said)
    elif before is not None:
        yield Span(first - 1, last, "S", (detail, meant, before), 1.0 * (last - first + 1) + 0.05, said)
    yield Span(first, last, "S", (detail, meant, None), 1.0 * (last - first) + 0.02, said)


def _superlatives(tokens: Sequence[Token], vocabulary: Vocabulary) -> Iterator[Span]:
    """Recognize superlatives and comparatives of adjectives that measure something."""
    for i, token in enumerate(tokens):
        if token.folded == "how" and i + 1 < len(tokens):
            yield from _asked_measure(tokens, i, vocabulary)
        meant = words().measured(token.folded)
        if meant is None:
            continue
        if token.folded.endswith("est"):
            before, after = (_amount(tokens, i - 1) if i else None), _amount(tokens, i + 1)
            first, last = (i - 1 if before else i), (i + 2 if after and not before else i + 1)
            yield Span(first, last, "S", ("measured", meant, before or after), 1.0 * (last - first) + 0.01)
        elif i + 1 < len(tokens) and tokens[i + 1].folded == "than":
            up = ">" if meant[0][1] else "<"
            yield from _comparison(tokens, vocabulary, i, i + 2, up, meant)
            yield Span(i, i + 2, "Z", (up, meant), 1.1)


def _asked_measure(tokens: Sequence[Token], at: int, vocabulary: Vocabulary) -> Iterator[Span]:
    """Recognize what "how tall" and "how long" ask for: a column."""
    adjective = tokens[at + 1].folded
    meant = words().measures.get(adjective) if adjective in _OF_ONE_MEASURE else None
    relations = [relation.name for relation in vocabulary.index.catalog.relations] if meant else []
    found = [vocabulary.measured_by(meant, {name}) for name in relations] if meant else []
    places = tuple((each[0], OWN) for each in found if each is not None)
    if places:
        yield Span(at, at + 2, "C", places, 2.0, HOW)


def _numbers(tokens: Sequence[Token], vocabulary: Vocabulary) -> Iterator[Span]:
    """Recognize numbers, with what follows them: "10 or more", "between 3 and 5"."""
    for i, token in enumerate(tokens):
        number = _number(token)
        if number is None:
            continue
        last, unit = _unit(tokens, i + 1, vocabulary)
        yield Span(i, last, "N", (number, unit), 0.9 * (last - i))
        for end in range(last + 1, min(last + 3, len(tokens)) + 1):
            meant = words().phrases.get(tuple(t.folded for t in tokens[last:end]))
            if meant is not None and meant[0] == "after":
                yield Span(i, end, "O", (meant[1], (number,), unit, None), 1.0 * (end - i) + 0.1)
        if i and tokens[i - 1].folded == "between":
            second = next(
                (k for k in range(last + 1, min(last + 2, len(tokens))) if tokens[last].folded == "and"), None
            )
            other = _number(tokens[second]) if second is not None else None
            if second is not None and other is not None:
                end, unit2 = _unit(tokens, second + 1, vocabulary)
                yield Span(i - 1, end, "O", ("between", (number, other), unit or unit2, None), 1.1 * (end - i + 1))


def _number(token: Token) -> float | None:
    return token.number if token.number is not None else SPELLED.get(token.folded)


def _unit(tokens: Sequence[Token], at: int, vocabulary: Vocabulary) -> tuple[int, str | None]:
    known = words().units | vocabulary.units | {"%"}
    if at < len(tokens) and tokens[at].folded in known:
        return at + 1, tokens[at].folded
    return at, None


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
    number = _number(tokens[at]) if at < len(tokens) else None
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


def _days(tokens: Sequence[Token], question: str, today: date) -> Iterator[Span]:
    """Recognize dates, months, years, with the word of time before them."""
    found = [(s.first, s.last, (s.start, s.after), s if s.yearless else None) for s in calendar_spans(question, today)]
    for token in tokens:
        if token.number is not None and len(token.text) == 4 and 1500 <= token.number < 2200:
            year = int(token.number)
            found.append((token.start, token.end, (date(year, 1, 1), date(year + 1, 1, 1)), None))
    for start, end, days, yearless in found:
        inside = [i for i, t in enumerate(tokens) if t.start >= start and t.end <= end]
        if not inside:
            continue
        first, last = inside[0], inside[-1] + 1
        operator = "="
        before = tokens[first - 1].folded if first else ""
        if before in ("between", "from") and last + 1 < len(tokens) and tokens[last].folded in ("and", "to", "until"):
            ended = next((other for other in found if other[0] == tokens[last + 1].start), None)
            if ended is not None:
                until = next((i for i, t in enumerate(tokens) if t.end >= ended[1]), last + 1) + 1
                yield Span(first - 1, until, "D", ("=", (days[0], ended[2][1]), None), 1.0 * (until - first + 1) + 0.1)
        signs = {"after": ">", "since": ">=", "before": "<", "until": "<=", "from": "="}
        if before in signs:
            operator, first = signs[before], first - 1
        yield Span(first, last, "D", (operator, days, yearless), 1.0 * (last - first) + 0.02)


def _lone(tokens: Sequence[Token], vocabulary: Vocabulary) -> Iterator[Span]:
    """Yield each token by itself: a silent word, a verb of a relation's root, or one that nothing is known of."""
    for i, token in enumerate(tokens):
        if token.folded in ("or", "either"):
            yield Span(i, i + 1, "|", None, 0.3)
        elif token.folded in words().silent or not token.folded[:1].isalnum():
            yield Span(i, i + 1, "w", token.folded, 0.3)
        elif token.folded in _GENERIC:
            yield Span(i, i + 1, "w", token.folded, 0.1)
        elif kin := vocabulary.kin(token.folded):
            yield Span(i, i + 1, "r", kin, 0.0, token.folded)
        elif _is_verb(token.folded):
            yield Span(i, i + 1, "v", token.text, -0.9)
        else:
            yield Span(i, i + 1, "?", token.text, -1.0)


def _is_verb(word: str) -> bool:
    """Guess whether a word is a verb in the past: "placed", "sold"."""
    return word in PAST or (len(word) > 4 and word.endswith("ed"))


def best_cover(found: Iterable[Span], size: int) -> tuple[Span, ...]:
    """Return the spans that cover all tokens once with the highest score; of equal ones, those of longer spans."""
    ending: dict[int, list[Span]] = {}
    for span in found:
        ending.setdefault(span.last, []).append(span)
    best: list[tuple[float, tuple[Span, ...]]] = [(0.0, ())]
    for last in range(1, size + 1):
        options = [(best[s.first][0] + s.score - 0.02, (*best[s.first][1], s)) for s in ending.get(last, ())]
        best.append(max(options, key=lambda o: (o[0], -len(o[1]))))
    return best[size][1]
