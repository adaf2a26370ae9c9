"""Constructions that say what is asked for: groups, superlatives, aggregates, counts, an order."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from almanaq.agent.local_old.compose.refusal import NotUnderstood
from almanaq.agent.local_old.compose.state import State, Superlative
from almanaq.agent.local_old.frame import Term
from almanaq.agent.local_old.recognize.spans import COMPUTED, Span, is_deed
from almanaq.agent.local_old.recognize.vocabulary import is_year
from almanaq.agent.local_old.schema_index import Place

_BETWEEN = {"from", "since", "until"}
"""Words after a superlative with which begins what it is measured between."""
_LISTING = ("its", "their", "his", "her", "list", "show", "return", "give", "find", "what", "display")
"""Words after groups with which begins what is shown of them: "for each team, list its name"."""


def grouped(state: State, match: re.Match[str]) -> bool:
    """ "By region and category", "per year", "for each species"."""
    group, after = state.spans[match.end() - 1], state.spans[match.end() : match.end() + 1]
    agent = state.is_agent(match.start())
    if after and not agent and after[0].kind in "CVNOD" and after[0].first == group.last:
        place = _of_group(group, after[0])
        if place is None:
            raise NotUnderstood("what “by” means here")  # "posted by user ID 13"
        state.frame.groups.append(Term("", place))
        state.mention(group.data)
        state.use(match)
        return state.silence(match.end(), match.end() + 1)
    if agent:
        return state.silence(match.start(), match.start() + 1)
    last = next((i for i in range(match.start(), match.end()) if state.spans[i].data in _LISTING), match.end())
    for i in range(match.start() + 1, last):
        span = state.spans[i]
        if state.kinds[i] == "R":
            state.each = state.mention(span.data)
        elif state.kinds[i] == "Y":
            state.frame.groups.append(period(state, span))
        elif state.kinds[i] == "C":
            place = state.place(span)
            if "S" in state.kinds and place.kind == "number" and state.spans[match.start()].data != "by":
                raise NotUnderstood(f"what is meant by each {place.column.name}")  # "the most visitors per event"
            if "S" in state.kinds and place.kind == "number":
                state.superlative = Superlative(True, None, place)
            else:
                state.frame.groups.append(Term("", place))
    return state.silence(match.start(), last)


def period(state: State, span: Span) -> Term:
    place = state.time_column() if span.data == "decade" else state.date_column()
    if span.data == "hour":
        timed = [p for p in state.vocabulary.index.places[place.relation.name] if p.column.type.startswith("timestamp")]
        if len(timed) != 1:
            raise NotUnderstood("which column says the hour")
        place = timed[0]
    return Term("" if place.kind == "number" and span.data == "year" else span.data, place)


def asked_year(state: State, match: re.Match[str], y: Span, a: Span) -> bool:
    """ "In which year was Mia hired"."""
    place = state.place(a)
    if y.data != "year" or "B" in state.kinds or not (place.kind == "date" or is_year(place)):
        return False
    if place.kind == "date":
        state.frame.wanted.append(Term("year", place))
        return state.use(match)
    return state.use(match, "y")


def ranked_period(state: State, match: re.Match[str], y: Span) -> bool:
    """ "Which month had the most orders"."""
    state.frame.groups.append(period(state, y))
    return state.use(match)


def of_each(state: State, match: re.Match[str], r: Span) -> bool:
    """ "Shops with their total amount"."""
    between = {word for span in state.spans[slice(*match.span())] for word in str(span.data).split()}
    if not between & {"their", "its", "his", "her"}:
        return False
    state.each, state.frame.listed = state.mention(r.data), True
    return state.use(match, "r")


def each_of_these(state: State, match: re.Match[str], b: Span) -> bool:
    """ "The names of singers and the number of concerts for each": of those that were listed."""
    return str(b.data).endswith(("each", "every")) and state.listed_beside() and state.use(match, "b")


def _of_group(group: Span, after: Span) -> Place | None:
    """Return a column of a relation that stands right after its name: "per shop name", "by supplier country"."""
    owners = group.data if group.kind == "R" else ()
    own = [place for place, _ in after.data if place.relation in owners] if after.kind == "C" else []
    return own[0] if len(own) == 1 and own[0].kind != "number" and not own[0].identifier else None


def ranked(
    state: State, match: re.Match[str], s: Span, r: Span | None = None, a: Span | None = None, f: Span | None = None
) -> bool:
    """A superlative with what it is over: "the highest average profit", "the most airports", "heaviest"."""
    detail, measured, amount = s.data
    _check_superlative(state, match, s, r, a)
    if detail in ("common", "rare"):
        state.superlative = Superlative(detail == "common", amount, counts=True, common=True)
        return state.use(match, "s")
    down = is_down(s)
    if state.superlative is not None:
        state.superlative = replace(state.superlative, down=down, amount=amount)
        return state.use(match, "s")
    place = state.place(a, numeric=True) if a is not None else None
    function = f.data if f is not None else ""
    known = _told_day(state, match, measured) or _measure(state, measured, r if a is None else None)
    if place is not None and place.kind in ("number", "date"):
        # "the heaviest squat" has somebody who did it
        told = detail == "measured" and place.kind == "number" and not (function or state.both)
        state.superlative = Superlative(down, amount, place, function=function, adjective=told)
    elif place is not None and _says_number(s) and not place.identifier:
        state.superlative = Superlative(down, amount, place, function="COUNT DISTINCT")
    elif place is not None:
        return _ranked_text(state, match, s, known)
    elif known is not None and not _counts(s, r):
        up = known[1] if detail == "measured" else down
        state.superlative = Superlative(up, amount, known[0], function=function, adjective=True)
    elif r is not None and _is_amount(s):
        state.superlative = Superlative(down, amount, counts=True)
        state.counted_relation = state.one_of(r.data)
    elif r is None and _is_amount(s) and re.search("rw*$", "".join(state.kinds[: match.start("s")])):
        state.superlative = Superlative(down, amount, counts=True, common=True)  # "was inspected the most"
    else:
        raise NotUnderstood("what the superlative is over")
    if r is not None:
        state.mention(r.data)
    return state.use(match)


def _check_superlative(state: State, match: re.Match[str], s: Span, r: Span | None, a: Span | None) -> None:
    """Raise where a superlative may be of something else than what stands beside it."""
    if a is not None and {str(span.data) for span in state.spans[match.end("s") : match.start("a")]} & _BETWEEN:
        raise NotUnderstood("between what it is measured")  # "the longest from arrest to trial"
    if state.superlative is not None and state.superlative.place is None:
        raise NotUnderstood("two superlatives")
    if s.data[0] in ("common", "rare") and r is not None and a is None:
        raise NotUnderstood("what makes one more popular than another")


def _told_day(state: State, match: re.Match[str], measured: Any) -> tuple[Place, bool] | None:
    """Return the day that a verb after a superlative of time tells: "the last fire to start"."""
    if not measured or measured[0][0] != "date":
        return None
    told = [i for i in range(match.end(), len(state.spans)) if state.kinds[i] == "C" and is_deed(state.spans[i])]
    days = [i for i in told if state.place(state.spans[i]).kind == "date"]
    if len(days) != 1:
        return None
    state.silence(days[0], days[0] + 1)
    return state.place(state.spans[days[0]]), measured[0][1]


def _measure(state: State, measured: Any, noun: Span | None) -> tuple[Place, bool] | None:
    """Return the column that an adjective measures: of the rows beside it, where some are named."""
    if not measured or noun is not None:
        return state.of_partners(measured, noun.data) if measured and noun is not None else None
    return state.vocabulary.measured_by(measured, state.names | state.vocabulary.of_facts(state.names))


def _counts(superlative: Span, noun: Span | None) -> bool:
    """Return whether "the largest number of" rows is meant, which no column measures."""
    return noun is not None and _says_number(superlative)


def _says_number(superlative: Span) -> bool:
    return superlative.said.endswith((" number of", " amount of"))


def _is_amount(superlative: Span) -> bool:
    """Return whether a superlative is of how many rows there are: "the most orders", but not "the largest order"."""
    said = superlative.said
    return superlative.data[0] in ("most", "least") and (said.endswith((" of", "most", "fewest", "least")) or not said)


def is_down(superlative: Span) -> bool:
    """Return whether what is largest comes first."""
    detail, measured, _ = superlative.data
    return detail in ("most", "top", "common") or (detail == "measured" and bool(measured[0][1]))


def _ranked_text(state: State, match: re.Match[str], superlative: Span, known: tuple[Place, bool] | None) -> bool:
    """A superlative before a column of text: "the largest region" by what "large" measures, "top 5 cities"."""
    detail, _, amount = superlative.data
    if detail in ("top", "bottom"):
        raise NotUnderstood("by what the first ones are meant")
    if known is None:
        raise NotUnderstood("what the superlative is over")
    place, up = known
    state.superlative = Superlative(up if detail == "measured" else is_down(superlative), amount, place)
    if state.begins_with("R", place.relation):
        state.use(match, "a")  # "which team has the biggest stadium" asks for the team
    return state.use(match, "s")


def ranked_by(state: State, match: re.Match[str], s: Span, f: Span | None, a: Span | None, r: Span | None) -> bool:
    """ "Top 3 makers by average price", "top 5 customers by number of orders"."""
    detail, _, amount = s.data
    place = state.place(a, numeric=True) if a is not None else None
    if detail not in ("top", "bottom") or (place is not None and (place.kind != "number" or place.identifier)):
        return False
    state.superlative = Superlative(detail == "top", amount, place, r is not None, function=f.data if f else "")
    if r is not None:
        state.counted_relation = state.mention(r.data)
    state.use(match, "s", "by")
    return True


def amount_before(state: State, match: re.Match[str], n: Span) -> bool:
    """ "The 3 countries with the fewest people"."""
    at = state.kinds.index("S", match.end())
    (amount, unit), (detail, measured, superlative) = n.data, state.spans[at].data
    if unit is not None or superlative is not None or amount != int(amount) or not 0 < amount <= 1000:
        return False
    state.spans[at] = replace(state.spans[at], data=(detail, measured, int(amount)))
    return state.use(match)


def passive(state: State, match: re.Match[str]) -> bool:
    """ "Used by the most documents": those who use it, and no groups."""
    at = match.start()
    by = state.spans[at].data == "by" and at > 0 and (state.is_agent(at) or state.spans[at - 1].data == "used")
    return by and state.silence(at, at + 1)


def ranked_by_verb(state: State, match: re.Match[str], a: Span, s: Span, c: Span | None) -> bool:
    """ "Who earns the least", "who was hired last": the verb says by what; "whose capacity is the largest"."""
    between = {str(span.data) for span in state.spans[match.end("a") : match.start("s")]}
    told = c is None and bool(between & {"is", "are", "was", "were"}) and s.data[0] not in ("common", "rare")
    if not told and (not a.said or a.said == COMPUTED):
        return False
    if told and state.place(a, numeric=True).kind not in ("number", "date"):
        return False
    state.superlative = Superlative(is_down(s), s.data[2], state.place(a, numeric=True))
    return state.use(match)


def both_extremes(state: State, match: re.Match[str], s: Span, z: Span) -> bool:
    """ "The cheapest and the most expensive wine", "highest and lowest price"."""
    opposite = is_down(s) != is_down(z) and not s.data[2] and not z.data[2]
    common = {"common", "rare", "top", "bottom"} & {s.data[0], z.data[0]}
    if not opposite or common or state.kinds.count("S") > 2 or "B" in state.kinds:
        return False
    state.both = True
    return state.silence(match.start(), match.end() - 1)


def superlatives(state: State, match: re.Match[str]) -> bool:
    """ "The top 3 highest ratings": the first one says how many."""
    (_, _, amount), (detail, measured, other) = state.spans[match.start()].data, state.spans[match.end() - 1].data
    last = match.end() - 1
    state.spans[last] = replace(state.spans[last], data=(detail, measured, amount or other))
    return state.silence(match.start(), match.start() + 1)


def on_average(state: State, match: re.Match[str], a: Span, f: Span) -> bool:
    """An aggregate after its column: "how much do members pay on average"."""
    others = [kind for i, kind in enumerate(state.kinds) if kind in "AHSP" and i != match.start("f")]
    place = state.place(a, numeric=True)
    if (
        others
        or f.data != "AVG"
        or place.kind != "number"
        or place.identifier
        or state.kinds[: match.start()].count("C")
    ):
        return False
    state.aggregates.append((f.data, place))
    return state.use(match, "a", "f")


def totalled(state: State, match: re.Match[str], a: Span) -> bool:
    """An aggregate of a column: "average body mass", "minimum and maximum price", "average height and weight"."""
    place = state.place(a, numeric=True)
    functions = [state.spans[i].data for i in range(*match.span("list")) if state.spans[i].kind == "A"]
    dated = place.kind == "date" and set(functions) <= {"MIN", "MAX"}
    if not dated and (place.kind != "number" or place.identifier):
        raise NotUnderstood(f"{', '.join(functions).lower()} of {place.column.name}")
    state.aggregates += [(function, each) for each in (place, *_as_well(state, match)) for function in functions]
    for i in range(*match.span()):
        if state.kinds[i] == "R":
            state.mention(state.spans[i].data)
    return state.use(match, "list", "a") if match.group("more") else state.use(match)


def _as_well(state: State, match: re.Match[str]) -> list[Place]:
    """Return the further columns of which an aggregate is: "average height and weight", but not "and the capacity"."""
    inside = range(*match.span("more"))
    said = {str(state.spans[i].data) for i in inside if state.kinds[i] == "w"}
    places = [state.place(state.spans[i], numeric=True) for i in inside if state.kinds[i] == "C"]
    if not places or said & {"the", "its", "their"} or any(p.kind != "number" or p.identifier for p in places):
        return []
    for i in inside:
        state.kinds[i] = "w"
    return places


def in_order(state: State, match: re.Match[str], f: Span, a: Span) -> bool:
    state.frame.order.append((Term("", state.place(a)), f.data == "down" or state.descending()))
    state.kinds = ["w" if kind == "E" else kind for kind in state.kinds]
    return state.use(match)
