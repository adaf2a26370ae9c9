"""What is shown: made of the spans that no construction took."""

from __future__ import annotations

import re
from collections.abc import Sequence

from almanaq.agent.local_old.compose import checks, members, value_tests
from almanaq.agent.local_old.compose.ranking import rank
from almanaq.agent.local_old.compose.refusal import NotUnderstood
from almanaq.agent.local_old.compose.state import State
from almanaq.agent.local_old.frame import Frame, Term, Test
from almanaq.agent.local_old.recognize.other_forms import OTHER_FORM
from almanaq.agent.local_old.recognize.spans import Span
from almanaq.agent.local_old.recognize.words import words
from almanaq.agent.local_old.schema_index import Place
from almanaq.agent.local_old.spoken import relation_stems
from almanaq.suql.catalog.relations import Relation

_ASKING = ("what", "when", "where", "how", "why", "whose", "is", "are", "does", "do", "did", "was", "were")
_WHETHER = ("is", "are", "does", "do", "did", "was", "were", "has", "have")
_UNUSED = {
    "A": "of which column the total, average or other figure is asked for",
    "B": "by what the rows are grouped",
    "D": "which column the time belongs to",
    "H": "what is counted",
    "M": "what is missing",
    "N": "which column the number belongs to",
    "O": "which column is compared with the number",
    "P": "of what the share is meant",
    "S": "by what the rows are ranked",
    "X": "what the negation belongs to",
    "Y": "by which date the rows are grouped",
    "Z": "what is compared with the row",
    "F": "by what the rows are put in order",
}
"""What is not clear where no construction took a span of a kind."""
_DESCRIBING = ("desc", "description", "descr", "label")
_MOST_KINDS, _ROWS_OF_A_KIND = 25, 5
"""Most values of a column of kinds, and how many rows there have to be of each, on average."""
_IN_FULL = {"details", "detail", "info", "information", "everything", "profile"}
_EVERYTHING = ("all", "list", "show", "every", "display", "there")


def finish(state: State) -> None:
    computed = [place for _, place in state.aggregates]
    columns = [place for span in _left(state) for place in state.places(span) if place not in computed]
    members.both_bounds(state, columns)
    checks.check_parts(state, columns)
    columns = columns or _asked_by_who(state)
    if any(place.kind == "prose" for place in columns) and not _is_of_one(state):
        raise NotUnderstood("prose")
    _outputs(state, columns)
    _check_order(state.frame)
    state.frame.groups, state.frame.wanted = (list(dict.fromkeys(x)) for x in (state.frame.groups, state.frame.wanted))


def _is_of_one(state: State) -> bool:
    """Return whether a question asks what is written of one row, which is named."""
    figures = state.counts or state.aggregates or state.superlative or state.frame.groups
    return bool(state.named_by()) and len(state.frame.tests) == 1 and not figures


def _left(state: State) -> list[Span]:
    """Use what no construction took, but for columns: values, rows that are named, "different"; give the columns."""
    left = [(state.spans[i], kind) for i, kind in enumerate(state.kinds) if kind.isupper() or kind in "?kv"]
    value_tests.add(state, [span for span, kind in left if kind == "V"])
    for span, kind in left:
        if kind == "R":
            state.mention(span.data)
        elif kind not in "CVEU":
            raise NotUnderstood(f"“{span.data}”" if kind in "?v" else _UNUSED.get(kind, "what some words belong to"))
    state.frame.distinct = state.frame.distinct or "U" in state.kinds
    if "|" in state.kinds:
        _either(state)
    kinds = "".join(span.kind for span in state.spans)
    listed = re.search(r"C[wR]*&w*R(?!C)|Rw+Rw*&w*C", kinds)
    again = listed is not None and state.spans[listed.end() - 1].data in [
        s.data for s in state.spans[: listed.end() - 1]
    ]
    if listed is not None and not again and not state.frame.groups:
        raise NotUnderstood("what is shown of each")
    return [span for span, kind in left if kind == "C"]


