"""Constructions of time: a day, a month, a year, and the column that says when."""

from __future__ import annotations

import re
from datetime import date
from typing import Any

from almanaq.agent.local_old.compose.refusal import NotUnderstood
from almanaq.agent.local_old.compose.state import State
from almanaq.agent.local_old.frame import Term, Test
from almanaq.agent.local_old.recognize.spans import Span, is_deed
from almanaq.agent.local_old.schema_index import Place
from almanaq.agent.local_old.spoken import relation_stems
from almanaq.agent.local_old.words import stem

_WHEN = {"year", "founded", "built", "born", "birth", "since", "released", "date", "season", "opened"}
_MONTH = 32
"""More days than a month has."""


def days(state: State, match: re.Match[str], a: Span | None, d: Span) -> bool:
    """ "In May 2012", "since 2020", "founded in 1999"."""
    place = state.place(a) if a is not None else None
    if place is not None and says_when(place):
        grouped = re.search("Bw*$", "".join(state.kinds[: match.start()]))
        state.use(match, "d") if grouped else state.use(match)  # "by year since 2020"
    elif _is_in_name(state, d):
        return state.use(match, "d")
    else:
        told = place is not None and bool(_WHEN & set(place.stems))  # the year, of what was "released in 1997"
        place = _told_by_verb(state, match.start("d")) or state.time_column(state.rows_before(match.start("d")))
        state.use(match) if told else state.use(match, "d")
    operator, _, yearless = d.data
    if yearless is not None and operator == "=" and yearless.is_month and state.vocabulary.index.is_history(place):
        state.test(place, f"EXTRACT(month FROM {{}}) = {d.data[1][0].month}")  # of every year
        return True
    test = Test(Term("", place), days_test(place, operator, *_bounds(state, place, d)))
    state.frame.tests.append(_beside_another(state, match, operator, test))
    return True


def _bounds(state: State, place: Place, d: Span) -> tuple[date, date]:
    """Return the first day, and the day after the last; of a month, beside a column of months, its year."""
    operator, (start, after), yearless = d.data
    if yearless is not None:
        start, after = state.vocabulary.index.nearest_days(place, yearless)
    is_month = operator == "=" and start.day == 1 and (after - start).days < _MONTH
    month = _month_beside(state, place) if is_month else None
    if month is None:
        return start, after
    state.test(month, f"{{}} = {start.month}")
    return date(start.year, 1, 1), date(start.year + 1, 1, 1)


def _beside_another(state: State, match: re.Match[str], operator: str, test: Test) -> Test:
    """Return a condition on days joined with the one there is of the same column: "in 2014 or 2015"."""
    other = next((each for each in state.frame.tests if each.term == test.term), None)
    place = test.term.place
    both = place is not None and place.kind == "number" and any(span.data == "both" for span in state.spans)
    if other is None or operator != "=" or both:
        return test
    between = "".join(s.kind for s in state.spans[: match.start("d")]).rsplit("D", 1)
    if len(between) != 2 or set(between[1]) - set("w|") or "|" not in between[1]:
        raise NotUnderstood("two dates")
    state.frame.tests.remove(other)
    state.kinds = ["w" if kind == "|" else kind for kind in state.kinds]
    return Test(test.term, f"({other.template} OR {test.template})")


def _month_beside(state: State, year: Place) -> Place | None:
    """Return the column of months, 1 to 12, beside one of years."""
    own = [p for p in state.vocabulary.index.places[year.relation.name] if p.stems == ("month",) and p.kind == "number"]
    return own[0] if own and year.kind == "number" else None


def _is_in_name(state: State, d: Span) -> bool:
    """Return whether the rows spoken of are all of a year that their relation is called by: `athletes_2024`."""
    operator, (start, after), yearless = d.data
    whole = operator == "=" and yearless is None and start == date(start.year, 1, 1) and after.year == start.year + 1
    named = [r for r in state.mentioned if str(start.year) in relation_stems(r)] if whole else []
    own = [p for r in named for p in state.vocabulary.index.places[r.name]]
    return len(named) == len(state.mentioned) == 1 and not any(p.kind == "date" or says_when(p) for p in own)


def _told_by_verb(state: State, at: int) -> Place | None:
    """Return the column of a day that the word before a time names: `delivered_on` of "delivered in February"."""
    for i in range(at - 1, -1, -1):
        if state.kinds[i] == "C" and is_deed(state.spans[i]) and state.place(state.spans[i]).kind == "date":
            state.silence(i, i + 1)
            return state.place(state.spans[i])  # "opened a ticket in 2024"
        if state.kinds[i] == "r" and (done := state.date_of(state.spans[i])) is not None:
            return done  # "ordered coffee in 2024"
    before = [span for span in state.spans[:at] if span.kind != "w"][-1:]
    said = {stem(word) for span in before if span.kind == "V" for _, value in span.data for word in value.split()[-1:]}
    days = [p for r in state.mentioned for p in state.vocabulary.index.places[r.name] if p.kind == "date"]
    told = [place for place in days if said & set(place.stems)]
    return told[0] if len(told) == 1 else None


def says_when(place: Place) -> bool:
    """Return whether a column holds days or years."""
    if place.kind != "number":
        return place.kind == "date"
    years = [s for s in place.column.samples if re.fullmatch(r"1\d{3}|2[01]\d{2}", s)]
    return bool(_WHEN & set(place.stems)) or (bool(years) and len(years) == len(place.column.samples))


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
