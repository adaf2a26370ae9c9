"""Constructions of what a column holds or lacks: values and their columns, yes and no, what is missing or denied."""

from __future__ import annotations

import re
from dataclasses import replace

from almanaq.agent.local_old import sql
from almanaq.agent.local_old.compose.refusal import NotUnderstood
from almanaq.agent.local_old.compose.state import State
from almanaq.agent.local_old.frame import Member, Term, Test
from almanaq.agent.local_old.recognize.called import HEADED, OWN
from almanaq.agent.local_old.recognize.names import is_verb
from almanaq.agent.local_old.recognize.spans import Span, is_deed
from almanaq.agent.local_old.recognize.vocabulary import is_year
from almanaq.agent.local_old.recognize.words import words
from almanaq.agent.local_old.schema_index import Place
from almanaq.agent.local_old.words import roots

_HAVING, _ANY = {"have", "has", "had", "having", "with", "that", "who", "which"}, {"a", "an", "any"}
_THERE = ("placed", "made", "recorded", "taken", "listed", "issued", "filed", "conducted")
"""Verbs that say of rows only that there are some."""
_OF_SOME = {"for", "with", "that", "where", "are", "is", "were", "among", "which"}
"""Words after groups that go on with a condition."""


def said_of(state: State, match: re.Match[str], a: Span) -> bool:
    """ "Convicted of murder": a date is named by a verb, of which a value tells more."""
    place, between = a.data[0][0], str(state.spans[match.end() - 1].data)
    counted = "H" in state.kinds or "A" in state.kinds or "P" in state.kinds
    told = place.stems[-1].endswith("ed") and (place.kind == "date" or is_year(place))
    return told and counted and between in ("of", "for") and state.use(match)


def missing(state: State, match: re.Match[str], a: Span | None, b: Span | None) -> bool:
    """ "Of unknown age", "whose age is missing"."""
    named = a or b
    assert named is not None
    place = state.place(named)
    if not _without_fact(state, place):
        written = state.vocabulary.written_missing(place)
        state.test(place, f"({{}} IS NULL OR {{}} = {sql.text(written)})" if written else "{} IS NULL")
    return state.use(match)


def none_of(state: State, match: re.Match[str], x: Span, a: Span) -> bool:
    """ "No discount": 0 of a number that is always there, nothing where it may be missing."""
    place, between = state.place(a), {span.data for span in state.spans[match.start() + 1 : match.end() - 1]}
    lacking = x.data in ("don't", "doesn't", "didn't", "do not", "does not", "did not") and "have" in between
    absent = x.data in ("no", "without", "out of") or "any" in between or lacking
    if not absent or place.kind == "prose" or not between <= {"", "a", "an", "any", "the", *(("have",) * lacking)}:
        return False
    if place.kind == "boolean":
        return affirmed(state, match, x, a)
    denying = state.vocabulary.written_no(place)
    if denying is not None:
        state.test(place, "{} = " + sql.text(denying))
    elif not _without_fact(state, place):
        noughts = any(re.fullmatch(r"0(\.0+)?", sample) for sample in place.column.samples)
        if place.kind == "number" and not noughts and state.vocabulary.partners.has_none_and_nothing(place):
            raise NotUnderstood(f"whether {place.column.name} is 0 or missing")
        of_number = "{} = 0" if noughts else "({} IS NULL OR {} = 0)"
        state.test(place, of_number if place.kind == "number" else "{} IS NULL")
    return state.use(match)


def _without_fact(state: State, place: Place) -> bool:
    """Ask for things of which another relation holds none: "cities with no river", "stars without a name"."""
    hubs, subject = {group.hub.name for group in state.vocabulary.facts}, state.subject()
    fact = place.relation.name not in hubs and place.relation.name in state.vocabulary.of_facts(hubs)
    several = subject not in (None, place.relation) and not state.is_single(subject, place.relation)
    if not fact and not several:
        return False
    state.frame.members.append(Member(place.relation, (Test(Term("", place), "{} IS NOT NULL"),), False))
    return True


def beside_denied(state: State, match: re.Match[str], b: Span, v: Span) -> bool:
    """A column before what it is not: "whose position is not goalkeeper"."""
    return any(m[0] is place for m in v.data for place, _ in b.data) and state.use(match, "b")


