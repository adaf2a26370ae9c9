"""understand: a question → one reading, with what it rests on; or why there is none. The whole way on one screen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from almanaq.agent.local import sql
from almanaq.agent.local.compose import NotUnderstood, compose
from almanaq.agent.local.compose.features import features
from almanaq.agent.local.compose.state import State
from almanaq.agent.local.frame import Frame, Member, Term, Test, write
from almanaq.agent.local.joining import bring
from almanaq.agent.local.joins import ambiguous, paths
from almanaq.agent.local.once import once
from almanaq.agent.local.recognize.heard import heard
from almanaq.agent.local.recognize.readings import readings
from almanaq.agent.local.recognize.spans import Span, best_cover
from almanaq.agent.local.recognize.tokens import Token
from almanaq.agent.local.recognize.vocabulary import OWN, Vocabulary
from almanaq.agent.local.recognize.words import words
from almanaq.agent.local.schema_index import Place
from almanaq.suql.catalog.relations import Relation

_TELLING = "CVDOLH"
"""Kinds of spans that tell more of a question than of which table it is."""
_SHOWN = 5
"""Most columns that a query to edit shows of a table whose rows have no name."""


@dataclass(frozen=True, slots=True)
class Understanding:
    """What was made of a question.

    Attributes:
        suql: the query; None where the question was not understood whole.
        unknown: the words of which nothing is known.
        missing: what was not understood, in words; "" where all was.
        told: what tells sure readings from doubtful ones (`compose.features`).
        nearest: a query of what was understood, to edit; None where that is too little.
        named: the relations that are named, or hold what is.
        readings: sentences that say for what unusual words were taken.
        between: a value and the names of the columns between which it leaves open what is meant.
    """

    suql: str | None
    unknown: tuple[str, ...] = ()
    missing: str = ""
    told: Mapping[str, float] = field(default_factory=dict)
    nearest: str | None = None
    named: tuple[str, ...] = ()
    readings: tuple[str, ...] = ()
    between: tuple[str, tuple[str, ...]] | None = None


@once
def understand(question: str, vocabulary: Vocabulary) -> Understanding:
    """Return the one reading of a question that uses every word that means something."""
    tokens, found = heard(question, vocabulary)
    spans = best_cover(found, len(tokens))
    known = words().people
    held = [r for s in spans if s.kind == "R" for r in s.data]
    held = held or [place.relation for s in spans if s.kind in "CV" for place, _ in s.data]
    named = tuple(dict.fromkeys(relation.name for relation in held))
    unknown = tuple(str(s.data) for s in spans if s.kind == "?" and str(s.data).casefold() not in known)
    if unknown:
        listed = "the words " + ", ".join(f"“{word}”" for word in unknown)
        return Understanding(None, unknown, listed, nearest=_nearest(tokens, spans, vocabulary), named=named)
    try:
        return _read(tokens, spans, vocabulary)
    except NotUnderstood as error:
        reason = str(error.args[0]) if error.args else ""
        between = error.args[1] if len(error.args) > 1 else None
        return Understanding(
            None, (), reason, nearest=_nearest(tokens, spans, vocabulary), named=named, between=between
        )


def _read(tokens: Sequence[Token], spans: Sequence[Span], vocabulary: Vocabulary) -> Understanding:
    """Return what one cover of the words asks for.

    Raises:
        NotUnderstood: a word fits nothing, or fits several things.
    """
    spans = _own_columns(_people(_compounds(spans), vocabulary), vocabulary)
    mentioned = _mentioned(spans)
    composer = compose(spans, vocabulary, mentioned)
    main = _checked(composer, vocabulary, mentioned)
    ways = paths(vocabulary.hops, main)
    bring(composer.frame, main, ways, vocabulary)
    suql = write(composer.frame, main, ways)
    told = features(spans, composer.frame, main, mentioned)
    return Understanding(suql, told=told, readings=readings(tokens, spans, composer.frame.places))


def _nearest(tokens: Sequence[Token], spans: Sequence[Span], vocabulary: Vocabulary) -> str | None:
    """Return a query of what was understood of a question, to be edited; None where that is a table's name alone."""
    pointed = _pointed(spans)
    if not any(span.kind in _TELLING for span in spans) and not pointed:
        return None
    plain = [replace(span, kind="w", data="") if span.kind in "?vrk" else span for span in spans]
    try:
        return _read(tokens, plain, vocabulary).suql
    except NotUnderstood:
        pass
    named = [relation for span in plain if span.kind == "R" for relation in span.data]
    held = [place.relation for span in plain if span.kind in "CV" for place, _ in span.data]
    if not (named or held):
        return None
    kin = {name for span in spans if span.kind == "r" for name in span.data}
    first = next((relation for relation in named if relation.name in kin), (named or held)[0])
    main = next((relation for relation in (*named, *held) if relation.name == pointed), first)
    columns = [p for s in plain if s.kind == "C" for p, _ in s.data[:1] if p.relation == main and p.kind != "prose"]
    shown = columns or vocabulary.whole_name(main) or vocabulary.index.places[main.name][:_SHOWN]
    frame = Frame([Term("", place) for place in shown])
    for span in plain:
        meant = [(p, value) for p, value in span.data if p.relation == main] if span.kind == "V" else []
        if len(meant) == 1 and not meant[0][0].column.array:
            frame.tests.append(Test(Term("", meant[0][0]), f"{{}} = {sql.text(meant[0][1])}"))
    return write(frame, main, {})


