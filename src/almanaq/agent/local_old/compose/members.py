"""Rows of another relation of which a row has to have one, several, or none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from almanaq.agent.local_old import sql
from almanaq.agent.local_old.compose.checks import apart
from almanaq.agent.local_old.compose.refusal import NotUnderstood
from almanaq.agent.local_old.compose.state import State
from almanaq.agent.local_old.frame import Frame, Member, Term, Test
from almanaq.agent.local_old.joins import Hop
from almanaq.agent.local_old.schema_index import Place
from almanaq.suql.catalog.relations import Relation

_TURNED = {"<": ">=", "<=": ">"}
"""What no row is to have instead of having few of them."""


def both_bounds(state: State, columns: Sequence[Place]) -> None:
    """Look for one row in each of two bounds that exclude each other: "towns with both clubs founded before 1900 and
    clubs founded after 2000", "visited both a museum opened before 2009 and one opened after 2011".
    """
    frame, subject = state.frame, state.subject()
    pair = apart(frame.tests) if any(span.data in ("both", "shared") for span in state.spans) else ()
    if not pair and any(span.data == "both" for span in state.spans) and subject is not None:
        _check_one_row(state, subject)
    place = pair[0].term.place if pair and not (state.counts or state.aggregates or state.superlative) else None
    if place is None:
        return
    way: tuple[Hop, ...] = ()
    if subject is None or subject == place.relation or state.is_single(subject, place.relation):
        way = _of_same_value(state, place.relation, columns)
        if not way:
            return
    own = _tests_of(frame, place.relation)
    shared = tuple(test for test in own if test not in pair)
    frame.tests = [test for test in frame.tests if test not in own]
    frame.members += [Member(place.relation, (test, *shared), True, way=way) for test in pair]
    if way:
        frame.distinct = True
    else:
        frame.nouns = [noun for noun in frame.nouns if noun != place.relation]


def _check_one_row(state: State, subject: Relation) -> None:
    """Raise where "both" may be of two rows: "keepers with both a seal and an animal older than 4"."""
    tested = [test.term.place.relation for test in state.frame.tests if test.term.place is not None]
    for relation in {each.name: each for each in tested if tested.count(each) > 1}.values():
        if not state.is_single(subject, relation):
            raise NotUnderstood(f"whether one row of {relation.name} or two of them are meant")


def _tests_of(frame: Frame, relation: Relation) -> tuple[Test, ...]:
    return tuple(t for t in frame.tests if t.term.place is not None and t.term.place.relation == relation)


def _of_same_value(state: State, relation: Relation, columns: Sequence[Place]) -> tuple[Hop, ...]:
    """Return the step from rows to those with the same value of the one column that is shown: the clubs of a town."""
    if len(columns) != 1 or columns[0].relation != relation or columns[0] in state.vocabulary.called(relation):
        return ()
    column = columns[0].column.name
    return (Hop(relation.name, column, relation.name, column, False),)


def count_members(state: State, columns: Sequence[Place]) -> None:
    """Look for rows by how many of another relation they have, where not they themselves are shown: "how many countries
    have more than 2 makers", "the founding years of clubs with more than 3 players".
    """
    frame, counted = state.frame, state.having_of
    if counted is None or len(frame.having) != 1 or not _is_of_rows(state, counted, columns):
        return
    template = frame.having.pop().template
    turned = next((sign for sign in _TURNED if template.startswith(f"{{}} {sign} ")), "")
    more = template.replace(turned, _TURNED[turned], 1) if turned else template  # fewer are also none
    own = _tests_of(frame, counted)
    frame.tests = [test for test in frame.tests if test not in own]
    frame.members.append(Member(counted, own, not turned, more))
    frame.nouns = [noun for noun in frame.nouns if noun != counted]
    state.counted_relation = None if state.counted_relation == counted else state.counted_relation


def _is_of_rows(state: State, counted: Relation, columns: Sequence[Place]) -> bool:
    """Return whether a question is of rows that may have several of those counted, and does not show these rows."""
    rows = [noun for noun in state.nouns_in_order() if noun != counted][:1]
    if not rows or state.superlative or state.frame.groups or state.each or state.is_single(rows[0], counted):
        return False
    told = not (state.counts or state.aggregates) and (not columns or any(map(state.tells_rows, columns)))
    return not told and all(state.is_single(rows[0], place.relation) for place in columns)


def are_all_wanted(state: State, place: Place, values: Sequence[str]) -> bool:
    """Ask for rows that have a row with each of several values: "countries that speak English and French"."""
    rows = state.nouns_in_order()[:1]
    both = any(span.data == "both" for span in state.spans)
    if not rows or state.is_single(rows[0], place.relation):
        if both:
            raise NotUnderstood(f"how one {place.column.name} is to be both {' and '.join(values)}")
        return False
    for value in values:
        state.frame.members.append(Member(place.relation, (Test(Term("", place), f"{{}} = {sql.text(value)}"),), True))
    return True


def move_to_members(frame: Frame) -> None:
    """Make what is asked of rows that are not to be there a part of that: "stadiums without a concert in 2014"; and
    what is said of several of them: "both English and French as official languages", "a dog but not a cat".
    """
    held = {member.relation.name for member in frame.members}
    shown = {term.place.relation.name for term in (*frame.wanted, *frame.groups) if term.place is not None}
    if shown and not shown & held:
        frame.nouns = [noun for noun in frame.nouns if noun.name not in held]
        _tell_members(frame, held)
    for relation in list(frame.absent):
        tests = tuple(
            test for test in frame.tests if test.term.place is not None and test.term.place.relation == relation
        )
        if tests:
            frame.absent.remove(relation)
            frame.tests = [test for test in frame.tests if test not in tests]
            frame.members.append(Member(relation, tests, False))


def look_for_tested(state: State) -> bool:
    """Look for rows of another relation that are only told of: "cities in countries where Dutch is spoken"; return
    whether there are such.
    """
    frame = state.frame
    tested = {test.term.place.relation.name: test.term.place.relation for test in frame.tests if test.term.place}
    terms = [
        *frame.wanted,
        *frame.groups,
        *(t.term for t in (*frame.having, *frame.share)),
        *(t for t, _ in frame.order),
    ]
    shown = {term.place.relation.name for term in terms if term.place is not None}
    for relation in tested.values():
        others = [state.is_single(other, relation) for other in state.mentioned if other.name in shown]
        if relation.name not in shown and others and not any(others):
            own = _tests_of(frame, relation)
            frame.tests = [test for test in frame.tests if test not in own]
            frame.nouns = [noun for noun in frame.nouns if noun != relation]
            frame.members.append(Member(relation, own, True))
            return True
    return False


def _tell_members(frame: Frame, held: set[str]) -> None:
    """Move the conditions of relations that a row has to have rows of: those of another column go with each."""
    own = [test for test in frame.tests if test.term.place is not None and test.term.place.relation.name in held]
    frame.tests = [test for test in frame.tests if test not in own]
    named = {test.term for member in frame.members for test in member.tests}
    more = tuple(test for test in own if test.term not in named)
    alone = [test for test in own if test.term in named]
    relations = {member.relation.name: member.relation for member in frame.members}
    frame.members += [Member(relations[t.term.place.relation.name], (t,), True) for t in alone if t.term.place]
    for i, member in enumerate(frame.members):
        with_it = tuple(t for t in more if t.term.place is not None and t.term.place.relation == member.relation)
        frame.members[i] = replace(member, tests=(*member.tests, *with_it))
