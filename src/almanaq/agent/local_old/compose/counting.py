"""Constructions that count: rows, values, numbers of rows per group, shares."""

from __future__ import annotations

import re

from almanaq.agent.local_old.compose.asked import period
from almanaq.agent.local_old.compose.refusal import NotUnderstood
from almanaq.agent.local_old.compose.state import TOGETHER, State
from almanaq.agent.local_old.frame import Term, Test
from almanaq.agent.local_old.recognize.called import OWN
from almanaq.agent.local_old.recognize.spans import Span, is_deed


def number_per(
    state: State,
    match: re.Match[str],
    f: Span,
    r: Span,
    b: Span,
    a: Span | None = None,
    c: Span | None = None,
    y: Span | None = None,
) -> bool:
    """ "The average number of orders per customer"."""
    if f.data != "AVG" or b.data == "by":
        return False
    if c is not None:
        others, state.frame.listed = state.mention(c.data), True
        is_unique = state.vocabulary.partners.is_unique
        key = [name for name in state.names_of(others) if is_unique(others, [name.column.name])]
    else:
        key = [state.place(a)] if a is not None else []
    each_time = period(state, y) if y is not None else None
    if each_time is not None and each_time.place is not None and each_time.function in ("", "year"):
        key = [each_time.place]
    if len(key) != 1:
        raise NotUnderstood("for each of what a number is taken")
    state.counted_relation = state.mention(r.data)
    state.test(key[0], "{} IS NOT NULL")
    each = "EXTRACT(year FROM {})" if each_time is not None and each_time.function else "{}"
    state.frame.wanted.append(Term(f"COUNT(*) * 1.0 / COUNT(DISTINCT {each})", key[0]))
    return state.use(match)


def number_column(state: State, match: re.Match[str], a: Span) -> bool:
    """ "The average number of employees", of a column of numbers."""
    place = state.place(a, numeric=True)
    counts = state.spans[match.end("count") - 1].data in ("number of", "count of", "amount of")
    if not counts or place.kind != "number" or place.identifier:
        return False
    return state.silence(*match.span("count"))


def percentage(state: State, match: re.Match[str], r: Span | None) -> bool:
    if r is not None:
        state.mention(r.data)
    state.frame.share.append(Test(Term("", None), ""))
    return state.use(match)


def how_many(state: State, match: re.Match[str], r: Span | None, a: Span | None) -> bool:
    """ "How many airports", "number of different cities", "how many are in Texas"; "how often was Ann Lee paid"."""
    if state.spans[match.start()].data in ("how often", "how many times"):
        then = {str(span.data) for span in state.spans[match.start() : match.start() + 2]}
        if r or a or "V" not in match.group() or not then & {"was", "were", "did", "has", "had"}:
            raise NotUnderstood("how often something happened")
    if r is not None:
        state.counted_relation = state.mention(r.data)
    elif a is not None:
        place = state.place(a)
        told_apart = any(span.kind == "U" for span in state.spans) and len(a.data) == 1
        if a.data == ((place, 1.0),) and not told_apart and state.vocabulary.row_name(place.relation) is place:
            state.counted_relation, state.counts = state.mention([place.relation]), True
            return state.use(match)  # companies are the rows that they name
        if place.kind == "number" and not place.identifier:
            together = any(span.data in TOGETHER for span in state.spans)
            if not state.adds_up(place) and not together:
                raise NotUnderstood(f"whether {place.column.name} is counted or added up")
            state.aggregates.append(("SUM", place))
            return state.use(match)
        if state.spans[match.start()].data == "count of" and not told_apart and not state.vocabulary.names_rows(place):
            raise NotUnderstood(f"whether values of {place.column.name} are counted, or rows of each")
        if not told_apart and (
            dict(a.data)[place] < (OWN if place.identifier else 1)
            or (place.kind == "text" and state.vocabulary.names_rows(place))
        ):
            raise NotUnderstood(f"whether values of {place.column.name} are counted")
        state.counted = place
    state.counts = True
    return state.use(match)


def kind_of_rows(state: State, match: re.Match[str], a: Span, r: Span) -> bool:
    """ "How many browser versions": rows are counted, and the column before them says only of what they are."""
    owners = [place.relation for place, _ in a.data]
    if a.last != r.first or not any(relation in owners for relation in r.data) or is_deed(a):
        return False
    state.counted_relation, state.counts = state.mention(r.data), True
    return state.use(match)


def breakdown(state: State, match: re.Match[str], h: Span, a: Span | None, r: Span | None) -> bool:
    """ "Breakdown of status": how many rows there are of each."""
    if h.data != "breakdown of":
        return False
    named = state.place(a) if a is not None else None
    own = [p for each in r.data for p in state.vocabulary.index.places[each.name]] if r is not None else []
    alike = [p for p in own if r is not None and p.stems == tuple(r.said.split()) and p.kind in ("text", "boolean")]
    if named is None and "B" in state.kinds and not alike:
        return False
    place = named or (alike[0] if len(alike) == 1 else None)
    if place is None or (place.kind == "number" and not place.identifier):
        raise NotUnderstood("by what the rows are broken down")
    state.frame.groups.append(Term("", place))
    state.frame.wanted.append(Term("COUNT", None))
    return state.silence(*match.span())


def different_values(state: State, match: re.Match[str], r: Span, a: Span) -> bool:
    """ "How many different shop names"."""
    place = state.place(a)
    if "U" not in match.group() or place.relation not in r.data or (place.kind == "number" and not place.identifier):
        return False
    state.counts, state.counted = True, place
    return state.use(match)