def _either(state: State) -> None:
    """Make one condition of two with "or" between them; a third one leaves open what goes with what."""
    frame = state.frame
    if len(frame.tests) + len(frame.having) + len(frame.members) + len(frame.absent) < 2:
        return
    first, *more = frame.tests
    places = [test.term.place for test in frame.tests]
    alone = len(more) == 1 and not (frame.having or frame.members or frame.absent) and state.kinds.count("|") == 1
    # "Kern or Tulare county" of two columns may be one of two names
    named = len({*places}) > 1 and re.search(r"Vw*\|w*V", "".join(span.kind for span in state.spans))
    if named or not alone or len({place.relation.name if place is not None else "" for place in places}) != 1:
        raise NotUnderstood("which of the conditions may hold alone")
    other = more[0] if more[0].term == first.term else Test(first.term, more[0].write(True))
    frame.tests = [Test(first.term, f"({first.template} OR {other.template})")]


def _asked_by_who(state: State) -> list[Place]:
    """Return the column of those who did what a verb says, the director of "who directed Alien"; a question that begins
    with another question word, and names no column, is not understood.
    """
    opening = str(state.spans[0].data) if state.spans[0].kind == "w" else ""
    extreme = state.superlative.place if state.superlative is not None else None
    named = [place.relation for place in state.named_by()]
    if opening == "when" and extreme is not None and extreme.kind == "date" and extreme.relation not in named:
        return []  # "when was the first trip"
    if opening in ("where", "when"):
        raise NotUnderstood(f"which column says {opening}")
    kinds = "".join(span.kind for span in state.spans)
    ranked = state.superlative is not None
    if state.spans[0].data not in ("who", "whom") or (state.frame.nouns if ranked else kinds[:2] not in ("wr", "wv")):
        return []
    agents = state.vocabulary.verbs.agents(state.spans[1].said or str(state.spans[1].data)) if kinds[:2] != "wv" else []
    near = [place for place in agents if not state.names or place.relation.name in state.names] or _doers(state)
    if len(near) != 1:
        raise NotUnderstood("who is asked for")
    return near


def _doers(state: State) -> list[Place]:
    """Return what names the rows of the one relation that a verb speaks of: the directors of "who directed"."""
    doing = {name for span in state.spans[1:2] if span.kind == "r" for name in span.data} - state.names
    relations = [state.vocabulary.index.catalog.find(name) for name in doing]
    named = [state.vocabulary.row_name(relation) for relation in relations if relation is not None]
    # A name of somebody else, as of a supplier's contact, is not the row's.
    return [p for p in named if p is not None and set(p.stems) <= {"name", *relation_stems(p.relation)}]


def _outputs(state: State, columns: list[Place]) -> None:
    frame = state.frame
    members.count_members(state, columns)
    if state.counts or (frame.groups and not columns and not state.aggregates):
        checks.check_named_alike(state)
    if frame.share:
        checks.check_share(state, columns)
        return
    if state.each is not None:
        columns = _by_each(state, columns)
    if state.superlative is not None:
        rank(state, state.superlative, columns)
    if state.superlative is None:
        _plain_outputs(state, _counted(state, columns) if state.counts else columns)
        if "E" in state.kinds and frame.groups and len(frame.wanted) == 1 and not frame.order:
            frame.order.append((frame.wanted[0], state.descending()))  # "orders per city, most first"


def _check_order(frame: Frame) -> None:
    """Raise where groups are put in order by a column of their rows."""
    known = [*frame.groups, *frame.wanted]
    grouped = frame.groups and (frame.wanted or frame.having)
    if grouped and any(term not in known and not term.function and term.place for term, _ in frame.order):
        raise NotUnderstood("by what of the groups they are put in order")


