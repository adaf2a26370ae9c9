"""Constructions that say what is asked for: groups, superlatives, aggregates, counts, an order."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from almanaq.agent.local.compose.state import NotUnderstood, State, Superlative
from almanaq.agent.local.frame import Term, Test
from almanaq.agent.local.recognize.spans import COMPUTED, Span
from almanaq.agent.local.schema_index import Place


def grouped(state: State, match: re.Match[str]) -> bool:
    """ "By region and category", "per year", "for each species"."""
    after = state.spans[match.end()] if match.end() < len(state.spans) else None
    if after is not None and after.kind in "CVNOD" and after.first == state.spans[match.end() - 1].last:
        if _names_group(state, state.spans[match.end() - 1], after):
            state.frame.groups.append(Term("", after.data[0][0]))
            state.mention(state.spans[match.end() - 1].data)
            state.use(match)
            state.kinds[match.end()] = "w"
            return True
        raise NotUnderstood("what “by” means here")  # "posted by user ID 13"
    if state.is_agent(match.start()):
        state.kinds[match.start()] = "w"
        return True
    for i in range(*match.span("list")):
        span = state.spans[i]
        if span.kind in "CR" and state.kinds[i] in "CR":
            _group(state, span)
        elif span.kind == "Y" and state.kinds[i] == "Y":
            state.frame.groups.append(Term(span.data, state.date_column()))
    state.use(match)
    return True


def _names_group(state: State, group: Span, after: Span) -> bool:
    """Return whether a relation and the column that names its rows are grouped by: "per shop name"."""
    if group.kind != "R" or after.kind != "C" or len(group.data) != 1:
        return False
    named = state.vocabulary.row_name(group.data[0])
    return named is not None and any(place == named for place, _ in after.data)


def _group(state: State, span: Span) -> None:
    if span.kind == "R":
        state.mention(span.data)
        state.each = state.one_of(span.data)
        return
    place = state.place(span)
    ranked = any(kind == "S" for kind in state.kinds)
    if ranked and place.kind == "number":
        state.superlative = Superlative(True, None, place)
        return
    state.frame.groups.append(Term("", place))


def ranked(state: State, match: re.Match[str]) -> bool:
    """A superlative with what it is over: "the highest average profit", "the most airports", "heaviest"."""
    told = state.one(match, "s")
    assert told is not None
    if state.superlative is not None and state.superlative.place is None:
        raise NotUnderstood("two superlatives")
    detail, measured, amount = told.data
    function = state.one(match, "f")
    named = state.one(match, "a")
    noun = state.one(match, "r")
    down = detail in ("most", "top", "common") or (detail == "measured" and measured[0][1])
    if detail in ("common", "rare"):
        if noun is not None and named is None:
            raise NotUnderstood("what makes one more popular than another")
        state.superlative = Superlative(detail == "common", amount, counts=True, common=True)
        state.use(match, "s")
        return True
    if state.superlative is not None:
        state.superlative = replace(state.superlative, down=down, amount=amount)
        state.use(match, "s")
        return True
    if named is not None:
        place = state.place(named, numeric=True)
        if place.kind not in ("number", "date"):
            return _ranked_text(state, match, detail, measured, amount, down)
        state.superlative = Superlative(down, amount, place, function=function.data if function else "")
    elif (found := _measure(state, told, noun)) is not None:
        up = found[1] if detail == "measured" else down
        state.superlative = Superlative(up, amount, found[0], False, False, function.data if function else "", True)
    elif noun is not None and _is_amount(state, match.start("s"), detail):
        state.superlative = Superlative(down, amount, counts=True)
        state.counted_relation = state.one_of(noun.data)
    else:
        raise NotUnderstood("what the superlative is over")
    if noun is not None:
        state.mention(noun.data)
    state.use(match)
    return True


def _is_amount(state: State, at: int, detail: str) -> bool:
    """Return whether a superlative is of how many rows there are: "the most orders", but not "the largest order"."""
    said = state.spans[at].said
    return detail in ("most", "least") and (said.endswith((" of", "most", "fewest", "least")) or not said)


def _measure(state: State, told: Span, noun: Span | None) -> tuple[Place, bool] | None:
    """Return the column that an adjective measures; "the largest number of" rows measures none."""
    counts = noun is not None and told.said.endswith((" number of", " amount of"))
    measured = told.data[1]
    if measured is None or counts:
        return None
    own = state.vocabulary.of_facts({r.name for r in noun.data}) | {r.name for r in noun.data} if noun else state.names
    return state.vocabulary.measured_by(measured, own)


def ranked_by(state: State, match: re.Match[str]) -> bool:
    """ "Top 3 makers by average price"."""
    told, named, function = state.one(match, "s"), state.one(match, "a"), state.one(match, "f")
    assert told is not None
    assert named is not None
    detail, _, amount = told.data
    place = state.place(named, numeric=True)
    if detail not in ("top", "bottom") or function is None or place.kind != "number" or place.identifier:
        return False
    state.superlative = Superlative(detail == "top", amount, place, function=function.data)
    for group in ("s", "f", "a"):
        state.use(match, group)
    state.kinds[match.end("n")] = "w"
    return True


def ranked_by_count(state: State, match: re.Match[str]) -> bool:
    """ "Top 5 customers by number of orders"."""
    told, counted = state.one(match, "s"), state.one(match, "r")
    assert told is not None
    assert counted is not None
    detail, _, amount = told.data
    if detail not in ("top", "bottom") or counted.kind != "R":
        return False
    state.superlative = Superlative(detail == "top", amount, counts=True)
    state.mention(counted.data)
    state.counted_relation = state.one_of(counted.data)
    for group in ("s", "h", "r"):
        state.use(match, group)
    state.kinds[match.end("n")] = "w"
    return True


def total_count(state: State, match: re.Match[str]) -> bool:
    """ "The total count of teachers" is their number."""
    if state.spans[match.start()].data != "SUM":
        return False
    state.use(match)
    return True


def amount_before(state: State, match: re.Match[str]) -> bool:
    """ "The 3 countries with the fewest people"."""
    number = state.one(match, "n")
    at = state.kinds.index("S", match.end())
    assert number is not None
    amount, unit = number.data
    detail, meant, told = state.spans[at].data
    if unit is not None or told is not None or amount != int(amount) or not 0 < amount <= 1000:
        return False
    state.spans[at] = replace(state.spans[at], data=(detail, meant, int(amount)))
    state.use(match)
    return True


def passive(state: State, match: re.Match[str]) -> bool:
    """ "Used by the most documents": those who use it, and no groups."""
    at = match.start()
    if state.spans[at].data != "by" or not (at and (state.is_agent(at) or state.spans[at - 1].data == "used")):
        return False
    state.kinds[at] = "w"
    return True


def counted_column(state: State, match: re.Match[str]) -> bool:
    """ "Per number of cylinders": the numbers of a column, and nothing is counted."""
    place = state.place(state.spans[match.end()])
    if place.kind != "number" or place.identifier:
        return False
    state.use(match, "h")
    return True


def ranked_by_verb(state: State, match: re.Match[str]) -> bool:
    """ "Who earns the least", "who was hired last": the verb says by what."""
    named, told = state.one(match, "a"), state.one(match, "s")
    assert named is not None
    assert told is not None
    if not named.said or named.said == COMPUTED:
        return False
    detail, measured, amount = told.data
    down = detail in ("most", "top") or (detail == "measured" and measured[0][1])
    state.superlative = Superlative(down, amount, state.place(named, numeric=True))
    state.use(match)
    return True


def _ranked_text(
    state: State, match: re.Match[str], detail: str, measured: Any, amount: int | None, down: bool
) -> bool:
    """A superlative before a column of text: "the largest region" by what "large" measures, "top 5 cities"."""
    if detail == "top" or detail == "bottom":
        raise NotUnderstood("by what the first ones are meant")
    found = state.vocabulary.measured_by(measured, state.names) if measured else None
    if found is None:
        raise NotUnderstood("what the superlative is over")
    state.superlative = Superlative(found[1] if detail == "measured" else down, amount, found[0])
    state.use(match, "s")
    if state.begins_with_rows(found[0].relation):
        state.use(match, "a")  # "which team has the biggest stadium" asks for the team
    return True


def superlatives(state: State, match: re.Match[str]) -> bool:
    """ "The top 3 highest ratings": the first one says how many."""
    (_, _, amount), (detail, measured, other) = state.spans[match.start()].data, state.spans[match.end() - 1].data
    last = match.end() - 1
    state.spans[last] = replace(state.spans[last], data=(detail, measured, amount or other))
    state.kinds[match.start()] = "w"
    return True


def totalled(state: State, match: re.Match[str]) -> bool:
    """An aggregate of a column: "average body mass", "minimum and maximum price"."""
    named = state.one(match, "a")
    assert named is not None
    place = state.place(named, numeric=True)
    functions = [state.spans[i].data for i in range(*match.span("f")) if state.spans[i].kind == "A"]
    if place.kind == "date" and set(functions) <= {"MIN", "MAX"}:
        pass
    elif place.kind != "number" or place.identifier:
        raise NotUnderstood(f"{', '.join(functions).lower()} of {place.column.name}")
    state.aggregates += [(function, place) for function in functions]
    for i in range(*match.span()):
        if state.spans[i].kind == "R" and state.kinds[i] == "R":
            state.mention(state.spans[i].data)
    state.use(match)
    return True


def percentage(state: State, match: re.Match[str]) -> bool:
    noun = state.one(match, "r")
    if noun is not None:
        state.mention(noun.data)
    state.lists = False
    state.frame.share.append(Test(Term("", None), ""))
    state.use(match)
    return True


def how_many(state: State, match: re.Match[str]) -> bool:
    """ "How many airports", "number of different cities", "how many are in Texas"."""
    noun, named = state.one(match, "r"), state.one(match, "a")
    if noun is not None:
        state.mention(noun.data)
        state.counted_relation = state.one_of(noun.data)
    elif named is not None:
        place = state.place(named)
        if place.kind == "number" and not place.identifier:
            together = any(span.data in ("in total", "in all", "altogether") for span in state.spans)
            if not state.adds_up(place) and not together:
                raise NotUnderstood(f"whether {place.column.name} is counted or added up")
            state.aggregates.append(("SUM", place))
            state.use(match)
            return True
        told_apart = any(span.kind == "U" for span in state.spans) and len(named.data) == 1
        if dict(named.data)[place] < 1 and not told_apart:
            raise NotUnderstood(f"whether values of {place.column.name} are counted")
        state.counted = replace(named, data=(place,))
    state.counts = True
    state.use(match)
    return True


def in_order(state: State, match: re.Match[str]) -> bool:
    named, told = state.one(match, "a"), state.one(match, "f")
    assert named is not None
    assert told is not None
    down = told.data == "down" or state.descending()
    state.frame.order.append((Term("", state.place(named)), down))
    state.kinds = ["w" if kind == "E" else kind for kind in state.kinds]
    state.use(match)
    return True
