"""Which of two has more: "who is older, Ann or Bo", "did Oslo or Bergen sell more tickets"."""

from __future__ import annotations

import re
from collections.abc import Sequence

from almanaq.agent.local_old import sql
from almanaq.agent.local_old.compose.asked import is_down
from almanaq.agent.local_old.compose.refusal import NotUnderstood
from almanaq.agent.local_old.compose.state import State, Superlative
from almanaq.agent.local_old.recognize.spans import CHOSEN, Span
from almanaq.agent.local_old.schema_index import Place


def versus(state: State, match: re.Match[str], v: Span, u: Span) -> bool:
    """The two values between which a comparison chooses."""
    if not any(span.kind == "S" and span.said.startswith(CHOSEN) for span in state.spans):
        return False
    (place, one), (other_place, other) = state.meaning(v), state.meaning(u)
    if place is not other_place or place.column.array or state.vocabulary.is_list(place):
        raise NotUnderstood(f"how {one} and {other} are compared")
    spelled = [each for value in (one, other) for each in state.vocabulary.spellings(place, value)]
    state.test(place, sql.is_one_of(spelled))
    state.compared_values = place
    return state.silence(*match.span())


def measured(state: State, match: re.Match[str], a: Span, s: Span, f: Span | None) -> bool:
    """A number by which one of two is chosen: "is the average price higher in Oslo or in Bergen"."""
    place = state.place(a, numeric=True)
    if not s.said.startswith(CHOSEN) or place.kind != "number" or place.identifier:
        return False
    state.superlative = Superlative(is_down(s), None, place, function=f.data if f is not None else "")
    return state.use(match)


def counted(state: State, match: re.Match[str], s: Span, r: Span | None = None) -> bool:
    """Rows by whose number one of two is chosen: "are there more trips from Oslo or from Bergen"."""
    if state.superlative is not None or not s.said.endswith(("most", "least")) or not s.said.startswith(CHOSEN):
        return False
    state.superlative = Superlative(is_down(s), None, counts=True)
    state.counted_relation = state.mention(r.data) if r is not None else None
    return state.use(match, "s", *(["r"] if r is not None else []))


def check_chosen(state: State) -> None:
    """Raise where a comparison is between nothing that was found."""
    if state.compared_values is None and any(span.said.startswith(CHOSEN) for span in state.spans if span.kind == "S"):
        raise NotUnderstood("what is compared")


def is_summed(state: State, superlative: Superlative, function: str, columns: Sequence[Place]) -> bool:
    """Return whether each of the two has several rows, whose numbers are added up.

    Raises:
        NotUnderstood: their numbers make no sum.
    """
    place, measured = state.compared_values, superlative.place
    if place is None or measured is None or function:
        return False
    if any(column not in (place, measured) for column in columns):
        raise NotUnderstood("what is shown of the one with more")
    if state.vocabulary.names_rows(place) and place.relation == measured.relation:
        return False
    if not state.adds_up(measured):
        raise NotUnderstood(f"how the numbers of {measured.column.name} are put together")
    return True