def _plain_outputs(state: State, columns: list[Place]) -> None:
    """Show figures, groups, columns or rows: the first of them that is asked for."""
    frame = state.frame
    frame.wanted += [Term(function, place) for function, place in state.aggregates]
    if frame.wanted:
        if columns and not (frame.groups or frame.having or state.listed_beside()):
            raise NotUnderstood("what the other columns are of")
        frame.groups += [Term("", place) for place in columns]
    elif frame.having:
        frame.groups += [Term("", place) for place in columns or state.ranked_names()]
        opening = [span for span in state.spans if span.data not in ("which", "what", "list", "the")][:1]
        if not columns or (opening and opening[0].kind == "C"):  # "cities with more than 5 shops", not "the names of"
            frame.wanted += dict.fromkeys(test.term for test in frame.having)
    elif frame.groups:
        _of_groups(state, columns)
    elif columns:
        _shown_columns(state, columns)
    else:
        _named_rows(state)


def _of_groups(state: State, columns: Sequence[Place]) -> None:
    """Show what is asked of each group: sums of numbers, or how many rows there are, "inspections per year"."""
    if not columns and _begins_with_group(state):
        state.frame.wanted.append(Term("COUNT", None))
    elif not columns or not all(p.kind == "number" and not p.identifier for p in columns):
        raise NotUnderstood("what is shown of each group")
    elif not all(map(state.adds_up, columns)):
        raise NotUnderstood("how the numbers of a group are put together")
    else:
        state.frame.wanted += [Term("SUM", place) for place in columns]


def _counted(state: State, columns: list[Place]) -> list[Place]:
    """Ask for a number of rows or of values; give the columns that are left to be shown."""
    frame, counted = state.frame, state.counted_relation
    frame.wanted.append(Term("COUNT" if state.counted is None else "COUNT DISTINCT", state.counted))
    frame.distinct = False
    if state.counted is None:
        checks.check_people(state)
    if not columns and not frame.groups:
        checks.check_counted(state)
    if not columns or frame.groups:
        return columns
    if counted is None or state.aggregates or not (state.listed_beside() and _make_groups(state, columns, counted)):
        raise NotUnderstood("what is counted")
    frame.groups += [Term("", p) for p in columns]
    return []


def _make_groups(state: State, columns: Sequence[Place], counted: Relation) -> bool:
    """Return whether columns beside a number of rows make groups of these: "names of teachers and the number of their
    courses", "the record companies and the number of orchestras".
    """
    if all(place.relation != counted for place in columns):
        return state.tells_rows(columns[0])
    kinds = "".join(span.kind for span in state.spans)
    before, _, after = kinds.partition("C")
    told_apart = "U" in before or not state.tells_rows(columns[0])
    return len(columns) == 1 and "H" in after and told_apart and (columns[0].kind == "text" or columns[0].identifier)


def _by_each(state: State, columns: list[Place]) -> list[Place]:
    """Group by the rows of a relation, "by team"; give the columns that are left to be shown."""
    assert state.each is not None
    frame = state.frame
    own = _is_measured(state, state.each, columns)
    if state.counts and any(not state.is_single(state.each, place.relation) for place in columns):
        raise NotUnderstood(f"what is shown of each of {state.each.name}")
    said = {span.data for span in state.spans if span.kind == "B"}
    if columns and said and not said & {"by", "per"} and _only_lists(state, columns):
        return columns
    if own and (kinds := _kinds_of(state, state.each)):
        frame.groups += [Term("", kinds)]  # constituents, of which many rows have the same name
        return columns
    if ("by" in said or not said) and state.aggregates and own:
        raise NotUnderstood(f"of which rows of {state.each.name} the numbers are put together")
    if not own:
        frame.groups += [Term("", place) for place in state.names_of(state.each)]
        frame.groups = list(dict.fromkeys(frame.groups))
    return [place for place in columns if Term("", place) not in frame.groups]


def _kinds_of(state: State, rows: Relation) -> Place | None:
    """Return the bare name that rows share with others, where they have no name of their own."""
    named = () if state.vocabulary.whole_name(rows) else state.vocabulary.called(rows)
    return named[0] if named and state.vocabulary.is_kind(named[0]) else None


