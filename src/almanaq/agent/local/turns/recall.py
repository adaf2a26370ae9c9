"""recall: a question that is a known one but for values, numbers and dates → the known query with the new ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import pairwise

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from almanaq.agent.linking.amounts import Period, number_at, periods
from almanaq.agent.linking.words import Token, stems, tokenize, value_key
from almanaq.agent.local.spec import number
from almanaq.agent.local.world import World
from almanaq.suql.text_functions import has_text

_DAY = re.compile(r"(\d{4}-\d\d-\d\d)(?: 00:00:00)?")
_SILENT = frozenset("a an the please kindly just me us you can could show give tell find display".split())
"""Words that may differ; not "which" or "how many", which ask for different things."""
_LONGEST = 10
"""Words of the longest value that is taken over."""
_MARKS = frozenset(".,;:?!'\"“”‘’()")
_YEARS = range(1800, 2200)
_ALIKE = 0.9
"""The least share of a period's days that another of its length has: February has 28, March 31."""

New = dict[int, exp.Expr]
"""Places of literals in a query, with what stands there now."""


@dataclass(frozen=True, slots=True)
class _Slot:
    """Tokens of a known question that may differ; `read` gives what other words put in their place, None if unsure."""

    first: int
    last: int
    read: Callable[[Sequence[Token], str], New | None]


def recall(question: str, known: str, suql: str, world: Callable[[], World], today: date) -> str | None:
    """Return the query of a known question for one that says the same; None where anything is unsure.

    Words that ask for nothing may differ, and what the query compares with: a value of the same column, a number, a day
    or period of the same length.

    Args:
        world: gives the source's values; called only where a value differs.
    """
    asked, tokens = tokenize(question), tokenize(known)
    if _said(asked) == _said(tokens) and not any(_periods(tokens, known, today)):
        return suql
    if not _may_differ_in_values(asked, tokens, known, suql, today):
        return None
    try:
        dialect = world().dialect
        tree = sqlglot.parse_one(suql, read=dialect)
    except SqlglotError:
        return None
    slots = _find_slots(tokens, known, tree, world, today)
    new = None if slots is None else _fill(slots, asked, question, tokens)
    if new is None:
        return None
    for place, literal in enumerate(list(tree.find_all(exp.Literal))):
        if place in new:
            literal.replace(new[place])
    return tree.sql(dialect, normalize_functions=False)


def _may_differ_in_values(asked: Sequence[Token], tokens: Sequence[Token], known: str, suql: str, today: date) -> bool:
    """Return whether the words that a question lacks may stand for literals: cheap, as thousands may be known."""
    explained = {*(token.stem for token in asked), *stems(suql), *value_key(suql).split()}
    lacking = (i for i, t in enumerate(tokens) if _counts(t) and not {t.stem, t.folded} & explained)
    missing = [i for i in lacking if number_at(tokens, i) is None]
    in_periods = {i for first, last, _ in _periods(tokens, known, today) for i in range(first, last)} if missing else ()
    return all(i in in_periods for i in missing)


def _said(tokens: Sequence[Token]) -> tuple[str, ...]:
    return tuple(t.stem for t in tokens if _counts(t))


def _counts(token: Token) -> bool:
    """Return whether a word or mark asks for something."""
    return token.folded not in _SILENT if token.is_word else token.text not in _MARKS


def _fill(slots: Sequence[_Slot], asked: Sequence[Token], question: str, known: Sequence[Token]) -> New | None:
    """Return what stands in the slots where a question says all else that a known one says; None where it does not."""
    begins, pattern, i = {slot.first: slot for slot in slots}, "", 0
    while i < len(known):
        if i not in begins:
            pattern += re.escape(f"{known[i].stem}\n") if _counts(known[i]) else ""
        else:
            pattern += rf"((?:[^\n]+\n){{1,{_LONGEST}}}?)"
        i = begins[i].last if i in begins else i + 1
    counted = [i for i, token in enumerate(asked) if _counts(token)]
    said = "".join(f"{asked[i].stem}\n" for i in counted)
    match = re.fullmatch(pattern, said)
    if match is None:
        return None
    new: New = {}
    for group, slot in enumerate(slots, 1):
        first, last = (said.count("\n", 0, end) for end in match.span(group))
        silent = counted[first - 1] if first else -1  # "the" may be a part of a value
        begun = (asked[start : counted[last - 1] + 1] for start in range(counted[first], silent, -1))
        read = next((read for words in begun if (read := slot.read(words, question)) is not None), None)
        if read is None:
            return None
        new |= read
    return new


