"""Constructions that compare: with numbers, days, the average, another row. Each gives whether it took its match."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import date

from almanaq.agent.local_old import sql
from almanaq.agent.local_old.compose.days import days_test
from almanaq.agent.local_old.compose.refusal import NotUnderstood
from almanaq.agent.local_old.compose.state import State
from almanaq.agent.local_old.frame import Term, Test
from almanaq.agent.local_old.joins import key_of
from almanaq.agent.local_old.recognize.called import OWN, thing_of
from almanaq.agent.local_old.recognize.spans import Span, is_deed
from almanaq.agent.local_old.recognize.words import words
from almanaq.agent.local_old.schema_index import Place
from almanaq.agent.local_old.words import stem

_EQUATING = {"is", "are", "was", "were", "of", "be", "equals", "=", ":", "number", "the", "has", "have", "a", "level"}
"""Words between a column and the number that it is to be; "in" says something else."""
_TURNED = {">": "<", "<": ">", ">=": "<=", "<=": ">="}
_COUNTED_UNITS = ("people", "person", "inhabitant", "year", "old")
_LARGE = 1000
"""A number from which on it is no number of another kind where no value of a column comes near it."""
_SIXTIETHS = ("second", "minute", "hour")
"""Units of which each is sixty times, or a sixtieth of, the next."""


def average_reference(state: State, match: re.Match[str], g: Span, a: Span | None, b: Span | None) -> bool:
    operator, measured = g.data
    named = a or b
    place = state.place(named, numeric=True) if named is not None else state.measured(measured)[0]
    rows = state.nouns_in_order()[:1]
    several = bool(rows) and rows[0] != place.relation and not state.is_single(rows[0], place.relation)
    if place.kind != "number" or several or "D" in state.kinds:
        raise NotUnderstood(f"of what the average of {place.column.name} is taken")
    average = f"SELECT AVG({sql.compared(place, False)}) FROM {sql.name(place.relation.name)}"
    state.test(place, f"{{}} {operator} ({average})")
    return state.use(match)


def compared(state: State, match: re.Match[str], o: Span, a: Span | None = None, f: Span | None = None) -> bool:
    """A column beside a comparison: "alcohol above 12", "more than 12% alcohol", "heavier than 6000 g"."""
    operator, numbers, unit, measured = o.data
    beside = a is not None and f is None and bool(unit or measured) and state.place(a).kind == "text"
    a = None if beside else a  # "in Oslo county bigger than 100 acres"
    meant = (state.place(a, numeric=True), operator) if a is not None else _unnamed(state, match, o, f is None)
    if meant is None:
        return False
    place, operator = meant
    state.compared[match.start("o")] = place
    if max(numbers) >= _LARGE and place.kind == "number" and not state.vocabulary.partners.reaches(place, max(numbers)):
        raise NotUnderstood(f"whether {place.column.name} is compared with {sql.number(max(numbers))}")
    if place.kind == "date" and f is None and _are_years(numbers):
        start, after = date(int(numbers[0]), 1, 1), date(int(numbers[-1]) + 1, 1, 1)
        template = days_test(place, "=" if operator == "between" else operator, start, after)
    elif place.kind == "number":
        template = _comparison(operator, [_in_unit_of(state, place, number, unit) for number in numbers])
    else:
        raise NotUnderstood(f"{place.column.name} is compared with a number")
    tests = state.frame.tests if f is None else state.frame.having
    tests.append(Test(Term("" if f is None else f.data, place), template))
    return state.use(match, "o") if beside else state.use(match)


def _unnamed(state: State, match: re.Match[str], comparison: Span, may_be_years: bool) -> tuple[Place, str] | None:
    """Return the column that a comparison is of which names none, and its operator."""
    operator, numbers, unit, measured = comparison.data
    if measured and not (unit and state.vocabulary.measured_by(measured, state.names) is None):
        place, up = state.measured(measured, state.noun_before(match.start("o")))
        # Older is an earlier year of birth.
        return place, _TURNED.get(operator, operator) if measured[0][1] and not up else operator
    if unit:
        return _place_in_unit(state, unit), operator
    listed = re.search(r"O[w&|]*[&|][w&|]*$", "".join(span.kind for span in state.spans[: match.start("o")]))
    if listed is not None and listed.start() in state.compared:
        return state.compared[listed.start()], operator  # "built before 1960 or after 1990"
    if may_be_years and _are_years(numbers):
        return state.time_column(), operator
    if "V" in "".join(state.kinds[match.end("o") :])[:2]:
        return None  # "at least 2 seals" are no age
    near = (p for p in state.vocabulary.index.all_places() if p.relation.name in state.names)
    ages = [p for p in near if p.stems[-1:] == ("age",)]  # "players under 25"
    return (ages[0], operator) if len(ages) == 1 and operator in _TURNED and max(numbers) < 120 else None


def _place_in_unit(state: State, unit: str) -> Place:
    """Return the one column whose numbers are in a unit; sums of money are in one of prices."""
    known = words()
    called = state.vocabulary.columns_named((stem(unit),))  # "more than 2000 people" of a population
    for each in (unit, known.converted.get(unit, (unit, 1.0))[0], unit[:1]):
        if fit := state.vocabulary.in_unit(each, state.names):
            break
    else:
        fit = tuple(p for p, quality in called if quality >= OWN and p.relation.name in state.names)
    if not fit:
        near = (p for p, quality in called if p.kind == "number" and not p.identifier)
        fit = tuple(p for p in near if p.relation.name in state.names)  # acres of "acres burned"
    if not fit and unit in known.money:
        priced = state.vocabulary.measured_by(known.measures["expensive"], state.names)
        fit = (priced[0],) if priced is not None else ()
    if not fit and unit == "old":
        aged = state.vocabulary.measured_by(known.measures["old"], state.names)
        fit = (aged[0],) if aged is not None else ()
    if len(fit) != 1:
        raise NotUnderstood(f"which column is in {unit}")
    return fit[0]


def _in_unit_of(state: State, place: Place, number: float, unit: str | None) -> float:
    """Return a number in the unit of a column: 5 kg in g; per cent where the column holds fractions."""
    own = state.vocabulary.unit_of(place)
    if unit is None or unit in own:
        return number
    if unit == "%":
        samples = [float(s) for s in place.column.samples if re.fullmatch(r"-?\d+(\.\d+)?", s)]
        return number / 100 if samples and max(map(abs, samples)) <= 1 and number > 1 else number
    to, factor = words().converted.get(unit, (unit, 1.0))
    if to in own or stem(to) in place.stems:
        return number * factor
    if unit in words().money or stem(unit) in (*place.stems, *_COUNTED_UNITS) or _is_usual(state, place, number, unit):
        return number
    raise NotUnderstood(f"whether {place.column.name} is in {unit}")


def _is_usual(state: State, place: Place, number: float, unit: str) -> bool:
    """Return whether a time lies near those of a column that states no unit: sixty times as long would be another."""
    column, finds = sql.compared(place, False), state.vocabulary.index.finds
    if finds is None or stem(unit) not in _SIXTIETHS or state.vocabulary.unit_of(place):
        return False
    near = f"AVG({column}) BETWEEN {sql.number(number / 8)} AND {sql.number(number * 8)}"
    inside = f"MIN({column}) <= {sql.number(number)} AND MAX({column}) >= {sql.number(number)}"
    return finds(f"SELECT COUNT(*) FROM {sql.name(place.relation.name)} HAVING {near} AND {inside}")


def beside_number(state: State, match: re.Match[str], k: Span, a: Span, n: Span) -> bool:
    """ "Above age 20"."""
    place = state.place(a, numeric=True)
    if place.kind != "number":
        return False
    state.test(place, _comparison(k.data, [_in_unit_of(state, place, *n.data)]))
    return state.use(match)


def apart_from_number(state: State, match: re.Match[str], a: Span, z: Span, n: Span) -> bool:
    """ "A greater weight than 10"."""
    return beside_number(state, match, replace(z, data=z.data[0]), a, n)


def counted_rows(state: State, match: re.Match[str], o: Span, r: Span) -> bool:
    """Rows of a relation compared in number: "countries with more than 200 airports"."""
    operator, numbers, unit, measured = o.data
    if unit or measured or not ("C" in state.kinds or state.kinds.count("R") > 1):
        return False
    state.frame.having.append(Test(Term("COUNT", None), _comparison(operator, numbers)))
    state.counted_relation = state.having_of = state.mention(r.data)
    done = max((i for i in range(match.start()) if state.kinds[i] != "w"), default=0)
    if state.kinds[done] == "C" and is_deed(state.spans[done]) and state.place(state.spans[done]).relation in r.data:
        state.silence(done, done + 1)  # "opened more than 5 tickets" is no group of the day they were opened
    return state.use(match)


def counted_values(state: State, match: re.Match[str], o: Span, a: Span) -> bool:
    """Values of a column compared in number: "customers with more than 3 different products"."""
    operator, numbers, unit, measured = o.data
    amounts = [p for p, _ in a.data if p.kind == "number" and not p.identifier and p.relation.name in state.names]
    beside = {str(span.data) for span in state.spans[match.end("o") : match.start("a")]} & {":", ",", ";", "-"}
    whole = all(number == int(number) for number in numbers)
    if beside or not whole or (amounts and "U" not in match.group()):
        return False  # "more than 5 items", of a quantity
    place = state.place(a)
    several = place.kind == "text" or (place.identifier and "U" in match.group())
    if state.frame.having or dict(a.data)[place] < OWN:
        return False
    if unit or measured or not several or place.column.array or state.vocabulary.is_list(place):
        return False
    state.frame.having.append(Test(Term("COUNT DISTINCT", place), _comparison(operator, numbers)))
    return state.silence(*match.span())


def equal(state: State, match: re.Match[str], a: Span, n: Span) -> bool:
    """A column right before a number: "quality 8", "year is 2004"."""
    between = {span.data for span in state.spans[match.end("a") : match.start("n")]}
    place = state.place(a, numeric=True)
    written = state.vocabulary.numbered(place, n.data[0]) if place.kind == "text" and n.data[1] is None else None
    if written is not None and between <= _EQUATING:
        state.test(place, f"{{}} = {sql.text(written)}")
        return state.use(match)
    if place.kind != "number" or not between <= _EQUATING:
        return False
    more = re.match(r"(?:[w|]*N)*", "".join(state.kinds[match.end() :]))
    last = match.end() + (more.end() if more and "|" in more.group() else 0)
    listed = [n, *(span for span in state.spans[match.end() : last] if span.kind == "N")]
    numbers = [sql.number(_in_unit_of(state, place, *each.data)) for each in listed]
    state.test(place, f"{{}} = {numbers[0]}" if len(numbers) == 1 else f"{{}} IN ({', '.join(numbers)})")
    return state.silence(match.start(), last)


def by_number(state: State, match: re.Match[str], b: Span, a: Span, n: Span) -> bool:
    """ "Made by skipper 103": the one with a number."""
    place = state.place(a, numeric=True)
    if b.data != "by" or place.kind != "number" or not place.identifier or n.data[1] is not None:
        return False
    state.test(place, f"{{}} = {sql.number(n.data[0])}")
    return state.silence(*match.span())


def years_old(state: State, match: re.Match[str], n: Span) -> bool:
    """ "A cat that is 3 years old"."""
    amount, unit = n.data
    ages = [(p, OWN) for p in state.vocabulary.index.all_places() if p.stems[-1:] == ("age",) and p.kind == "number"]
    if unit != "old" or not ages:
        return False
    state.test(state.place(replace(n, kind="C", data=tuple(ages))), f"{{}} = {sql.number(amount)}")
    return state.use(match)


def numbered(state: State, match: re.Match[str], r: Span, n: Span) -> bool:
    """ "Order 10250": the row with this key."""
    amount, unit = n.data
    places = [p for relation in r.data for p in state.vocabulary.index.places[relation.name]]
    keys = [p for p in places if p.kind == "number" and (p.column.name == key_of(p.relation) or _is_called(p, r))]
    if len(r.data) != 1 or len(keys) != 1 or unit is not None or amount != int(amount):
        return False
    state.test(keys[0], f"{{}} = {sql.number(amount)}")
    return state.use(match, "n")


def _is_called(key: Place, rows: Span) -> bool:
    """Return whether rows are called as their key is: session 12, of `session_id`."""
    return thing_of(key) == tuple(rows.said.split())


def equal_before(state: State, match: re.Match[str], n: Span, a: Span) -> bool:
    """ "With 4 cylinders", "8 cylinder cars"."""
    amount, unit = n.data
    place = state.place(a, numeric=True)
    if place.kind != "number" or place.identifier or unit is not None or "S" in state.kinds:
        return False
    state.test(place, f"{{}} = {sql.number(amount)}")
    return state.use(match)


def beyond_row(state: State, match: re.Match[str], z: Span, a: Span | None) -> bool:
    """More or less than one row has: "longer than The Salt Road", "joined before Tom Achter"."""
    operator, measured = z.data
    meanings = [state.meaning(state.spans[i]) for i in range(*match.span("values"))]
    place = state.place(a, numeric=True) if a is not None else None
    if place is None:
        if measured is None:
            return False
        place, up = state.measured(measured, [] if state.names else [meanings[0][0].relation])
        operator = operator if measured[0][1] == up else _TURNED[operator]
    if {m[0].relation.name for m in meanings} != {place.relation.name} or place.kind not in ("number", "date"):
        raise NotUnderstood(f"whose {place.column.name} is compared")
    if not any("name" in m[0].roles or state.vocabulary.names_rows(m[0]) for m in meanings):
        raise NotUnderstood("which row is compared with")
    same = " AND ".join(f"{sql.column(m[0], False)} = {sql.text(m[1])}" for m in meanings)
    rows = f"FROM {sql.name(place.relation.name)} WHERE {same}"
    finds = state.vocabulary.index.finds
    if finds is not None and finds(f"SELECT COUNT(*) {rows} HAVING COUNT(*) > 1"):
        raise NotUnderstood(f"which {meanings[0][1]} is compared with")
    row = f"SELECT {sql.compared(place, False)} {rows}"
    state.test(place, f"{{}} {operator} ({row})")
    return state.silence(*match.span())


def beside_column(state: State, match: re.Match[str], a: Span, z: Span, b: Span) -> bool:
    """ "Stock below the reorder level"."""
    left, right = state.place(a, numeric=True), state.place(b, numeric=True)
    if left.relation != right.relation or left.kind != right.kind or left.kind not in ("number", "date"):
        raise NotUnderstood(f"how {left.column.name} is compared with {right.column.name}")
    state.test(left, f"{{}} {z.data[0]} {sql.compared(right, True)}")
    return state.use(match)


def holding(state: State, match: re.Match[str], t: Span) -> bool:
    """A text that holds, begins or ends with what was written: "with Batman in the title"."""
    form, text, columns = t.data
    place = state.place(replace(t, kind="C", data=columns))
    if place.kind not in ("text", "prose") or place.column.array:
        raise NotUnderstood(f"what {place.column.name} is to hold")
    state.test(place, "{} ILIKE " + sql.text(form.replace("X", sql.escaped(text))))
    counted = re.search(r"H[wU]*$", "".join(state.kinds[: match.start()]))
    if counted is not None and place.kind == "text" and not state.vocabulary.names_rows(place):
        state.counts, state.counted = True, place  # "how many product types contain milk"
        return state.silence(counted.start(), match.end())
    return state.use(match)


def _are_years(numbers: Sequence[float]) -> bool:
    return all(number == int(number) and 1500 <= number < 2200 for number in numbers)


def _comparison(operator: str, values: Sequence[float]) -> str:
    written = [sql.number(value) for value in values]
    return f"{{}} BETWEEN {written[0]} AND {written[1]}" if operator == "between" else f"{{}} {operator} {written[0]}"
