"""What is shown: made of the spans that no construction took."""

from __future__ import annotations

import re
from collections.abc import Sequence

from almanaq.agent.local import sql
from almanaq.agent.local.compose.conditions import list_test
from almanaq.agent.local.compose.state import NotUnderstood, State, Superlative
from almanaq.agent.local.facts import facts
from almanaq.agent.local.frame import Member, Term, Test
from almanaq.agent.local.recognize.spans import COMPUTED, HOW, Span
from almanaq.agent.local.schema_index import Place
from almanaq.agent.local.spoken import relation_stems
from almanaq.suql.catalog.relations import Relation

_ASKING = ("what", "when", "where", "how", "why", "whose", "is", "are", "does", "do", "did", "was", "were")
_EXTREMES = {"highest", "lowest", "greatest", "largest", "biggest", "smallest", "maximal", "minimal"}
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
_BOUND = re.compile(r"\{\} ([<>]=?) '?(-?[\d.]+)'?")


def finish(state: State) -> None:
    left = [(state.spans[i], kind) for i, kind in enumerate(state.kinds) if kind.isupper() or kind in "?kvj"]
    _values(state, [span for span, kind in left if kind == "V"])
    for span, kind in left:
        if kind == "E":
            continue
        if kind == "R":
            state.mention(span.data)
        elif kind == "U":
            state.frame.distinct = True
        elif kind not in "CV":
            raise NotUnderstood(f"“{span.data}”" if kind in "?v" else _UNUSED.get(kind, "what some words belong to"))
    if "|" in state.kinds and len(state.frame.tests) > 1:
        _either(state)
    if re.search(r"C[wR]*&w*R", "".join(span.kind for span in state.spans)) and not state.frame.groups:
        raise NotUnderstood("what is shown of each")
    columns = [state.place(span) for span, kind in left if kind == "C"]
    _check_asked(state, columns)
    _check_bounds(state)
    _check_how(state)
    columns = columns or _asked_by_who(state) or _asked_by_wh(state)
    if any(place.kind == "prose" for place in columns):
        raise NotUnderstood("prose")
    _outputs(state, columns)


def _either(state: State) -> None:
    """Make one condition of two with "or" between them; a third one leaves open what goes with what."""
    first, *more = state.frame.tests
    if len(more) != 1 or more[0].term != first.term or first.term.place is None:
        raise NotUnderstood("which of the conditions may hold alone")
    state.frame.tests = [Test(first.term, f"({first.template} OR {more[0].template})")]


def _check_asked(state: State, columns: Sequence[Place]) -> None:
    """Raise NotUnderstood where a question begins with the rows it asks for and other things were found to be shown."""
    content = [i for i, span in enumerate(state.spans) if span.kind not in "w&U"]
    if not content or state.spans[content[0]].kind != "R":
        return
    first = state.spans[content[0]]
    before = [str(span.data) for span in state.spans[: content[0]]]
    beside = content[1:2] == [content[0] + 1] and state.spans[content[1]].kind == "C"
    if not columns and state.aggregates and not state.frame.groups:
        raise NotUnderstood(f"what is computed of {first.data[0].name}")
    if beside or state.frame.groups or state.superlative:
        return
    listed = "&" in [span.kind for span in state.spans]
    if columns and before[-1:] and before[-1] in ("which", "what") and not listed:
        raise NotUnderstood(f"what is said of {columns[0].column.name}")
    if any(place.relation not in first.data for place in columns):
        raise NotUnderstood(f"whether {first.data[0].name} or {columns[0].column.name} is asked for")


def _opens(state: State, place: Place) -> bool:
    """Return whether a column is the first thing that a question names."""
    first = next((span for span in state.spans if span.kind not in "w&U"), None)
    return first is not None and first.kind == "C" and any(named is place for named, _ in first.data)


def _leading(state: State) -> list[Relation]:
    """Return the relations with which a question begins: "the race and alignment of"."""
    kinds = "".join(span.kind for span in state.spans)
    found = re.match(r"[wU]*R(?:w*&w*R)+", kinds)
    return [] if found is None else [state.one_of(s.data) for s in state.spans[: found.end()] if s.kind == "R"]


