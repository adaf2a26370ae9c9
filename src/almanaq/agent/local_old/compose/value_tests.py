"""Conditions of the values that no construction took: several of one column are alternatives, or groups."""

from __future__ import annotations

import re
from collections.abc import Sequence

from almanaq.agent.local_old import sql
from almanaq.agent.local_old.compose import members
from almanaq.agent.local_old.compose.refusal import NotUnderstood
from almanaq.agent.local_old.compose.state import State
from almanaq.agent.local_old.frame import Term, Test
from almanaq.agent.local_old.recognize.spans import Span
from almanaq.agent.local_old.schema_index import Place

_OF_ALL = {"all", "only", "always", "just", "exclusively", "entirely"}
"""Words before a value that say it of all rows."""
_VERSUS = ("vs", "versus", "compared to", "compared with", "vs .")


def add(state: State, spans: Sequence[Span]) -> None:
    """Make conditions of values: several of one column are alternatives."""
    tests = state.frame.share or state.frame.tests
    given = _given(state, spans) if state.frame.share else []
    spans = [span for span in spans if span not in given]
    by_column: dict[tuple[str, str], tuple[Place, list[str]]] = {}
    for span in spans:
        place, value = state.meaning(span)
        _check_all(state, span, place)
        _check_whole(state, span, place, value)
        if place.column.array:
            state.test(place, f"{sql.text(value)} = ANY({{}})")
        elif state.vocabulary.is_list(place):
            if any(test.term.place is place for test in tests) and "&" not in [span.kind for span in state.spans]:
                raise NotUnderstood(f"what {value} says of {place.column.name}")
            tests.append(Test(Term("", place), state.vocabulary.holds_item(place, value)))
        else:
            by_column.setdefault((place.relation.name, place.column.name), (place, []))[1].append(value)
    if any(len(set(values)) < len(values) for _, values in by_column.values()):
        raise NotUnderstood("a name that is said twice")
    for place, values in by_column.values():
        if len(values) == 1 or _are_alternatives(state, place, values):
            spelled = [each for value in values for each in state.vocabulary.spellings(place, value)]
            tests.append(Test(Term("", place), sql.is_one_of(spelled)))
    if state.frame.share:
        _share(state, given)


def _share(state: State, given: Sequence[Span]) -> None:
    """Tell the one condition of which a share is asked from those that say of which rows it is."""
    state.frame.share = [test for test in state.frame.share if test.term.place is not None]
    if not state.frame.share:
        state.frame.share, state.frame.tests = state.frame.tests, []
    state.frame.tests += _of_given(state, given)
    if len(state.frame.share) != 1:
        raise NotUnderstood("of what the share is meant")


def _check_whole(state: State, span: Span, place: Place, value: str) -> None:
    """Raise where a value may be only a part of the texts that are meant."""
    if not place.column.array and state.vocabulary.is_one_of_several(place, value):
        raise NotUnderstood(f"whether rows that name others beside {value} are meant")
    if _is_held(state, span) and not state.vocabulary.is_list(place):
        raise NotUnderstood(f"whether {value} is all of {place.column.name} or a part of it")


def _are_alternatives(state: State, place: Place, values: Sequence[str]) -> bool:
    """Return whether rows with one of several values of a column are meant, and make groups of them where each is asked
    about by itself.
    """
    if "|" in state.kinds:
        _join_values(state, place)
    elif members.are_all_wanted(state, place, values):
        return False
    elif _is_versus(state) and not (state.counts or state.aggregates):
        raise NotUnderstood(f"by what {' and '.join(values)} are compared")
    elif _are_set_apart(state):
        state.frame.groups.append(Term("", place))
    return True


def _is_held(state: State, span: Span) -> bool:
    """Return whether a text is only to hold a value: "tags containing beta"."""
    before = [each for each in state.spans if each.last <= span.first][-1:]
    return any(each.kind == "w" and each.data in ("containing", "contains", "contain") for each in before)


def _is_versus(state: State) -> bool:
    return any(span.data in _VERSUS for span in state.spans if span.kind == "&")


def _are_set_apart(state: State) -> bool:
    """Return whether a figure is asked for of each of several values: "France vs Germany", an average "of men and
    women", which is of each.
    """
    functions = {function for function, _ in state.aggregates}
    apart = bool(functions) and functions <= {"AVG", "MEDIAN", "MIN", "MAX"}
    asked = apart or (_is_versus(state) and (state.counts or bool(functions)))
    return asked and not state.frame.groups and not state.superlative


def _given(state: State, spans: Sequence[Span]) -> list[Span]:
    """Return the values that say of which rows a share is asked, where more is said of them: "of murder cases"."""
    kinds = "".join(span.kind for span in state.spans)
    before = re.search(r"P[wV]*R", kinds)
    first, last = before.span() if before else (0, 0)
    given = [span for span in spans if any(span is state.spans[i] for i in range(first, last))]
    return given if state.frame.tests or len(given) < len(spans) else []


def _of_given(state: State, given: Sequence[Span]) -> list[Test]:
    meanings = [state.meaning(span) for span in given]
    several = len({place for place, _ in meanings}) < len(meanings)
    if several or any(place.column.array or state.vocabulary.is_list(place) for place, _ in meanings):
        raise NotUnderstood("of which rows the share is meant")
    return [Test(Term("", place), f"{{}} = {sql.text(value)}") for place, value in meanings]


def _check_all(state: State, span: Span, place: Place) -> None:
    """Raise where all rows of another table are to be so: "customers whose orders were all delivered"."""
    before = {str(each.data) for each in [s for s in state.spans if s.last <= span.first][-2:] if each.kind == "w"}
    subject = state.subject()
    if before & _OF_ALL and subject is not None and not state.is_single(subject, place.relation):
        raise NotUnderstood(f"whether each row of {place.relation.name} has to be {span.data[0][1]}")


def _join_values(state: State, place: Place) -> None:
    """Use each "or" that stands between two values of a column."""
    for i, kind in enumerate(state.kinds):
        sides = [span for span in state.spans[:i] if span.kind not in "w&"][-1:]
        sides += [span for span in state.spans[i + 1 :] if span.kind not in "w&"][:1]
        if kind == "|" and [s.kind for s in sides] == ["V", "V"] and all(state.meaning(s)[0] is place for s in sides):
            state.kinds[i] = "w"