def _pointed(spans: Sequence[Span]) -> str:
    """Return the one relation that most words speak of, two at least; "" where there is none or there are several."""
    speaking: list[set[str]] = []
    for span in spans:
        if span.kind == "R":
            speaking.append({relation.name for relation in span.data})
        elif span.kind == "r":
            speaking.append(set(span.data))
        elif span.kind in "CV":
            speaking.append({place.relation.name for place, _ in span.data})
    counts = Counter(name for names in speaking for name in names).most_common(2)
    alone = bool(counts) and counts[0][1] > 1 and (len(counts) == 1 or counts[0][1] > counts[1][1])
    return counts[0][0] if alone else ""


def _checked(composer: State, vocabulary: Vocabulary, mentioned: list[Relation]) -> Relation:
    """Return the relation whose rows are asked about, where what was put together holds together."""
    frame = composer.frame
    _move_to_members(frame)
    relations = [place.relation for place in frame.places] + frame.nouns or mentioned
    main = _main(vocabulary, relations, frame.nouns)
    _check_absent(frame, main, vocabulary)
    used = {relation.name for relation in (*relations, main, *frame.absent, *(each.relation for each in frame.members))}
    if any(not set(kin) & used for kin in composer.kin):
        raise NotUnderstood("what a verb speaks of")
    doubtful = used & ambiguous(vocabulary.hops, main)
    if doubtful:
        raise NotUnderstood(
            f"in which of several ways {main.name} and {' and '.join(sorted(doubtful))} belong together"
        )
    if any(not _is_one(place.relation, main, vocabulary) for _, place in composer.aggregates):
        raise NotUnderstood(f"of which rows of {main.name} the numbers are put together")
    if any(vocabulary.is_list(place) for place in _grouped(frame)):
        raise NotUnderstood("whether lists or their items are grouped")
    _check_counted(composer, vocabulary, main, relations, mentioned)
    frame.distinct = frame.distinct or _repeats(frame, main)
    return main


def _move_to_members(frame: Frame) -> None:
    """Make what is asked of rows that are not to be there a part of that: "stadiums without a concert in 2014"."""
    for relation in list(frame.absent):
        tests = tuple(
            test for test in frame.tests if test.term.place is not None and test.term.place.relation == relation
        )
        if tests:
            frame.absent.remove(relation)
            frame.tests = [test for test in frame.tests if test not in tests]
            frame.members.append(Member(relation, tests, False))


def _is_one(relation: Relation, main: Relation, vocabulary: Vocabulary) -> bool:
    """Return whether a relation is the main one, or holds facts of the same things."""
    return relation == main or relation.name in vocabulary.of_facts({main.name})


def _check_counted(
    composer: State,
    vocabulary: Vocabulary,
    main: Relation,
    relations: Sequence[Relation],
    mentioned: Sequence[Relation],
) -> None:
    """Raise NotUnderstood where it is not clear which rows are counted."""
    frame, counted = composer.frame, composer.counted_relation
    if counted not in (None, main) and main in mentioned:
        raise NotUnderstood(f"how rows of {main.name} are counted")
    unnamed = composer.counts and counted is None and composer.counted is None and not frame.nouns
    if unnamed and any(relation != relations[0] for relation in relations):
        raise NotUnderstood("rows of what are counted")  # "how many dogs had surgery"
    own = [place for place in _grouped(frame) if place.relation == counted]
    one = len({relation.name for relation in relations}) == 1
    if own and frame.having and one and vocabulary.names_rows(_grouped(frame)[0]):
        raise NotUnderstood("each row is one")


def _repeats(frame: Frame, main: Relation) -> bool:
    """Return whether rows of another relation are shown, each of which may have several of the main one."""
    if frame.groups or frame.order or not frame.wanted:
        return False
    return all(t.place is not None and not t.function and t.place.relation != main for t in frame.wanted)