def _check_bounds(state: State) -> None:
    """Raise NotUnderstood where no row can be in all the bounds of a column: "before 1945 and after 1955"."""
    above: dict[Term, float] = {}
    below: dict[Term, float] = {}
    for test in state.frame.tests:
        bound = _BOUND.fullmatch(test.template)
        if bound is not None:
            sides = above if bound[1].startswith(">") else below
            sides[test.term] = float(bound[2])
    for term in above.keys() & below.keys():
        if above[term] >= below[term]:
            raise NotUnderstood("whether one row is to be both above and below")


def _check_how(state: State) -> None:
    """Raise NotUnderstood where "how tall" is asked of no row, or beside other numbers."""
    if not any(span.said == HOW and span.kind == "C" for span in state.spans):
        return
    left = [s for s, kind in zip(state.spans, state.kinds, strict=True) if kind == "C" and s.said != HOW]
    if left or not (_asks_of_one(state) or state.aggregates or state.superlative):
        raise NotUnderstood("of what it is asked how much")


def _asked_by_who(state: State) -> list[Place]:
    """Return the column of those who did what a verb says: the director of "who directed Alien"."""
    kinds = "".join(span.kind for span in state.spans)
    if state.spans[0].data not in ("who", "whom") or not kinds.startswith(("wr", "wv")) or state.superlative:
        return []
    agents = state.vocabulary.agents(str(state.said[1])) if kinds.startswith("wr") else []
    near = [place for place in agents if not state.names or place.relation.name in state.names]
    near = near or _doers(state)
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


def _asked_by_wh(state: State) -> list[Place]:
    """Return the column that "where" or "when" asks for at the beginning of a question."""
    first = state.spans[0].data if state.spans and state.spans[0].kind == "w" else ""
    if first not in ("where", "when"):
        return []
    near = [p for r in state.mentioned for p in state.vocabulary.index.places[r.name]]
    fit = [p for p in near if p.kind == "date"] if first == "when" else [p for p in near if "city" in p.roles]
    if len(fit) != 1:
        raise NotUnderstood(f"which column says {first}")
    return fit


def _values(state: State, spans: Sequence[Span]) -> None:
    """Make conditions of values: several of one column are alternatives."""
    by_column: dict[tuple[str, str], tuple[Place, list[str]]] = {}
    for span in spans:
        place, value = state.meaning(span)
        if place.column.array:
            state.frame.tests.append(Test(Term("", place), f"{sql.text(value)} = ANY({{}})"))
            continue
        if state.vocabulary.is_list(place):
            (state.frame.share if state.frame.share else state.frame.tests).append(
                Test(Term("", place), list_test(value))
            )
            continue
        by_column.setdefault((place.relation.name, place.column.name), (place, []))[1].append(value)
    for place, values in by_column.values():
        if len(values) > 1 and "|" not in state.kinds and _are_all_wanted(state, place, values):
            continue
        spelled = [sql.text(value) for value in values]
        template = f"{{}} = {spelled[0]}" if len(spelled) == 1 else f"{{}} IN ({', '.join(spelled)})"
        (state.frame.share if state.frame.share else state.frame.tests).append(Test(Term("", place), template))
    if state.frame.share:
        state.frame.share = [test for test in state.frame.share if test.term.place is not None]
        if len(state.frame.share) != 1:
            raise NotUnderstood("of what the share is meant")


def _are_all_wanted(state: State, place: Place, values: Sequence[str]) -> bool:
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


def _outputs(state: State, columns: list[Place]) -> None:
    frame = state.frame
    if state.counts or (frame.groups and not columns and not state.aggregates):
        _check_named_alike(state)
    if frame.share:
        _check_share(state, columns)
        return
    if state.each is not None:
        columns = _by_each(state, columns)
    if state.superlative is not None:
        _ranked_outputs(state, columns)
        return
    if state.counts:
        columns = _counted(state, columns)
    frame.wanted += [Term(function, place) for function, place in state.aggregates]
    if frame.wanted:
        if columns and not (frame.groups or frame.having or _listed_beside(state)):
            raise NotUnderstood("what the other columns are of")
        frame.groups += [Term("", place) for place in columns]
        return
    if frame.having:
        frame.groups += [Term("", place) for place in columns or state.ranked_names()]
        return
    if frame.groups and columns and all(p.kind == "number" and not p.identifier for p in columns):
        if not all(map(state.adds_up, columns)):
            raise NotUnderstood("how the numbers of a group are put together")
        frame.wanted += [Term("SUM", place) for place in columns]
        return
    _rows(state, columns)


