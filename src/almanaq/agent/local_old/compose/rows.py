"""Whose rows a question is about, and whether what was put together holds together about them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from almanaq.agent.local_old.compose import checks, members
from almanaq.agent.local_old.compose.refusal import NotUnderstood
from almanaq.agent.local_old.compose.state import State
from almanaq.agent.local_old.frame import Frame, Term
from almanaq.agent.local_old.joins import Hop, ambiguous, paths
from almanaq.agent.local_old.recognize.spans import Span
from almanaq.agent.local_old.recognize.vocabulary import Vocabulary
from almanaq.agent.local_old.schema_index import Place
from almanaq.suql.catalog.relations import Relation


def mentioned_by(spans: Sequence[Span], vocabulary: Vocabulary) -> list[Relation]:
    """Return the relations that a question speaks of: those it names, else those that hold all that it names,
    else the only one."""
    named = {r.name: r for span in spans if span.kind == "R" for r in span.data}
    if named:
        return list(named.values())
    held: list[dict[str, Relation]] = []
    for span in spans:
        if span.kind in "CV":
            places: Sequence[Place] = [named[0] for named in span.data]
            held.append({place.relation.name: place.relation for place in places})
    relations = vocabulary.index.catalog.relations
    if not held and len(relations) == 1 and any(span.kind == "O" for span in spans):  # "how many were under 18"
        return [*relations]
    if not held:
        raise NotUnderstood("no word names anything here")
    shared = [relation for name, relation in held[0].items() if all(name in each for each in held)]
    return shared or [relation for each in held for relation in each.values()]


def main_of(state: State) -> Relation:
    """Return the relation whose rows are asked about, where what was put together holds together.

    Raises:
        NotUnderstood: it does not.
    """
    frame, vocabulary = state.frame, state.vocabulary
    members.move_to_members(frame)
    relations = [place.relation for place in frame.places] + frame.nouns or state.mentioned
    try:
        main = _main(vocabulary, relations, frame.nouns)
    except NotUnderstood:
        if not members.look_for_tested(state):
            raise
        return main_of(state)
    _check_absent(frame, main, vocabulary)
    used = {relation.name for relation in (*relations, main, *frame.absent, *(each.relation for each in frame.members))}
    if any(not set(kin) & used for kin in state.kin):
        raise NotUnderstood("what a verb speaks of")
    doubtful = used & ambiguous(vocabulary.hops, main)
    if doubtful:
        raise NotUnderstood(
            f"in which of several ways {main.name} and {' and '.join(sorted(doubtful))} belong together"
        )
    if any(not _is_one(place.relation, main, vocabulary) for _, place in state.aggregates):
        raise NotUnderstood(f"of which rows of {main.name} the numbers are put together")
    if any(vocabulary.is_list(place) and not vocabulary.is_of_parts(place) for place in _grouped(frame)):
        raise NotUnderstood("whether lists or their items are grouped")
    _check_counted(state, main, relations)
    frame.distinct = frame.distinct or _repeats(state, main)
    return main


def _is_one(relation: Relation, main: Relation, vocabulary: Vocabulary) -> bool:
    """Return whether a relation is the main one, or holds facts of the same things."""
    return relation == main or relation.name in vocabulary.of_facts({main.name})


def _check_counted(state: State, main: Relation, relations: Sequence[Relation]) -> None:
    """Raise NotUnderstood where it is not clear which rows are counted."""
    frame, counted = state.frame, state.counted_relation
    if any(term == Term("COUNT", None) for term in (*frame.wanted, *(test.term for test in frame.having))):
        checks.check_things(state, counted or main)
    if counted is not None and not _is_one(counted, main, state.vocabulary):
        _count_apart(state, counted, main)
    unnamed = state.counts and counted is None and state.counted is None and not frame.nouns
    if unnamed and any(relation != relations[0] for relation in relations):
        raise NotUnderstood("rows of what are counted")  # "how many dogs had surgery"
    own = [place for place in _grouped(frame) if place.relation == counted]
    one = len({relation.name for relation in relations}) == 1
    if own and frame.having and one and state.vocabulary.names_rows(_grouped(frame)[0]):
        raise NotUnderstood("each row is one")


def _count_apart(state: State, counted: Relation, main: Relation) -> None:
    """Count the rows of a relation that rows of the main one lead to, each once: "how many customers ordered in 2024".

    Raises:
        NotUnderstood: something else is asked of them.
    """
    frame, rows = state.frame, Term("COUNT", None)
    way = paths(state.vocabulary.hops, main).get(counted.name, ())
    key = [p for p in state.vocabulary.index.places[counted.name] if way and p.column.name == way[-1].right_column]
    if frame.wanted.count(rows) != 1 or frame.having or frame.order or len(key) != 1:
        if main in state.mentioned:
            raise NotUnderstood(f"how rows of {main.name} are counted")
        return
    frame.wanted[frame.wanted.index(rows)] = Term("COUNT DISTINCT", key[0])


def _repeats(state: State, main: Relation) -> bool:
    """Return whether rows of another relation are shown, each of which may have several of the main one."""
    frame = state.frame
    if frame.groups or frame.order or not frame.wanted:
        return False
    shown = {t.place.relation.name: t.place.relation for t in frame.wanted if t.place is not None and not t.function}
    if main.name in shown or any(t.place is None or t.function for t in frame.wanted):
        return False
    return not all(state.is_one_to_one(main, relation) for relation in shown.values())


def _main(vocabulary: Vocabulary, relations: Sequence[Relation], nouns: Sequence[Relation]) -> Relation:
    """Return the relation whose rows are asked about: from it every other one is at most one row away."""
    names = {relation.name: relation for relation in relations}
    fit = [relation for relation in names.values() if _reaches(vocabulary, relation, names)]
    if not fit:
        fit = [r for r in vocabulary.index.catalog.relations if _reaches(vocabulary, r, names)]
        fit = fit if len(fit) == 1 else [r for r in fit if all(len(paths(vocabulary.hops, r)[n]) == 1 for n in names)]
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
    """Raise NotUnderstood unless each relation of which a row is to have none, or some, has rows that belong to it."""
    ways, same = paths(vocabulary.hops, main), vocabulary.of_facts({main.name})
    for relation in (*list(frame.absent), *(each.relation for each in frame.members if not each.way)):
        way = ways.get(relation.name, ())
        if len(way) > 1 and relation in frame.absent and _bridged(way, vocabulary):
            # students who have no pet are in no row that says who has which
            frame.absent[frame.absent.index(relation)] = vocabulary.index.catalog.relation(way[0].right)
            continue
        single = all(hop.single for hop in way) and relation.name not in same
        if not way or single or (relation in frame.absent and (way[0].single or len(way) > 1)):
            raise NotUnderstood(f"how {relation.name} belongs to {main.name}")


def _bridged(way: Sequence[Hop], vocabulary: Vocabulary) -> bool:
    """Return whether each row that a way leads to first has its partners on the rest of it."""
    first, *rest = way
    return not first.single and all(hop.single and vocabulary.partners.all_have(hop) for hop in rest)