def _compounds(spans: Sequence[Span]) -> tuple[Span, ...]:
    """Take "card" of "card count" for a part of the column's name, where the column is one of another table."""
    named = [relation.name for span in spans if span.kind == "R" for relation in span.data]
    found = list(spans)
    for i, (span, after) in enumerate(pairwise(spans)):
        if (
            span.kind == after.kind == "C"
            and span.data[0][0].kind == "text"
            and set(after.data[0][0].stems) == {"name"}
        ):
            found[i + 1] = replace(after, kind="w", data="")  # "government form name"
    for i, (span, after) in enumerate(pairwise(spans)):
        if span.kind == "R" and after.kind == "C":
            owners = {place.relation.name for place, _ in after.data}
            own = {relation.name for relation in span.data}
            if not owners & own and owners & {name for name in named if name not in own}:
                found[i] = replace(span, kind="w", data="")
    return tuple(found)


def _own_columns(spans: Sequence[Span], vocabulary: Vocabulary) -> tuple[Span, ...]:
    """Take "by grower", "which grower" for a column where the rows asked about have one, and for no other rows."""
    found = list(spans)
    for i, span in enumerate(spans):
        before = spans[i - 1] if i else None
        grouped = before is not None and (before.kind == "B" or (i == 1 and before.data in ("which", "what")))
        if span.kind == "R" and grouped:
            others = [s.data if s.kind == "R" else [p.relation for p, _ in s.data] for s in spans if s.kind in "CR"]
            asked = {r.name for relations in others for r in relations} - {r.name for r in span.data}
            named = vocabulary.columns_named(tuple(span.said.split())) if span.said else ()
            own = [(p, q) for p, q in named if q >= OWN and p.relation.name in asked and not p.identifier]
            if own and own[0][0].kind in ("text", "boolean"):
                found[i] = replace(span, kind="C", data=tuple(own), said="")
    return tuple(found)


def _people(spans: Sequence[Span], vocabulary: Vocabulary) -> tuple[Span, ...]:
    """Take "who" and "everyone" for the rows of the one relation of people, where the question names no other rows."""
    held = [{place.relation.name for place, _ in span.data} for span in spans if span.kind in "CV"]
    near = [r for r in vocabulary.people if all(r.name in each for each in held)]
    said = [i for i, span in enumerate(spans) if str(span.data).casefold() in words().people and span.kind in "w?"]
    if not said or any(span.kind == "R" for span in spans) or len(near) != 1:
        return tuple(replace(span, kind="w") if i in said else span for i, span in enumerate(spans))
    if spans[said[0]].data in ("who", "whom") and any(span.kind in "rv" for span in spans):
        return tuple(spans)
    return tuple(replace(s, kind="R", data=(near[0],)) if i == said[0] else s for i, s in enumerate(spans))


def _mentioned(spans: Sequence[Span]) -> list[Relation]:
    """Return the relations that a question speaks of: those it names, else those that hold all that it names."""
    named = {r.name: r for span in spans if span.kind == "R" for r in span.data}
    if named:
        return list(named.values())
    held: list[dict[str, Relation]] = []
    for span in spans:
        if span.kind in "CV":
            places: Sequence[Place] = [named[0] for named in span.data]
            held.append({place.relation.name: place.relation for place in places})
    if not held:
        raise NotUnderstood("no word names anything here")
    shared = [relation for name, relation in held[0].items() if all(name in each for each in held)]
    return shared or [relation for each in held for relation in each.values()]


def _main(vocabulary: Vocabulary, relations: Sequence[Relation], nouns: Sequence[Relation]) -> Relation:
    """Return the relation whose rows are asked about: from it every other one is at most one row away."""
    names = {relation.name: relation for relation in relations}
    fit = [relation for relation in names.values() if _reaches(vocabulary, relation, names)]
    if not fit:
        fit = [r for r in vocabulary.index.catalog.relations if _reaches(vocabulary, r, names)]
        fit = fit if len(fit) == 1 else []
    if not fit:
        raise NotUnderstood("how " + " and ".join(names) + " belong together")
    called = [relation for relation in fit if relation in nouns]
    return (called or fit)[0]


def _grouped(frame: Frame) -> list[Place]:
    return [term.place for term in frame.groups if term.place is not None]


def _reaches(vocabulary: Vocabulary, relation: Relation, names: Iterable[str]) -> bool:
    """Return whether each row of a relation has at most one row of each other."""
    ways = paths(vocabulary.hops, relation)
    return all(name in ways and all(hop.single for hop in ways[name]) for name in names)


def _check_absent(frame: Frame, main: Relation, vocabulary: Vocabulary) -> None:
    """Raise NotUnderstood unless each relation of which a row is to have none is one step away."""
    ways = paths(vocabulary.hops, main)
    for relation in frame.absent:
        way = ways.get(relation.name, ())
        if len(way) != 1 or (way[0].single and relation.name not in vocabulary.of_facts({main.name})):
            raise NotUnderstood(f"how {main.name} is without {relation.name}")
    for each in frame.members:
        way = ways.get(each.relation.name, ())
        if not way or (way[0].single and each.relation.name not in vocabulary.of_facts({main.name})):
            raise NotUnderstood(f"how {each.relation.name} belongs to {main.name}")
