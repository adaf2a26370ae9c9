"""What has to hold of the parts of a question: each check raises NotUnderstood where it may mean something else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations

from almanaq.agent.local_old.compose.refusal import NotUnderstood
from almanaq.agent.local_old.compose.state import State
from almanaq.agent.local_old.frame import Test
from almanaq.agent.local_old.recognize.context import NUMBERED
from almanaq.agent.local_old.recognize.spans import COMPUTED, HOW, IN_UNIT
from almanaq.agent.local_old.recognize.words import words
from almanaq.agent.local_old.schema_index import Place
from almanaq.agent.local_old.spoken import relation_stems
from almanaq.agent.local_old.words import stem
from almanaq.suql.catalog.relations import Relation

_OFTEN = 10
"""Rows for each name, from which on the rows are not what they name."""
_OF_PEOPLE = {"sex", "gender"}
_OF_WHAT = ("of", "for", "with", "about", "by", "from")
_BOUND = re.compile(r"\{\} ([<>]=?|=) '?(-?[\d.]+)'?")


def check_parts(state: State, columns: Sequence[Place]) -> None:
    """Check what is left to be shown, and the conditions beside it."""
    _check_asked(state, columns)
    _check_bounds(state)
    _check_how(state)
    _check_clauses(state)
    _check_of_what(state, columns)
    _check_units(state, columns)
    _check_named(state)


def _check_named(state: State) -> None:
    """Raise where rows are to have a name: "named stars"."""
    for i, span in enumerate(state.spans[:-1]):
        if span.kind == "w" and span.data in ("named", "titled") and state.spans[i + 1].kind == "R":
            raise NotUnderstood(f"which of the rows are {span.data}")


def _check_units(state: State, columns: Sequence[Place]) -> None:
    """Raise where a figure is asked for in a unit that is not the one of its column."""
    asked = {
        str(s.data).removeprefix(IN_UNIT) for s in state.spans if s.kind == "w" and str(s.data).startswith(IN_UNIT)
    }
    ranked = [state.superlative.place] if state.superlative is not None and state.superlative.place is not None else []
    numbers = [place for _, place in state.aggregates] + [p for p in (*columns, *ranked) if p.kind == "number"]
    if asked and not (len(asked) == 1 and numbers and all(_is_in(state, place, asked) for place in numbers)):
        raise NotUnderstood(f"which column is in {' or '.join(sorted(asked))}")


def _is_in(state: State, place: Place, units: set[str]) -> bool:
    called = {unit for unit in units if stem(unit) in place.stems}
    return bool(called or units & {*state.vocabulary.unit_of(place)})


def _check_of_what(state: State, columns: Sequence[Place]) -> None:
    """Raise where a question ends with what its "what" belongs to, and only numbers were found: "convicted of"."""
    ends = [str(span.data) for span in state.spans if span.data not in ("?", ".")][-1:]
    asks = str(state.spans[0].data) in ("what", "which", "who", "whom")
    if asks and ends[0] in _OF_WHAT and columns and all(place.kind in ("number", "date") for place in columns):
        raise NotUnderstood(f"what “{ends[0]}” belongs to")


def _check_asked(state: State, columns: Sequence[Place]) -> None:
    """Raise where a question begins with the rows it asks for and other things were found to be shown."""
    content = [i for i, span in enumerate(state.spans) if span.kind not in "w&U"]
    if not content or state.spans[content[0]].kind != "R":
        return
    first = state.spans[content[0]]
    before = [str(span.data) for span in state.spans[: content[0]]]
    beside = content[1:2] == [content[0] + 1] and state.spans[content[1]].kind == "C"
    if not columns and state.aggregates and not (state.frame.groups or state.each):
        raise NotUnderstood(f"what is computed of {first.data[0].name}")
    if beside or state.frame.groups or state.superlative:
        return
    listed = "&" in [span.kind for span in state.spans]
    if columns and before[-1:] and before[-1] in ("which", "what") and not listed:
        raise NotUnderstood(f"what is said of {columns[0].column.name}")
    if any(place.relation not in first.data for place in columns):
        raise NotUnderstood(f"whether {first.data[0].name} or {columns[0].column.name} is asked for")


def apart(tests: Sequence[Test]) -> Sequence[Test]:
    """Return two conditions of one column that no row can pass at once; () where there are none."""
    for first, second in combinations(tests, 2):
        bounds = sorted(found.groups() for t in (first, second) if (found := _BOUND.fullmatch(t.template)) is not None)
        if first.term != second.term or len(bounds) < 2:
            continue
        (low, below), (high, above) = bounds
        if low.startswith("<") and high.startswith(">") and float(below) <= float(above):
            return first, second
        if low == high == "=" and below != above:
            return first, second
    return ()


def _check_bounds(state: State) -> None:
    """Raise where no row can be in all the bounds of a column: "before 1945 and after 1955"."""
    if apart(state.frame.tests):
        raise NotUnderstood("whether one row is to be both above and below")


def _check_how(state: State) -> None:
    """Raise where "how tall" is asked of no row, or beside other numbers."""
    if not any(span.said == HOW and span.kind == "C" for span in state.spans):
        return
    left = [s for s, kind in zip(state.spans, state.kinds, strict=True) if kind == "C" and s.said != HOW]
    if left or not (state.named_by() or state.aggregates or state.superlative):
        raise NotUnderstood("of what it is asked how much")


def _check_clauses(state: State) -> None:
    """Raise where a clause says something of rows with the name of a number alone: "shops that have stock"; and where
    a question asks how something came about, or why.
    """
    if str(state.spans[0].data) in ("how", "why") and state.spans[0].kind == "w":
        raise NotUnderstood(f"{state.spans[0].data} something came about")
    left = [] if state.superlative or state.aggregates else zip(state.spans, state.kinds, strict=True)
    for i, (span, kind) in enumerate(left):
        before = [each.kind for each in state.spans[:i]]
        clause = len(before) - next((n for n, each in enumerate(reversed(before)) if each != "w"), len(before))
        words = {str(each.data) for each in state.spans[clause:i]}
        if span.kind == kind == "C" and clause and before[clause - 1] in "RV" and words & {"that", "which", "who"}:
            raise NotUnderstood(f"what is said of {span.data[0][0].column.name}")


def check_share(state: State, columns: list[Place]) -> None:
    frame = state.frame
    alone = not frame.nouns and bool(frame.tests)  # "share of chipped dogs": of dogs, or of what is chipped
    if columns or state.each or state.superlative or state.counts or state.aggregates or alone:
        raise NotUnderstood("a share of more than rows")
    if len({place.relation.name for place in frame.places} | {r.name for r in frame.nouns}) > 1:
        raise NotUnderstood("of the rows of which table a share is asked for")


def check_named_alike(state: State) -> None:
    """Raise where what is counted is called as its rows are and as a number of theirs is: "sales"."""
    for relation in {r.name: r for r in state.frame.nouns}.values():
        own = relation_stems(relation)
        if any(
            p.kind == "number" and p.stems == own and p.stems[-1] not in NUMBERED
            for p in state.vocabulary.index.places[relation.name]
        ):
            raise NotUnderstood(f"whether rows of {relation.name} or its numbers are meant")


def check_counted(state: State) -> None:
    """Raise where a question begins with other rows than it counts: "shops with their number of orders"."""
    counted, first = state.counted_relation, next(iter(state.nouns_in_order()), None)
    if counted is not None and first not in (None, counted) and state.begins_with("R", first):
        raise NotUnderstood(f"whether all {counted.name} are counted or those of each of {first.name}")


def check_things(state: State, rows: Relation) -> None:
    """Raise where rows are counted that are not the things which their table is called after: the tracks of storms,
    where each storm has many rows.
    """
    bare = [p for p in state.vocabulary.index.places[rows.name] if p.kind == "text" and p.stems == ("name",)]
    said = (state.counts and not state.frame.nouns) or any(
        span.kind == "R" and rows in span.data and span.said not in words().rows for span in state.spans
    )
    if said and any(_OFTEN * state.vocabulary.distinct(name) <= (rows.rows or 0) for name in bare):
        raise NotUnderstood(f"whether rows of {rows.name} are counted or those that they name")


def check_people(state: State) -> None:
    """Raise where people are counted by what they are, in rows of which a person may have several: "how many women",
    of results.
    """
    tested = [test.term.place for test in state.frame.tests if test.term.place is not None]
    for place in tested if not state.frame.nouns else ():
        bare = [p for p in state.vocabulary.index.places[place.relation.name] if p.kind == "text" and "name" in p.roles]
        single = any(map(state.vocabulary.names_rows, bare))
        if _OF_PEOPLE & {*place.stems} and bare and not single:
            raise NotUnderstood(f"whether people or rows of {place.relation.name} are counted")


def check_computed(state: State) -> None:
    """Raise where an average may be the column's own or one of rows: "average temperature in May"."""
    left = zip(state.spans, state.kinds, strict=True)
    if any(span.kind == kind == "C" and span.said == COMPUTED for span, kind in left) and not state.named_by():
        raise NotUnderstood("whether the numbers of several rows are put together")
