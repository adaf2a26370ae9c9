"""How rows of other relations are brought to those asked about: none is lost by it, and none counts twice."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from almanaq.agent.local_old.compose.refusal import NotUnderstood
from almanaq.agent.local_old.frame import Frame, Joined, Member, Term
from almanaq.agent.local_old.joins import Hop
from almanaq.agent.local_old.partners import Partners
from almanaq.agent.local_old.recognize.vocabulary import Vocabulary
from almanaq.agent.local_old.schema_index import Place
from almanaq.suql.catalog.relations import Relation

Ways = Mapping[str, tuple[Hop, ...]]


def bring(frame: Frame, main: Relation, ways: Ways, vocabulary: Vocabulary) -> None:
    """Decide how the columns of other relations are brought to the rows of `main`.

    What is only tested and may be there several times is looked for (IN); else a row has one partner at most, and
    stays where it has none, unless that partner is what is asked about.

    Raises:
        NotUnderstood: rows would be lost or count twice.
    """
    catalog, partners = vocabulary.index.catalog, vocabulary.partners
    _look_for_repeated(frame, ways, lambda hop: partners.is_unique(catalog.relation(hop.right), [hop.right_column]))
    _check_only_named(frame, main, ways, partners)
    _check_fewest(frame, ways, partners)
    _tell_apart(frame, main, ways, vocabulary, partners)
    frame.joined = _joined(frame, main, ways)


def _shown(frame: Frame) -> list[str]:
    """Return the relations of what is shown, grouped or ranked."""
    tests = [*frame.having, *frame.share]
    terms = [*frame.wanted, *frame.groups, *(test.term for test in tests), *(term for term, _ in frame.order)]
    return list(dict.fromkeys(term.place.relation.name for term in terms if term.place is not None))


def _tested(frame: Frame) -> dict[str, Relation]:
    found = [test.term.place.relation for test in frame.tests if test.term.place is not None]
    return {relation.name: relation for relation in found}


def _look_for_repeated(frame: Frame, ways: Ways, unique: Callable[[Hop], bool]) -> None:
    """Make conditions on what a row may have several of a search among them; raise where it is to be shown."""
    shown = _shown(frame)
    for name in dict.fromkeys([*shown, *_tested(frame)]):
        repeated = next((hop for hop in ways[name] if not unique(hop)), None)
        if repeated is None:
            continue
        shared = [other for other in (*shown, *_tested(frame)) if other != name and repeated in ways[other]]
        if name in shown or shared:
            raise NotUnderstood(
                f"which row of {repeated.right} belongs to one of {repeated.left}: {repeated.right_column} repeats"
            )
        tests = tuple(t for t in frame.tests if t.term.place is not None and t.term.place.relation.name == name)
        frame.members.append(Member(_tested(frame)[name], tests, True))
        frame.tests = [test for test in frame.tests if test not in tests]


def _check_only_named(frame: Frame, main: Relation, ways: Ways, partners: Partners) -> None:
    """Raise where rows of another relation are named alone, and some asked about have none."""
    used = {hop.right for name in (*_shown(frame), *_tested(frame)) for hop in ways[name]} | {main.name}
    for relation in frame.nouns:
        if relation.name not in used and not all(map(partners.all_have, ways[relation.name])):
            raise NotUnderstood(f"whether rows of {main.name} without {relation.name} are meant too")


def _check_fewest(frame: Frame, ways: Ways, partners: Partners) -> None:
    """Raise where the fewest are asked for, or all are listed, and some have none: these have no row to be counted."""
    counts = Term("COUNT", None)
    fewest = any(term == counts and not down for term, down in frame.order)
    fewest = fewest or any(test.term == counts and "<" in test.template for test in frame.having)
    names = _shown(frame) if frame.listed else _group_names(frame) if fewest else ()
    for hop in {hop for name in names for hop in ways[name]}:
        if not partners.all_have(hop.back):
            raise NotUnderstood(f"whether {hop.right} without any {hop.left} count")


def _group_names(frame: Frame) -> list[str]:
    return list(dict.fromkeys(term.place.relation.name for term in frame.groups if term.place is not None))


def _tell_apart(frame: Frame, main: Relation, ways: Ways, vocabulary: Vocabulary, partners: Partners) -> None:
    """Group by the key too where rows of another relation share a name: two people called alike are two."""
    for name in _group_names(frame):
        own = [term.place for term in frame.groups if term.place is not None and term.place.relation.name == name]
        called = vocabulary.whole_name(own[0].relation)
        if name == main.name or not called or not set(own) >= set(called):
            continue
        if not partners.is_unique(own[0].relation, [place.column.name for place in own]):
            key = _place(vocabulary, name, ways[name][-1].right_column)
            if key.column.private:
                raise NotUnderstood(f"which {name} of one name is meant")
            frame.groups.insert(0, Term("", key))


def _place(vocabulary: Vocabulary, relation: str, column: str) -> Place:
    return next(place for place in vocabulary.index.places[relation] if place.column.name == column)


def _joined(frame: Frame, main: Relation, ways: Ways) -> list[Joined]:
    """Return the joins that reach every column of a frame, each once; those that keep rows without a partner say so."""
    needed = {hop for name in _tested(frame) for hop in ways[name]}
    if _of_others(frame, main) or frame.having:
        needed |= {hop for name in _shown(frame) for hop in ways[name]}
    hops = dict.fromkeys(hop for name in (*_shown(frame), *_tested(frame)) for hop in ways[name])
    return [Joined(hop, hop not in needed) for hop in hops]


def _of_others(frame: Frame, main: Relation) -> bool:
    """Return whether rows of another relation are shown, and those of the main one only lead there."""
    own = any(term.place is None or term.function or term.place.relation == main for term in frame.wanted)
    return bool(frame.wanted) and not (own or frame.groups)