def _check_share(state: State, columns: Sequence[Place]) -> None:
    frame = state.frame
    alone = not frame.nouns and bool(frame.tests)  # "share of chipped dogs": of dogs, or of what is chipped
    if columns or frame.groups or state.superlative or state.counts or state.aggregates or alone:
        raise NotUnderstood("a share of more than rows")
    if len({place.relation.name for place in frame.places} | {r.name for r in frame.nouns}) > 1:
        raise NotUnderstood("of the rows of which table a share is asked for")


def _counted(state: State, columns: list[Place]) -> list[Place]:
    """Ask for a number of rows or of values; give the columns that are left to be shown."""
    frame, counted = state.frame, state.counted_relation
    place = state.counted.data[0] if state.counted is not None else None
    frame.wanted.append(Term("COUNT DISTINCT" if place is not None else "COUNT", place))
    frame.distinct = False
    if not columns or frame.groups:
        return columns
    beside = counted is not None and _listed_beside(state) and all(p.relation != counted for p in columns)
    if not beside or state.aggregates or not state.tells_rows(columns[0]):
        raise NotUnderstood("what is counted")
    frame.groups += [Term("", p) for p in columns]  # "names of teachers and the number of their courses"
    return []


def _check_named_alike(state: State) -> None:
    """Raise NotUnderstood where what is counted is called as its rows are and as a number of theirs is: "sales"."""
    for relation in {r.name: r for r in state.frame.nouns}.values():
        own = relation_stems(relation)
        if any(p.kind == "number" and p.stems == own for p in state.vocabulary.index.places[relation.name]):
            raise NotUnderstood(f"whether rows of {relation.name} or its numbers are meant")


def _by_each(state: State, columns: list[Place]) -> list[Place]:
    """Group by the rows of a relation, "by team"; give the columns that are left to be shown."""
    assert state.each is not None
    frame = state.frame
    measured = [p for _, p in state.aggregates] or [p for p in columns if p.kind == "number"]
    own = bool(measured) and all(p.relation == state.each for p in measured)
    by = any(span.kind == "B" and span.data == "by" for span in state.spans)
    if by and state.aggregates and own:
        raise NotUnderstood(f"of which rows of {state.each.name} the numbers are put together")
    if not own:
        frame.groups += [Term("", place) for place in state.names_of(state.each)]
        frame.groups = list(dict.fromkeys(frame.groups))
    return [place for place in columns if Term("", place) not in frame.groups]


def _listed_beside(state: State) -> bool:
    """Return whether a column stands in a list with an aggregate: "each city and the number of its shops"."""
    kinds = "".join(span.kind for span in state.spans)
    return bool(re.search(r"C[wRE]*&[wU]*[HA]|[HA][wURC]*&[w]*C", kinds))


def _is_predicate(state: State) -> bool:
    """Return whether a column is told of rows: "which products are discontinued"."""
    row = [(span.kind, span.data) for span in state.spans]
    return any(
        kind == "R"
        and row[i + 1] in (("w", "are"), ("w", "is"), ("w", "was"), ("w", "were"))
        and "C" in dict(row[i + 2 :])
        for i, (kind, _) in enumerate(row[:-2])
    )


