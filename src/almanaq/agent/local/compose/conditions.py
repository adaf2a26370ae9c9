"""Constructions that make a condition: each gives whether it took the spans of its match."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from typing import Any

from almanaq.agent.local import sql
from almanaq.agent.local.compose.state import NotUnderstood, State
from almanaq.agent.local.frame import Member, Term, Test
from almanaq.agent.local.recognize.words import words
from almanaq.agent.local.schema_index import Place
from almanaq.agent.local.words import roots, stem

_EQUATING = {"is", "are", "was", "were", "of", "be", "equals", "=", ":", "number", "the", "has", "have", "a", "level"}
"""Words between a column and the number that it is to be; "in" says something else."""


_WHEN = {"year", "founded", "built", "born", "birth", "since", "released", "date", "season", "opened"}


def average_reference(state: State, match: re.Match[str]) -> bool:
    span = state.one(match, "g")
    assert span is not None
    operator, measured = span.data
    named = state.one(match, "a") or state.one(match, "b")
    place = state.place(named, numeric=True) if named is not None else state.measured(measured)
    table = sql.name(place.relation.name)
    if place.kind != "number":
        raise NotUnderstood(f"the average of {place.column.name}")
    column = sql.compared(place, False)
    state.frame.tests.append(Test(Term("", place), f"{{}} {operator} (SELECT AVG({column}) FROM {table})"))
    state.use(match)
    return True


def compared(state: State, match: re.Match[str]) -> bool:
    """A column beside a comparison: "alcohol above 12", "more than 12% alcohol", "heavier than 6000 g"."""
    told = state.one(match, "o")
    assert told is not None
    operator, numbers, unit, measured = told.data
    parts = match.groupdict()
    function = state.one(match, "f") if "f" in parts else None
    named = next((span for name in "ab" if name in parts and (span := state.one(match, name)) is not None), None)
    in_years = function is None and operator != "between" and _is_year(numbers)
    between_years = function is None and operator == "between" and all(_is_year([number]) for number in numbers)
    if named is not None:
        place = state.place(named, numeric=True)
    elif not (measured or unit) and (before := _compared_before(state, match.start("o"))):
        place = before
    elif measured:
        place, operator = _measured_place(state, measured, operator)
    elif unit:
        place = _place_in_unit(state, unit)
    elif in_years or between_years:
        place = state.time_column()
    elif aged := _aged(state, operator, numbers):
        place = aged
    else:
        return False
    if place.kind == "date" and in_years:
        year = int(numbers[0])
        test = Test(Term("", place), days_test(place, operator, date(year, 1, 1), date(year + 1, 1, 1)))
    elif place.kind == "date" and between_years:
        first, last = (int(number) for number in numbers)
        test = Test(Term("", place), days_test(place, "=", date(first, 1, 1), date(last + 1, 1, 1)))
    elif place.kind == "number":
        values = [_in_unit_of(state, place, number, unit) for number in numbers]
        test = Test(Term(function.data if function else "", place), _comparison(operator, values))
    else:
        raise NotUnderstood(f"{place.column.name} is compared with a number")
    (state.frame.having if function else state.frame.tests).append(test)
    state.compared[match.start("o")] = place
    state.use(match)
    return True


def _compared_before(state: State, at: int) -> Place | None:
    """Return the column of the comparison that one is listed with: "built before 1960 or after 1990"."""
    i = at - 1
    while i >= 0 and state.spans[i].kind in "w&|":
        i -= 1
    listed = {"&", "|"} & {span.kind for span in state.spans[i + 1 : at]}
    return state.compared.get(i) if listed else None


def _aged(state: State, operator: str, numbers: Sequence[float]) -> Place | None:
    """Return the one column of ages, for "players under 25" that names no column."""
    ages = [
        p for p in state.vocabulary.index.all_places() if p.stems[-1:] == ("age",) and p.relation.name in state.names
    ]
    return ages[0] if len(ages) == 1 and operator in ("<", ">", "<=", ">=") and max(numbers) < 120 else None


def _measured_place(state: State, measured: Sequence[tuple[str, bool]], operator: str) -> tuple[Place, str]:
    """Return the column that a comparative measures, and the operator for it: older is an earlier year of birth."""
    known = state.vocabulary.measured_by(measured, state.names)
    if known is None:
        raise NotUnderstood("what is compared")
    place, up = known
    if measured[0][1] and not up:
        operator = {">": "<", "<": ">", ">=": "<=", "<=": ">="}.get(operator, operator)
    return place, operator


def _place_in_unit(state: State, unit: str) -> Place:
    """Return the one column whose numbers are in a unit; sums of money are in one of prices."""
    known = words()
    fit = state.vocabulary.in_unit(known.converted.get(unit, (unit, 1.0))[0], state.names)
    fit = fit or state.vocabulary.in_unit(unit[:1], state.names)
    if not fit and unit in known.money:
        priced = state.vocabulary.measured_by(known.measures["expensive"], state.names)
        fit = (priced[0],) if priced is not None else ()
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
    if (
        unit in words().money
        or stem(unit) in place.stems
        or stem(unit) in ("people", "person", "inhabitant", "year", "old")
    ):
        return number
    raise NotUnderstood(f"whether {place.column.name} is in {unit}")


def beside_number(state: State, match: re.Match[str]) -> bool:
    """ "Above age 20"."""
    told, named, number = state.one(match, "k"), state.one(match, "a"), state.one(match, "n")
    assert told is not None
    assert named is not None
    assert number is not None
    place = state.place(named, numeric=True)
    if place.kind != "number":
        return False
    value = _in_unit_of(state, place, *number.data)
    state.frame.tests.append(Test(Term("", place), _comparison(told.data, [value])))
    state.use(match)
    return True


def counted_rows(state: State, match: re.Match[str]) -> bool:
    """Rows of a relation compared in number: "countries with more than 200 airports"."""
    told, noun = state.one(match, "o"), state.one(match, "r")
    assert told is not None
    assert noun is not None
    operator, numbers, unit, measured = told.data
    if unit or measured or not ("C" in state.kinds or state.kinds.count("R") > 1):
        return False
    state.frame.having.append(Test(Term("COUNT", None), _comparison(operator, numbers)))
    state.mention(noun.data)
    state.counted_relation = state.one_of(noun.data)
    state.use(match)
    return True


def equal(state: State, match: re.Match[str]) -> bool:
    """A column right before a number: "quality 8", "year is 2004"."""
    named, number = state.one(match, "a"), state.one(match, "n")
    assert named is not None
    assert number is not None
    between = {span.data for span in state.spans[match.end("a") : match.start("n")]}
    place = state.place(named, numeric=True)
    if place.kind != "number" or not between <= _EQUATING:
        return False
    value = _in_unit_of(state, place, *number.data)
    state.frame.tests.append(Test(Term("", place), f"{{}} = {sql.number(value)}"))
    state.use(match)
    return True


def equal_before(state: State, match: re.Match[str]) -> bool:
    """ "With 4 cylinders", "8 cylinder cars"."""
    number, named = state.one(match, "n"), state.one(match, "a")
    assert number is not None
    assert named is not None
    amount, unit = number.data
    place = state.place(named, numeric=True)
    if place.kind != "number" or place.identifier or unit is not None or "S" in state.kinds:
        return False
    state.frame.tests.append(Test(Term("", place), f"{{}} = {sql.number(amount)}"))
    state.use(match)
    return True


def missing(state: State, match: re.Match[str]) -> bool:
    named = state.one(match, "a")
    assert named is not None
    place = state.place(named)
    if without_fact(state, place):
        state.use(match)
        return True
    written = state.vocabulary.written_missing(place)
    template = f"({{}} IS NULL OR {{}} = {sql.text(written)})" if written else "{} IS NULL"
    state.frame.tests.append(Test(Term("", place), template))
    state.use(match)
    return True


def none_of(state: State, match: re.Match[str]) -> bool:
    """ "No discount": 0 of a number that is always there, nothing where it may be missing."""
    named, no = state.one(match, "a"), state.one(match, "x")
    assert named is not None
    assert no is not None
    if no.data not in ("no", "without", "out of"):
        return False
    place = state.place(named)
    if place.kind == "boolean":
        return affirmed(state, match)
    if without_fact(state, place):
        state.use(match)
        return True
    if place.kind == "number":
        noughts = any(re.fullmatch(r"0(\.0+)?", sample) for sample in place.column.samples)
        state.frame.tests.append(Test(Term("", place), "{} = 0" if noughts else "({} IS NULL OR {} = 0)"))
    elif place.kind in ("text", "date"):
        state.frame.tests.append(Test(Term("", place), "{} IS NULL"))
    else:
        return False
    state.use(match)
    return True


def without_fact(state: State, place: Place) -> bool:
    """Ask for things of which a relation that holds one fact of each holds none: "cities with no river"."""
    hubs = {group.hub.name for group in state.vocabulary.facts}
    if place.relation.name in hubs or place.relation.name not in state.vocabulary.of_facts(hubs):
        return False
    state.frame.members.append(Member(place.relation, (Test(Term("", place), "{} IS NOT NULL"),), False))
    return True


def denied_column(state: State, match: re.Match[str]) -> bool:
    """ "Not in city Paris", "do not have the colour red"."""
    return of_column(state, match) and denied(state, match)


def denied(state: State, match: re.Match[str]) -> bool:
    value = state.one(match, "v")
    assert value is not None
    place, spelled = state.meaning(value)
    rows = state.nouns_in_order()[:1] or [place.relation]
    if not state.is_single(rows[0], place.relation):
        if value.data[0][0].column.array or state.vocabulary.is_list(place):
            raise NotUnderstood(f"whether one row of {place.relation.name} or all of them are meant")
        state.frame.members.append(
            Member(place.relation, (Test(Term("", place), f"{{}} = {sql.text(spelled)}"),), False)
        )
        state.use(match, "x", "v")
        return True
    if state.vocabulary.is_list(place):
        template = f"NOT {list_test(spelled)}"
    else:
        template = ("NOT {1} = ANY({0})" if place.column.array else "{0} <> {1}").format("{}", sql.text(spelled))
    state.frame.tests.append(Test(Term("", place), template))
    state.use(match, "x", "v")
    return True


def affirmed(state: State, match: re.Match[str]) -> bool:
    """A column that holds yes or no: "did not complete the clutch"."""
    named = state.one(match, "a")
    assert named is not None
    place = state.place(named)
    listed = re.search(r"B[wCRY&]*$", "".join(state.kinds[: match.start("a")]))  # "by species and chipped"
    if place.kind != "boolean" or listed:
        return False
    forms = ("{} IS TRUE", "{} IS FALSE")
    if place.affirms == "1":
        forms = ("{} = 1", "{} = 0")
    elif place.affirms is not None:
        forms = (f"{{}} = {sql.text(place.affirms)}", f"{{}} <> {sql.text(place.affirms)}")
    state.frame.tests.append(Test(Term("", place), forms[bool(match["x"])]))
    state.use(match)
    return True


def absent(state: State, match: re.Match[str]) -> bool:
    """ "Stadiums without any concert"."""
    noun = state.one(match, "r")
    assert noun is not None
    others = {p.relation for s in state.spans if s.kind == "C" for p, quality in s.data[:1] if quality == 1}
    if len(noun.data) != 1 or (state.kinds.count("R") < 2 and not others - {noun.data[0]}):
        return False
    state.frame.absent.append(noun.data[0])
    state.use(match)
    return True


def other_days(state: State, match: re.Match[str]) -> bool:
    """ "Not from 1999"."""
    span = state.one(match, "d")
    assert span is not None
    operator, (start, after), yearless = span.data
    place = state.time_column(state.rows_before(match.start("x")))
    if operator not in ("=", "from") or yearless is not None:
        return False
    state.frame.tests.append(Test(Term("", place), f"NOT ({days_test(place, '=', start, after)})"))
    state.use(match)
    return True


def days(state: State, match: re.Match[str]) -> bool:
    span = state.one(match, "d")
    assert span is not None
    named = state.one(match, "a")
    place = state.place(named) if named is not None else None
    if place is None or not _says_when(place):
        place = state.time_column(state.rows_before(match.start("d")))
        state.use(match, "d")
    else:
        state.use(match)
    operator, (start, after), yearless = span.data
    if yearless is not None:
        index = state.vocabulary.index
        start, after = yearless.nearest(min(filter(None, (index.latest(place), index.today()))))
    test = Test(Term("", place), days_test(place, operator, start, after))
    other = next((each for each in state.frame.tests if each.term == test.term), None)
    if other is not None and operator == "=":
        between = "".join(s.kind for s in state.spans[: match.start("d")]).rsplit("D", 1)
        if len(between) != 2 or set(between[1]) - set("w|") or "|" not in between[1]:
            raise NotUnderstood("two dates")
        state.frame.tests.remove(other)
        state.kinds = ["w" if kind == "|" else kind for kind in state.kinds]
        test = Test(test.term, f"({other.template} OR {test.template})")  # "in 2014 or 2015"
    state.frame.tests.append(test)
    return True


def _says_when(place: Place) -> bool:
    """Return whether a column holds days or years."""
    if place.kind != "number":
        return place.kind == "date"
    years = [s for s in place.column.samples if re.fullmatch(r"1\d{3}|2[01]\d{2}", s)]
    return bool(_WHEN & set(place.stems)) or (bool(years) and len(years) == len(place.column.samples))


def of_column(state: State, match: re.Match[str]) -> bool:
    """A column beside a value of its own only says where the value stands: "Dream island", "city of Paris"."""
    named, value = state.one(match, "a"), state.one(match, "v")
    assert named is not None
    assert value is not None
    if not any(m[0] is place for m in value.data for place, _ in named.data):
        return False
    state.use(match, "a")
    return True


def as_column(state: State, match: re.Match[str]) -> bool:
    """ "CD or DVD as their format"; the words between have to say so."""
    between = [span.data for span in state.spans[match.end("v") : match.start("a")]]
    return "as" in between and of_column(state, match)


def beyond_row(state: State, match: re.Match[str]) -> bool:
    """More or less than one row has: "longer than The Salt Road", "joined before Tom Achter"."""
    told, named = state.one(match, "z"), state.one(match, "a")
    assert told is not None
    operator, measured = told.data
    meanings = [state.meaning(state.spans[i]) for i in range(*match.span("v"))]
    place = state.place(named, numeric=True) if named is not None else None
    if place is None:
        if measured is None:
            return False
        near = state.names or {meanings[0][0].relation.name}
        known = state.vocabulary.measured_by(measured, near)
        if known is None:
            raise NotUnderstood("what is compared")
        place, up = known
        operator = operator if measured[0][1] == up else {">": "<", "<": ">"}[operator]
    rows = {m[0].relation.name for m in meanings}
    if rows != {place.relation.name} or place.kind not in ("number", "date"):
        raise NotUnderstood(f"whose {place.column.name} is compared")
    if not any("name" in m[0].roles or state.vocabulary.names_rows(m[0]) for m in meanings):
        raise NotUnderstood("which row is compared with")
    column = sql.compared(place, False)
    same = " AND ".join(f"{sql.column(m[0], False)} = {sql.text(m[1])}" for m in meanings)
    inside = f"SELECT {column} FROM {sql.name(place.relation.name)} WHERE {same}"
    state.frame.tests.append(Test(Term("", place), f"{{}} {operator} ({inside})"))
    for i in range(*match.span()):
        state.kinds[i] = "w"
    return True


def unlike(state: State, match: re.Match[str]) -> bool:
    """ "Undelivered orders", "unsold trees"."""
    span = state.spans[match.start()]
    if span.kind == "j":
        place = state.place(replace(span, kind="C"))
        if place.kind != "boolean":
            raise NotUnderstood(f"what “un” denies of {place.column.name}")
        denied_form = "{} IS FALSE" if place.affirms is None else f"{{}} <> {sql.text(place.affirms)}"
        state.frame.tests.append(Test(Term("", place), "{} = 0" if place.affirms == "1" else denied_form))
    else:
        place, spelled = state.meaning(span)
        state.frame.tests.append(Test(Term("", place), f"{{}} <> {sql.text(spelled)}"))
    state.use(match)
    return True


def holding(state: State, match: re.Match[str]) -> bool:
    """A text that holds, begins or ends with what was written: "with Batman in the title"."""
    span = state.one(match, "l")
    assert span is not None
    form, text, columns = span.data
    place = state.place(replace(span, kind="C", data=columns))
    if place.kind not in ("text", "prose") or place.column.array:
        raise NotUnderstood(f"what {place.column.name} is to hold")
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    state.frame.tests.append(Test(Term("", place), "{} ILIKE " + sql.text(form.replace("X", escaped))))
    state.use(match)
    return True


def author(state: State, match: re.Match[str]) -> bool:
    """ "By Peter Vance": the value says in which column it stands."""
    state.kinds[match.start()] = "w"
    return True


def told_by_verb(state: State, match: re.Match[str]) -> bool:
    """A verb before a value tells in which column it stands: "directed by Ozu", "rated PG-13"."""
    at = match.start("v")
    said = {root for root in roots(state.said[match.start()] or str(state.spans[match.start()].data)) if len(root) > 2}
    value = state.spans[at]
    meant = tuple(m for m in value.data if any(said & roots(part) for part in m[0].stems))
    if not meant:
        return False
    state.spans[at] = replace(value, data=meant)
    for i in range(match.start(), at):
        state.kinds[i] = "w"
    if state.spans[match.start()].kind == "r":
        state.kin = [names for names in state.kin if meant[0][0].relation.name not in names]
    return True


def verb(state: State, match: re.Match[str]) -> bool:
    """A verb before what is counted says no more than that there is some: "placed the most orders"."""
    state.kinds[match.start()] = "w"
    return True


def list_test(item: str) -> str:
    """Write that a text which is a list, items set apart by commas, holds an item."""
    pattern = item.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"(', ' || {{}} || ',') LIKE {sql.text(f'%, {pattern},%')}"


def _is_year(numbers: Sequence[float]) -> bool:
    return len(numbers) == 1 and numbers[0] == int(numbers[0]) and 1500 <= numbers[0] < 2200


def _comparison(operator: str, values: Sequence[float]) -> str:
    written = [sql.number(value) for value in values]
    return f"{{}} BETWEEN {written[0]} AND {written[1]}" if operator == "between" else f"{{}} {operator} {written[0]}"


def days_test(place: Place, operator: str, start: Any, after: Any) -> str:
    if place.kind == "number":
        if (start.month, start.day, after.month, after.day) != (1, 1, 1, 1):
            raise NotUnderstood("days of a column of years")
        if operator == "=" and after.year - start.year > 1:
            return f"{{}} BETWEEN {start.year} AND {after.year - 1}"
        return f"{{}} {operator} {start.year if operator in ('=', '<', '>=') else after.year - 1}"
    forms = {
        "=": f"({{}} >= '{start}' AND {{}} < '{after}')",
        ">": f"{{}} >= '{after}'",
        ">=": f"{{}} >= '{start}'",
        "<": f"{{}} < '{start}'",
        "<=": f"{{}} < '{after}'",
    }
    return forms[operator]
