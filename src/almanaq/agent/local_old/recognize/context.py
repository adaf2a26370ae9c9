"""What spans mean beside others: a part of a column's name, a column called as a relation, people."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from almanaq.agent.local_old.recognize.called import OWN
from almanaq.agent.local_old.recognize.spans import Span, is_deed, silenced
from almanaq.agent.local_old.recognize.vocabulary import Vocabulary
from almanaq.agent.local_old.recognize.words import words
from almanaq.agent.local_old.schema_index import Place

NUMBERED = ("version", "season", "episode", "edition", "round", "stage", "week", "year", "month", "day", "level")
"""Numbers by which rows are called, and which are no amounts."""


def in_context(spans: Sequence[Span], vocabulary: Vocabulary) -> tuple[Span, ...]:
    """Return the spans of a question as they are meant beside each other."""
    parts = _compounds(_parts(_amounts(spans, vocabulary), vocabulary))
    return _listed_rows(_own_columns(_people(parts, vocabulary), vocabulary), vocabulary)


def _amounts(spans: Sequence[Span], vocabulary: Vocabulary) -> tuple[Span, ...]:
    """Take the name of rows that have a column of numbers of the same name for that: "total sales" of `sales`."""
    return tuple(
        replace(span, kind="C", data=own, said="") if (own := _amount_of(span, vocabulary)) else span for span in spans
    )


def _amount_of(span: Span, vocabulary: Vocabulary) -> tuple[tuple[Place, float], ...]:
    known = vocabulary.columns_named(tuple(span.said.split())) if span.kind == "R" else ()
    own = {relation.name for relation in span.data} if known else set()
    numbers = [(p, q) for p, q in known if q == 1 and p.relation.name in own and p.kind == "number"]
    return tuple((p, q) for p, q in numbers if p.stems[-1] not in NUMBERED)


def _parts(spans: Sequence[Span], vocabulary: Vocabulary) -> tuple[Span, ...]:
    """Take two words of which each may mean several columns for the one that both name: "threatened more than 500
    structures", "how many structures were destroyed", the `JP_sales` of "sales in Japan".
    """
    parts = list(spans)
    at = [i for i, span in enumerate(spans) if span.kind == "C"]
    for i, j in pairwise(at):
        one, other = dict(spans[i].data), dict(spans[j].data)
        shared = [place for place in one if place in other and min(one[place], other[place]) < OWN]
        if len(shared) != 1 or max(len(one), len(other)) < 2:
            continue
        whole = vocabulary.of_place(shared[0])
        if whole or (len(shared[0].stems) > 1 and shared[0].stems[-1].endswith("ed")):
            parts[i], parts[j] = replace(spans[i], data=((shared[0], OWN),)), silenced(spans[j])
    return tuple(parts)


def _compounds(spans: Sequence[Span]) -> tuple[Span, ...]:
    """Take "card" of "card count", and "name" of "government form name", for a part of the column's name; a verb is
    none, as in "which customers opened".
    """
    named = {relation.name for span in spans if span.kind == "R" for relation in span.data}
    parts = list(spans)
    for i, (span, after) in enumerate(pairwise(spans)):
        if after.kind != "C":
            continue
        owners = {place.relation.name for place, _ in after.data}
        own = {relation.name for relation in span.data} if span.kind == "R" else set()
        if own and not owners & own and owners & named and not is_deed(after):
            parts[i] = silenced(span)
        if span.kind == "C" and span.data[0][0].kind == "text" and set(after.data[0][0].stems) == {"name"}:
            parts[i + 1] = silenced(after)
    return tuple(parts)


def _own_columns(spans: Sequence[Span], vocabulary: Vocabulary) -> tuple[Span, ...]:
    """Take "by grower", "which grower" for a column where the rows asked about have one, and for no other rows."""
    parts = list(spans)
    for i, (before, span) in enumerate(pairwise(spans), 1):
        asks = before.kind == "B" or (i == 1 and before.data in ("which", "what"))
        if span.kind == "R" and asks and span.said:
            asked = _spoken_of(spans) - {relation.name for relation in span.data}
            known = vocabulary.columns_named(tuple(span.said.split()))
            own = [(p, q) for p, q in known if q >= OWN and p.relation.name in asked and not p.identifier]
            if own and own[0][0].kind in ("text", "boolean"):
                parts[i] = replace(span, kind="C", data=tuple(own), said="")
    return tuple(parts)


def _listed_rows(spans: Sequence[Span], vocabulary: Vocabulary) -> tuple[Span, ...]:
    """Take rows that stand in a list of columns for what names them, where what belongs to what is said: "names of
    teachers and the courses that they teach".
    """
    parts, kinds = list(spans), "".join(span.kind for span in spans)
    listed = re.search(r"C[wB]*R[w]*&w*(?P<r>R)(?=w+[rv])", kinds)
    named = [relation for span in spans if span.kind == "R" for relation in span.data]
    if listed is not None:
        span = spans[listed.start("r")]
        names = vocabulary.whole_name(span.data[0])
        if len(names) == len(span.data) == named.count(span.data[0]) == 1:
            parts[listed.start("r")] = replace(span, kind="C", data=((names[0], 1.0),), said="")
    return tuple(parts)


def _spoken_of(spans: Sequence[Span]) -> set[str]:
    """Return the relations that are named, or have a column that is."""
    named = {relation.name for span in spans if span.kind == "R" for relation in span.data}
    return named | {place.relation.name for span in spans if span.kind == "C" for place, _ in span.data}


def _people(spans: Sequence[Span], vocabulary: Vocabulary) -> tuple[Span, ...]:
    """Take "who" and "everyone" for the rows of the one relation of people, where the question names no other rows."""
    at = [i for i, span in enumerate(spans) if span.kind in "w?" and str(span.data).casefold() in words().people]
    held = [{place.relation.name for place, _ in span.data} for span in spans if span.kind in "CV"]
    near = [relation for relation in vocabulary.people if all(relation.name in each for each in held)]
    kinds = {span.kind for span in spans}
    if not at or "R" in kinds or len(near) != 1:
        return tuple(replace(span, kind="w") if i in at else span for i, span in enumerate(spans))
    doing = {name for span in spans if span.kind == "r" for name in span.data}
    if spans[at[0]].data in ("who", "whom") and kinds & {"r", "v"} and ("v" in kinds or doing != {near[0].name}):
        return tuple(spans)  # who did what a verb says may be told by a column
    return tuple(replace(s, kind="R", data=(near[0],)) if i == at[0] else s for i, s in enumerate(spans))