def _rows(state: State, columns: list[Place]) -> None:
    """Show rows: the columns asked for, or what names a row."""
    frame = state.frame
    if frame.groups and not columns and _begins_with_group(state):
        frame.wanted.append(Term("COUNT", None))  # "inspections per year"
        return
    if frame.groups:
        raise NotUnderstood("what is shown of each group")
    if columns and _is_predicate(state):
        raise NotUnderstood(f"what is asked of {columns[0].column.name}")
    if columns:
        _check_computed(state)
        facts_of = frame.nouns[:1] if frame.nouns and frame.nouns[0] not in {p.relation for p in columns} else []
        if (
            facts_of
            and facts_of[0].name in {group.hub.name for group in state.vocabulary.facts}
            and not _asks_of_one(state)
        ):
            columns = [*state.names_of(facts_of[0]), *columns]  # a fact without its thing says little
        frame.wanted += [Term("", place) for place in columns]
        alone = len(columns) == 1 and columns[0].kind == "text" and not frame.nouns and not columns[0].identifier
        if (
            alone
            and not state.tells_rows(columns[0])
            and any("<>" in t.template or "NOT" in t.template for t in frame.tests)
        ):
            raise NotUnderstood(f"whether all rows of each {columns[0].column.name} are meant")
        ordered = "E" in state.kinds
        if ordered and not frame.order:
            frame.order.append((Term("", columns[0]), state.descending()))
        frame.distinct = frame.distinct or (alone and not frame.order)
        return
    _named_rows(state)


def _named_rows(state: State) -> None:
    """Show the rows that a question is of, where it names no column of them."""
    frame = state.frame
    tested = {test.term.place.relation.name: test.term.place.relation for test in frame.tests if test.term.place}
    opening = str(state.spans[0].data) if state.spans[0].kind == "w" else ""
    only_named = sum(span.kind != "w" for span in state.spans) == 1 and _asks_of_one(state)  # "what is Lima?"
    asks_else = (opening in _ASKING and not only_named) or any(span.kind in "rv" for span in state.spans)
    if not frame.nouns and len(tested) == 1 and not asks_else:
        frame.nouns += tested.values()
    everything = any(
        span.data in ("all", "list", "show", "every", "display", "there") for span in state.spans if span.kind == "w"
    )
    if not frame.nouns or not (
        frame.tests or frame.absent or frame.members or (everything and len(set(state.names)) == 1)
    ):
        raise NotUnderstood("what is asked of the rows")
    asked = _leading(state)
    if len(asked) > 1:
        frame.wanted += [Term("", state.name_of([relation])) for relation in asked]
        return
    frame.wanted += _shown(state, frame.nouns[0])


def _begins_with_group(state: State) -> bool:
    """Return whether a question is of rows and groups alone: "orders per year"."""
    said = "".join(span.kind for span in state.spans if span.kind not in "w&")
    by = any(span.kind == "B" and span.data == "by" for span in state.spans)  # "cards by type" may be a list
    return bool(re.fullmatch(r"U?RB[CYR][VDB]*", said)) and not (by or state.frame.tests)


def _check_computed(state: State) -> None:
    """Raise NotUnderstood where an average may be the column's own or one of rows: "average temperature in May"."""
    left = zip(state.spans, state.kinds, strict=True)
    if any(span.kind == kind == "C" and span.said == COMPUTED for span, kind in left) and not _asks_of_one(state):
        raise NotUnderstood("whether the numbers of several rows are put together")


def _asks_of_one(state: State) -> bool:
    """Return whether a row is asked for by its name."""
    return bool(_named_by(state))


def _named_by(state: State) -> list[Place]:
    """Return the columns by which a row is asked for."""
    tested = [t.term.place for t in state.frame.tests if t.term.place is not None and t.template.startswith("{} = ")]
    return [place for place in tested if state.vocabulary.names_rows(place)]


def _shown(state: State, relation: Relation, first: Place | None = None) -> list[Term]:
    """Return what is shown of rows: their name and what was spoken of; every column where none is a name."""
    places = state.vocabulary.index.places[relation.name]
    named = state.vocabulary.whole_name(relation)
    if not named:
        return [Term("", place) for place in places if place.kind != "prose"]
    spoken = [test.term.place for test in state.frame.tests if test.term.place in places]
    mentioned = [*([first] if first else []), *filter(None, spoken)]
    return [Term("", place) for place in dict.fromkeys([*named, *facts(places, mentioned)])]


def _sums_groups(state: State, texts: Sequence[Place], place: Place) -> bool:
    own = [text for text in texts if text.relation == place.relation]
    return bool(own) and not state.frame.nouns and not state.tells_rows(own[0]) and state.adds_up(place)