def denied(state: State, match: re.Match[str], v: Span, a: Span | None = None, c: Span | None = None) -> bool:
    """ "Not in Paris", "not in the city Paris", "excluding the Open division"."""
    if c is not None and any(m[0] is place for m in v.data for place, _ in c.data):
        state.silence(match.start("c"), match.end("c"))
    if a is not None and not of_column(state, match, a, v):
        return False
    place, spelled = state.meaning(v)
    listed = state.vocabulary.is_list(place)
    other = state.spans[match.start("not")].data == "other than"
    rows = state.subject() or place.relation
    if not state.is_single(rows, place.relation):
        if v.data[0][0].column.array or listed or other or _goes_further(state, match, place):
            raise NotUnderstood(f"whether one row of {place.relation.name} or all of them are meant")
        same = Test(Term("", place), sql.is_one_of(state.vocabulary.spellings(place, spelled)))
        state.frame.members.append(Member(place.relation, (same,), False))
        after = re.match("w{0,1}R", "".join(state.kinds[match.end() :]))
        if after is not None and place.relation in state.spans[match.end() + after.end() - 1].data:
            state.silence(match.end(), match.end() + after.end())  # "never returned an order", "no returned orders"
    elif listed:
        state.test(place, f"NOT {state.vocabulary.holds_item(place, spelled)}")
    elif place.column.array:
        state.test(place, f"NOT {sql.text(spelled)} = ANY({{}})")
    else:
        each = [sql.text(spelling) for spelling in state.vocabulary.spellings(place, spelled)]
        state.test(place, f"{{}} <> {each[0]}" if len(each) == 1 else f"{{}} NOT IN ({', '.join(each)})")
    return state.use(match, "not", "v")


def _goes_further(state: State, match: re.Match[str], place: Place) -> bool:
    """Return whether a negation may be of two values together, "no seals and otters", or of a row that is there: "keep
    an animal that is not a seal".
    """
    more = re.match("w?(?P<and>[&|])w*V", "".join(state.kinds[match.end() :]))
    also = more is not None and state.spans[match.end() + more.start("and")].data not in ("but", ", but")
    before = [span for span in state.spans[: match.start("not")] if span.kind != "w"][-1:]
    own = [span for span in before if span.kind == "R" and place.relation in span.data]
    return also or any(place.relation != state.subject() for _ in own)


def affirmed(state: State, match: re.Match[str], x: Span | None, a: Span) -> bool:
    """A column that holds yes or no: "did not complete the clutch"."""
    if not any(place.kind == "boolean" for place, _ in a.data):
        return False
    place = state.place(a)
    listed = re.search(r"B[wCRY&]*?(?P<last>w*)$", "".join(state.kinds[: match.start("a")]))  # "by species and chipped"
    said = {str(span.data) for span in state.spans[slice(*listed.span("last"))]} if listed else set()
    if place.kind != "boolean" or (listed and not said & _OF_SOME):
        return False
    if a.data[0][1] < HEADED:
        raise NotUnderstood(f"whether {place.column.name} is meant")  # "subjects", of subject_injury
    beside = [span for span in state.spans if span.kind == "C" and span.first == a.last]
    if beside and a.data[0][1] < OWN:
        raise NotUnderstood(f"whether {place.column.name} is meant")  # "car parking", of car rental
    state.test(place, _forms(place)[x is not None])
    return state.use(match)


def _forms(place: Place) -> tuple[str, str]:
    """Return the conditions that a column says yes, and that it says no."""
    if place.affirms == "1":
        return "{} = 1", "{} = 0"
    if place.affirms is not None:
        denied = f"{{}} <> {sql.text(place.affirms)}" if place.denies else "{} IS NULL"
        return f"{{}} = {sql.text(place.affirms)}", denied
    return "{} IS TRUE", "{} IS FALSE"


def having(state: State, match: re.Match[str], r: Span, a: Span) -> bool:
    """ "Patients that have a date of death": of a column in which some have nothing."""
    between = {str(span.data) for span in state.spans[match.start() + 1 : match.end("a") - 1]}
    place = state.place(a)
    asked = between <= _HAVING | _ANY and between & _HAVING and between & _ANY
    finds = state.vocabulary.index.finds
    if _has_some(state, match, place, between) and place.relation in r.data:
        state.test(place, "{} > 0")
        return state.use(match, "a")
    held = place.kind in ("text", "date") or (place.kind == "number" and not state.vocabulary.counts_things(place))
    if not asked or place.relation not in r.data or not held or finds is None:
        return False
    column = sql.column(place, False)
    blank = f" OR {column} = ''" if state.vocabulary.index.has_blank(place) else ""
    if not finds(f"SELECT 1 FROM {sql.name(place.relation.name)} WHERE {column} IS NULL{blank} LIMIT 1"):
        return False
    state.test(place, "({} IS NOT NULL AND {} <> '')" if blank else "{} IS NOT NULL")
    return state.use(match, "a")


def _has_some(state: State, match: re.Match[str], place: Place, between: set[str]) -> bool:
    """Return whether rows are meant that have things which a column counts: "planets that have moons"."""
    told = "H" in state.kinds or between & (_HAVING - {"with"})
    asked = between <= _HAVING | _ANY and between & _HAVING and told and not state.kinds[match.end() :].count("&")
    return bool(asked) and state.vocabulary.counts_things(place)


def absent(state: State, match: re.Match[str], r: Span) -> bool:
    """ "Stadiums without any concert"."""
    others = {p.relation for s in state.spans if s.kind == "C" for p, quality in s.data[:1] if quality == 1}
    verbs = [span for span in state.spans[slice(*match.span())] if span.kind == "v"]
    if any(str(span.data).casefold() not in words().linking for span in verbs):
        return False
    if len(r.data) != 1 or (state.kinds.count("R") < 2 and not others - {r.data[0]}):
        return False
    state.frame.absent.append(r.data[0])
    return state.use(match)