def _find_slots(
    tokens: Sequence[Token], known: str, tree: exp.Expr, world: Callable[[], World], today: date
) -> list[_Slot] | None:
    """Return the parts of a known question that stand for literals of its query; None where a period is no such part.

    A period that the query does not hold ("last month", confirmed long ago) would be answered with days gone by.
    """
    literals = [(place, one) for place, one in enumerate(tree.find_all(exp.Literal)) if not _is_asked_of_texts(one)]
    days = {place: found for place, one in literals if (found := _read_day(one.name)) is not None}
    slots: list[_Slot] = []
    for first, last, meant in _periods(tokens, known, today):
        slot = _period_slot(first, last, meant, days, today)
        of_year = meant.year is not None and any(each.name == str(meant.year) for _, each in literals)
        if slot is not None:
            slots.append(slot)
        elif days or not of_year:
            return None
    for i, token in enumerate(tokens):
        given = number_at(tokens, i)
        if given is None or any(slot.first <= i < slot.last for slot in slots) or not token.is_word:
            continue
        value, last = given
        places = [place for place, one in literals if not one.is_string and float(one.name) == value]
        if len(places) == 1:
            slots.append(_Slot(i, last, _number_reader(places[0], value, dict(literals)[places[0]])))
    for text in dict.fromkeys(one.name for place, one in literals if one.is_string and place not in days):
        at = [(i, j) for i in range(len(tokens)) for j in range(i + 1, min(i + _LONGEST, len(tokens)) + 1)
              if tokens[i].is_word and tokens[j - 1].is_word and _spells(tokens[i:j], known, text)]  # fmt: skip
        own = [(place, one) for place, one in literals if one.is_string and one.name == text]
        columns = {_column_of(one) for _, one in own}
        if len(at) == len(columns) == 1 and (column := columns.pop()) is not None:
            slots.append(_Slot(*at[0], _value_reader([place for place, _ in own], text, column, tree, world)))
    slots.sort(key=lambda slot: slot.first)
    overlap = any(one.last > other.first for one, other in pairwise(slots))
    return None if overlap else slots


def _is_asked_of_texts(literal: exp.Expr) -> bool:
    call = literal.find_ancestor(exp.Anonymous)
    return call is not None and has_text(call)


def _read_day(text: str) -> date | None:
    match = _DAY.fullmatch(text)
    try:
        return date.fromisoformat(match[1]) if match else None
    except ValueError:
        return None


def _periods(tokens: Sequence[Token], question: str, today: date) -> Iterator[tuple[int, int, Period]]:
    """Yield the longest spans of days that a question names."""
    spans = [s for s in periods(tokens, question, today) if s.kind == "period"]
    for span in spans:
        if not any(s.first <= span.first and span.last <= s.last and s.size > span.size for s in spans):
            yield span.first, span.last, span.meanings[0]


def _period_slot(first: int, last: int, meant: Period, days: dict[int, date], today: date) -> _Slot | None:
    """Return the slot of a period whose days are all those that a query compares with."""
    ends = {meant.start: 0, meant.after: 1, meant.after - timedelta(days=1): 2}
    if not days or not set(days.values()) <= set(ends):
        return None

    def read(words: Sequence[Token], question: str) -> New | None:
        text = question[words[0].start : words[-1].end]
        own = tokenize(text)
        other = [m for begin, end, m in _periods(own, text, today) if begin == 0 and end == len(own)]
        if len(other) != 1 or other[0].sign != meant.sign:
            return None
        few, many = sorted(each.after - each.start for each in (meant, other[0]))
        if few < _ALIKE * many:
            return None
        new = (other[0].start, other[0].after, other[0].after - timedelta(days=1))
        return {place: exp.Literal.string(new[ends[day]].isoformat()) for place, day in days.items()}

    return _Slot(first, last, read)


def _number_reader(place: int, value: float, literal: exp.Expr) -> Callable[[Sequence[Token], str], New | None]:
    whole = isinstance(literal.parent, exp.Limit | exp.Fetch | exp.Offset)

    def read(words: Sequence[Token], _: str) -> New | None:
        found = number_at(words, 0)
        if found is None or found[1] != len(words) or (found[0] in _YEARS) is not (value in _YEARS):
            return None
        if whole and (found[0] != int(found[0]) or found[0] < 1):
            return None
        return {place: number(found[0])}

    return read


def _spells(words: Sequence[Token], question: str, text: str) -> bool:
    said = question[words[0].start : words[-1].end]
    return value_key(said) == value_key(text) or stems(said) == stems(text)


def _value_reader(
    places: Sequence[int], text: str, column: exp.Column, tree: exp.Expr, world: Callable[[], World]
) -> Callable[[Sequence[Token], str], New | None]:
    """Return what reads another value of the column that a query compares with a text."""

    def read(words: Sequence[Token], question: str) -> New | None:
        if not (words[0].is_word and words[-1].is_word):
            return None
        said = question[words[0].start : words[-1].end]
        if _spells(words, question, text):
            return {place: exp.Literal.string(text) for place in places}
        index = world().index
        relations = [r for r in _relations(column, tree) if index.column(r, column.name) is not None]
        spelled = [*index.values_spelled(said), *index.values_of_stems(stems(said))]
        columns = [m for m in spelled if not m.how and m.column.name.casefold() == column.name.casefold()]
        own = {m.value for m in columns if [m.column.relation.name] == relations}
        return {place: exp.Literal.string(next(iter(own))) for place in places} if len(own) == 1 else None

    return read


def _column_of(literal: exp.Expr) -> exp.Column | None:
    """Return the column that a literal is compared with; None where it is not one column, as it is."""
    parent = literal.parent
    if isinstance(parent, exp.In) and isinstance(parent.this, exp.Column):
        return parent.this
    if isinstance(parent, exp.EQ | exp.NEQ):
        other = parent.left if parent.right is literal else parent.right
        return other if isinstance(other, exp.Column) else None
    return None


def _relations(column: exp.Column, tree: exp.Expr) -> list[str]:
    """Return the relations that a column may be of, by its table or alias."""
    tables = {table.alias_or_name: ".".join(part.name for part in table.parts) for table in tree.find_all(exp.Table)}
    if column.table:
        return [tables[column.table]] if column.table in tables else []
    return list(dict.fromkeys(tables.values()))