def _rank_groups(
    state: State, told: Superlative, function: str, kinds: Sequence[Place | None], numbers: Sequence[Place]
) -> None:
    """Rank groups by their number of rows, or by what their numbers come to."""
    frame = state.frame
    groups = [place for place in kinds if place is not None]
    named = [place for place in groups if state.tells_rows(place) or place.relation.key == (place.column.name,)]
    if told.counts and numbers and (not groups or named):
        groups, numbers = [*groups, *numbers], ()  # "the name and capacity of the stadium with the most concerts"
    groups = groups or (state.ranked_names() if len(frame.nouns) > 1 or told.common or function else [])
    if len(groups) > 1 and any(place.kind == "date" for place in groups):
        raise NotUnderstood("whether days are told apart")  # "which shop delivered most often"
    one_relation = len({place.relation.name for place in groups}) == 1
    if not one_relation or numbers or (state.aggregates and told.place is None):
        raise NotUnderstood("what is ranked")
    term = Term("COUNT", None) if told.place is None else Term(function, told.place)
    frame.groups, frame.wanted = [Term("", place) for place in groups], [term]
    frame.tests += [Test(Term("", place), "{} IS NOT NULL") for place in groups]
    frame.tests += [Test(Term("", place), "{} <> ''") for place in groups if "" in place.column.samples]
    frame.order, frame.limit = [(term, told.down)], told.amount or 1


def _is_extreme(state: State, told: Superlative) -> bool:
    """Return whether a superlative speaks of one number, whatever it is of: "the lowest price and its shop"; where
    a shop is asked for, its average may be meant, and where numbers make a sum, that.
    """
    said = "".join(span.kind for span in state.spans if span.kind not in "wU")
    extreme = any(
        span.kind == "S" and span.said.split()[-1:] and span.said.split()[-1] in _EXTREMES for span in state.spans
    )
    return told.place is not None and not state.adds_up(told.place) and said.startswith("SC&") and extreme


def _ranked_outputs(state: State, columns: list[Place]) -> None:
    frame, told = state.frame, state.superlative
    assert told is not None
    function = told.function or (state.aggregates[0][0] if state.aggregates else "")
    texts = [place for place in columns if place.kind in ("text", "date", "boolean") or place.identifier]
    if function and not texts and not frame.groups:
        texts = [place for place in columns[:1] if _opens(state, place)]  # "which year had the highest average score"
    frame.distinct = False
    if told.place is not None and told.amount is not None and not function and _sums_groups(state, texts, told.place):
        function = "SUM"  # "top 5 cities by profit": no single row is a city
    if told.common or told.counts or function:
        numbers = [place for place in columns if place not in texts]
        _rank_groups(state, told, function, [*(term.place for term in frame.groups), *texts], numbers)
        return
    _rank_rows(state, told, columns, texts)


def _rank_rows(state: State, told: Superlative, columns: Sequence[Place], texts: Sequence[Place]) -> None:
    """Rank single rows by a column; where no row is asked for, give the extreme itself."""
    frame = state.frame
    if told.place is None or state.counts or state.aggregates or frame.groups or frame.having:
        raise NotUnderstood("what is ranked")
    if _asks_of_one(state) and {told.place.relation} == {p.relation for p in _named_by(state)}:
        raise NotUnderstood("what is ranked of one row")  # "when was Mia last here"
    own = [place for place in texts if not frame.nouns and not state.tells_rows(place)]
    if own and not _is_extreme(state, told):
        raise NotUnderstood(f"whether single rows or each {own[0].column.name} is ranked")
    if told.adjective and not frame.nouns:
        frame.nouns.append(told.place.relation)
    if not frame.nouns and not columns and told.amount is None:
        frame.wanted = [Term("MAX" if told.down else "MIN", told.place)]
        return
    shown = [Term("", place) for place in columns]
    shown = shown or (_shown(state, frame.nouns[0], told.place) if frame.nouns else [])
    frame.wanted = list(dict.fromkeys([*shown, Term("", told.place)]))
    frame.tests.append(Test(Term("", told.place), "{} IS NOT NULL"))
    frame.order, frame.limit = [(Term("", told.place), told.down)], told.amount or 1