def never(state: State, match: re.Match[str], d: Span) -> bool:
    """ "Customers who never ordered": a verb that names rows, or a column of theirs, which are not to be there."""
    if d.kind == "r":
        named = [state.vocabulary.index.catalog.find(name) for name in d.data]
    else:
        named = [state.place(d).relation] if is_deed(d) else []
    subject, relation = state.subject(), named[0] if len(named) == 1 else None
    if relation is None or subject in (None, relation) or state.is_single(subject, relation):
        return False
    state.frame.absent.append(relation)
    return state.silence(*match.span())


def of_column(state: State, match: re.Match[str], a: Span, v: Span) -> bool:
    """A column beside a value of its own only says where the value stands: "Dream island", "city of Paris"."""
    return any(m[0] is place for m in v.data for place, _ in a.data) and state.use(match, "a")


def as_column(state: State, match: re.Match[str], a: Span, v: Span) -> bool:
    """ "CD or DVD as their format"; the words between have to say so."""
    between = state.spans[match.end("v") : match.start("a")]
    so = [span.kind for span in between if span.kind != "w"] == ["C"]  # "Dutch is an official language"
    return (so or "as" in [span.data for span in between]) and of_column(state, match, a, v)


def so_of_none(state: State, match: re.Match[str], v: Span, a: Span, b: Span | None) -> bool:
    """ "Where Dutch is not the official language": no row has both the value and a yes."""
    (place, spelled), so = state.meaning(v), state.place(a)
    subject = state.subject()
    beside = b is None or any(named is place for named, _ in b.data)
    if so.kind != "boolean" or so.relation != place.relation or not beside or state.vocabulary.is_list(place):
        return False
    if subject is None or state.is_single(subject, place.relation):
        return False
    same = Test(Term("", place), f"{{}} = {sql.text(spelled)}")
    state.frame.members.append(Member(place.relation, (same, Test(Term("", so), _forms(so)[0])), False))
    return state.silence(*match.span())


def told_by_verb(state: State, match: re.Match[str], v: Span) -> bool:
    """A verb beside a value tells in which column it stands: "directed by Ozu", "did Ozu direct", "rated PG-13"."""
    at = match.start("v")
    told = match.end() - 1 if match.start() == at else match.start()
    verb = state.spans[told]
    said = verb.said or str(verb.data)
    forms = {root for root in roots(said) if len(root) > 2} | words().verbs.get(said.casefold(), frozenset())
    meant = tuple(m for m in v.data if any(forms & roots(part) for part in m[0].stems))
    if not meant:
        return False
    state.spans[at] = replace(v, data=meant)
    if verb.kind == "r":
        state.kin = [names for names in state.kin if meant[0][0].relation.name not in names]
    return state.silence(min(told, at + 1), max(told + 1, at))


def linking(state: State, match: re.Match[str], v: Span) -> bool:
    """A verb that says only that rows of two relations belong together: "countries that speak Dutch", "how many models
    does each maker produce", "where Dutch is spoken".
    """
    at, kinds = match.start(), "".join(state.kinds)
    named = [i for i in range(at) if kinds[i] in "RCV"]
    after = re.match("w{0,3}(?=[RCV])", kinds[at + 1 :])
    ends = re.match("w*(?:$|[&F])", kinds[at + 1 :])
    pair = [*named[-1:], at + 1 + after.end()] if after else named[-2:] if ends else []
    if ends and str(v.data) in _THERE and [kinds[i] for i in named] == ["R"]:
        return state.silence(at, at + 1)  # "how many orders were placed"
    if str(v.data).casefold() not in words().linking or len(pair) < 2:
        return False
    one, other = (_holders(state, state.spans[i]) for i in pair)
    own = ends is not None and kinds[pair[1]] == "C" and "H" in kinds[: pair[0]]  # "does each company manage"
    return bool(one and other) and (own or not one & other) and state.silence(at, at + 1)


def _holders(state: State, span: Span) -> set[str]:
    """Return the relations of which a span may speak: of a column or value those that the question names, if any."""
    held = {relation.name for relation in span.data} if span.kind == "R" else {p[0].relation.name for p in span.data}
    return held & state.names or held


def silent(state: State, match: re.Match[str]) -> bool:
    """A verb before what is counted says only that there is some, "placed the most orders". In the present, before a
    value, it says more: "people work in Bern".
    """
    first = state.spans[match.start()]
    if first.kind == "v" and state.kinds[match.end() :][:3].count("V") and not is_verb(str(first.data)):
        return False
    return state.silence(*match.span())


def by_value(state: State, match: re.Match[str], b: Span) -> bool:
    """ "By Ozu" leaves it to the value in which column it stands; "for each of Bern and Basel" makes groups of two."""
    if {"each", "every"} & {*str(b.data).split()}:
        held = [state.meaning(state.spans[i])[0] for i in range(*match.span("values")) if state.kinds[i] == "V"]
        if len({*held}) != 1 or len(held) < 2:
            raise NotUnderstood("by what the rows are grouped")
        state.frame.groups.append(Term("", held[0]))
    return state.silence(*match.span())