def _is_measured(state: State, rows: Relation, columns: Sequence[Place]) -> bool:
    """Return whether the numbers asked for are all of some rows."""
    measured = [p for _, p in state.aggregates] or [p for p in columns if p.kind == "number"]
    return bool(measured) and all(p.relation == rows for p in measured)


def _only_lists(state: State, columns: Sequence[Place]) -> bool:
    """Return whether columns of rows are asked for, and no figures: "the name and date of each battle"."""
    figures = state.counts or state.aggregates or state.superlative or state.frame.having or state.frame.groups
    return not figures and all(place.relation == state.each for place in columns)


def _shown_columns(state: State, columns: list[Place]) -> None:
    """Show the columns asked for; of things in general, with what names them: a fact without its thing says little."""
    frame = state.frame
    checks.check_computed(state)
    columns = [each for place in columns for each in (*state.within(place), place)]
    columns = [*_names_of_general(state, columns), *columns, *(d for p in columns for d in _described_by(state, p))]
    frame.wanted += [Term("", place) for place in dict.fromkeys([*_names_first(state), *columns])]
    alone = len(columns) == 1 and columns[0].kind == "text" and not frame.nouns and not columns[0].identifier
    denied = any("<>" in test.template or "NOT" in test.template for test in frame.tests)
    denied = denied or bool(frame.absent) or any(not member.wanted for member in frame.members)
    asked = re.match("w*Cw*Xw?V", "".join(span.kind for span in state.spans))  # "which towns have no red houses"
    if (alone or asked) and denied and not state.tells_rows(columns[0]):
        raise NotUnderstood(f"whether all rows of each {columns[0].column.name} are meant")
    if "E" in state.kinds and not frame.order:
        frame.order.append((Term("", columns[0]), state.descending()))
    frame.distinct = frame.distinct or (alone and not frame.order)
    if frame.distinct and alone and not (frame.tests and state.named_by()):
        state.test(columns[0], "{} IS NOT NULL")  # the kinds that there are: none is no kind


def _described_by(state: State, place: Place) -> list[Place]:
    """Return the column that says in words what another one holds as a code: `typedesc` beside `type`."""
    whole = "".join(place.stems)
    own = state.vocabulary.index.places[place.relation.name]
    return [p for p in own if "".join(p.stems) in {whole + ending for ending in _DESCRIBING} and p.kind == "text"]


def _names_of_general(state: State, columns: Sequence[Place]) -> list[Place]:
    """Return what names the things of which another table holds a fact, where no one of them is asked for."""
    general = [noun for noun in state.frame.nouns[:1] if noun not in [place.relation for place in columns]]
    hubs = {group.hub.name for group in state.vocabulary.facts}
    return [name for noun in general if noun.name in hubs and not state.named_by() for name in state.names_of(noun)]


def _names_first(state: State) -> tuple[Place, ...]:
    """Return what names the rows that a question begins with: "red ferries in Oslo and their crew size"."""
    used = zip(state.spans, state.kinds, strict=True)
    content = [i for i, (span, kind) in enumerate(used) if span.kind == "R" or not (span.kind in "w&UV" or kind == "w")]
    first = state.spans[content[0]] if content else state.spans[0]
    if first.kind != "R" or state.spans[content[0] + 1].kind == "C" or first.data[0] not in state.frame.nouns:
        return ()
    return state.vocabulary.called(first.data[0])


def _named_rows(state: State) -> None:
    """Show the rows that a question is of, where it names no column of them."""
    frame = state.frame
    if _asked_of_one(state):
        return
    silent = {str(span.data) for span in state.spans if span.kind == "w"}
    listing = bool(silent & {*_EVERYTHING})
    if not frame.nouns:
        frame.nouns += _tested_rows(state, listing)
    everything = listing and len(state.names) == 1
    if not frame.nouns or not (frame.tests or frame.absent or frame.members or everything):
        raise NotUnderstood("what is asked of the rows")
    in_full = any(span.kind == "R" and span.said in words().rows for span in state.spans)
    in_full = in_full or (bool(state.named_by()) and bool(silent & _IN_FULL))
    own = state.vocabulary.index.places[frame.nouns[0].name]
    frame.wanted += [Term("", place) for place in own] if in_full else state.shown(frame.nouns[0])
    frame.wanted += dict.fromkeys(Term("", place) for place in _compared(state, frame.nouns[0]))


def _tested_rows(state: State, listing: bool) -> list[Relation]:
    """Return the one relation of which conditions speak, where no rows are named: "sedans from Sweden"."""
    if any(span.kind == "C" and span.data[0][1] == OTHER_FORM for span in state.spans):
        raise NotUnderstood("whether rows are counted or shown")  # "convictions in 2014"
    if listing and state.named_by():
        _check_kind(state, state.named_by()[0])
    places = [test.term.place for test in state.frame.tests if test.term.place is not None]
    tested = {place.relation.name: place.relation for place in places}
    return list(tested.values()) if len(tested) == 1 and not _asks_else(state) else []


def _compared(state: State, rows: Relation) -> list[Place]:
    """Return the numbers and days that are compared, of other rows of which each row asked for has one, and the texts
    in which something was looked for.
    """
    tested = [t.term.place for t in state.frame.tests if t.term.place is not None and " = " not in t.template]
    others = [p for p in tested if p.relation != rows and p.kind in ("number", "date")]
    single = [p for p in others if state.is_single(rows, p.relation) or state.is_one_to_one(p.relation, rows)]
    held = [t.term.place for t in state.frame.tests if t.term.place is not None and "ILIKE" in t.template]
    return [*single, *(p for p in held if p.relation != rows)]


def _check_kind(state: State, named: Place) -> None:
    """Raise where a row is named of which others are a kind: "list the noble gases" asks for the elements."""
    hops = (hop for each in state.vocabulary.hops.values() for hop in each)
    if any(hop.single and hop.right == named.relation.name for hop in hops):
        raise NotUnderstood(f"whether {named.relation.name} or what belongs to it is listed")


def _asked_of_one(state: State) -> bool:
    """Show the fact that is asked of one row, which is named: "does Hotel Roma have a pool"."""
    names = state.named_by()
    others = [test for test in state.frame.tests if test.term.place not in names]
    asks = state.spans[0].kind == "w" and state.spans[0].data in _WHETHER
    told = [test.term.place for test in others if test.term.place is not None and "NOT" not in test.template]
    if not (asks and names and told) or len(told) < len(others) or state.frame.groups or state.frame.members:
        return False
    state.frame.tests = [test for test in state.frame.tests if test not in others]
    state.frame.wanted += [Term("", place) for place in dict.fromkeys(told)]
    return True


def _asks_else(state: State) -> bool:
    """Return whether a question without a noun asks for something else than the rows of its conditions."""
    if any(span.kind in "rv" for span in state.spans):
        return True
    only_named = sum(span.kind != "w" for span in state.spans) == 1 and state.named_by()  # "what is Lima?"
    return state.spans[0].kind == "w" and state.spans[0].data in _ASKING and not only_named


def _begins_with_group(state: State) -> bool:
    """Return whether a question is of rows and groups alone: "orders per year"."""
    kinds = "".join(span.kind for span in state.spans if span.kind not in "w&")
    by = any(span.kind == "B" and span.data == "by" for span in state.spans)
    period = "Y" in kinds  # "orders per month in 2024"
    listed = by and not all(_makes_few(state, term) for term in state.frame.groups)  # "books by author" may be a list
    return bool(re.fullmatch(r"(?:U?V*R|V+)B[CYR]+[VDBO]*", kinds)) and not listed and (period or not state.frame.tests)


def _makes_few(state: State, term: Term) -> bool:
    """Return whether a column makes few groups of many rows: its values are kinds, and no names."""
    place = term.place
    if place is None or term.function:
        return False
    kinds = 2 if place.kind == "boolean" else state.vocabulary.distinct(place)
    return 0 < kinds <= _MOST_KINDS and (place.relation.rows or 0) >= _ROWS_OF_A_KIND * kinds
