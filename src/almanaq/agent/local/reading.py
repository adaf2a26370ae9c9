"""read: a question → the queries that it may mean, the likeliest first."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from sqlglot import exp

from almanaq.agent.linking.columns import LinkedColumn
from almanaq.agent.linking.index import Named, ValueMeaning
from almanaq.agent.linking.joins import key_of
from almanaq.agent.linking.link import Holding, Links
from almanaq.agent.linking.spans import Span
from almanaq.agent.linking.words import is_verb_form
from almanaq.agent.local.compose import Composer
from almanaq.agent.local.draft import NotComposed
from almanaq.agent.local.sentence import Choices, Sentence
from almanaq.agent.local.spec import JOINS, QuerySpec, plain, write_spec
from almanaq.agent.local.texts import is_searched, search_covers
from almanaq.agent.local.world import World
from almanaq.errors import AlmanaqError
from almanaq.suql.catalog.relations import Relation
from almanaq.suql.text_functions import has_text

Columns = tuple[tuple[str, ...], ...]
"""The values of each column of a result, sorted."""
Found = tuple[Columns, Columns]
"""The columns that a reading shows, and those of its rows that it does not show but could: their keys."""
MOST_READINGS = 3
_MOST_MAINS, _MOST_BASES, _MOST_FLIPS = 4, 4, 12
_UNNAMED, _LED_TO = 0.7, 0.88
_MOST_SURE = 0.99
_MOST_TIED, _MOST_PLACES = 200, 20
"""Rows that rank equally and are shown, and such that are searched for: nobody reads on in a longer list of places."""
_CLEAR, _HOPELESS = 0.8, 0.3
"""Probabilities from which, and below which, readings are not run to see whether they give the same rows."""
_REPEATED = 0.1
"""How much less a reading is worth offering that gives the rows of a likelier one."""
_MOST_WEIGHED, _MOST_COMPARED, _MOST_SHOWN, _NOTHING_FOUND = 5, 1000, 6, 0.7
MARKED = {
    "several conditions": 0.8,
    "a subquery, or a condition on groups": 0.8,
    "several figures": 0.68,
    "kinds of rows": 0.68,
    "a column by part of its name, or by another word": 0.68,
}
"""What each mark of wrong queries leaves of all probabilities: with 0.68, an answer must have had 0.96 without it."""
_WORTH = 0.08
"""Share of the likeliest option that another has at least, to be tried."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A query that a question may mean.

    Attributes:
        probability: how surely it is what was asked.
        unused: the words of the question that it leaves out.
        notes: for what unusual words were taken, in sentences.
        reasons: what was not sure.
        certainty: the same as `probability`, as if no other choice could have been made on the way.
        loose: a column is found by another word for it, or by a part of several names.
    """

    spec: QuerySpec
    suql: str
    probability: float
    unused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    certainty: float = 1.0
    loose: bool = False


def read(question: str, world: World, *, main: Relation | None = None, partial: bool = False) -> list[Reading]:
    """Return the readings of a question, the likeliest first, each query once.

    Args:
        main: the relation whose rows it goes on about; any where None.
        partial: it goes on from another question, and need not say what is asked for.
    """
    links = world.link(question)
    if not links.covers:
        return []
    bases = []
    best_cover = sum(span.score for span in links.covers[0])
    searched = [r for r in world.catalog.relations if is_searched(world, r)]
    covers = [*links.covers, *(search_covers(links, world) if searched else ())]
    for n, cover in enumerate(covers):
        search = n >= len(links.covers)
        prior = 0.0 if search else sum(span.score for span in cover) - best_cover
        for relation, likely in [(main, 1.0)] if main is not None else _mains(links, cover, world):
            if is_searched(world, relation) is not search:
                continue
            made = _compose(links, cover, world, relation, {}, partial=partial)
            if made is not None:
                log_prior = prior + math.log(likely)
                bases.append((made[1].log_probability + log_prior, log_prior, cover, relation, made))
    bases.sort(key=lambda each: -each[0])
    found: dict[str, Reading] = {}
    for _, log_prior, cover, relation, (composer, choices, spec) in bases[:_MOST_BASES]:
        _add(found, composer, choices, spec, log_prior, world)
        for forced in _flips(choices):
            made = _compose(links, cover, world, relation, forced, partial=partial)
            if made is not None:
                _add(found, *made, log_prior, world)
    ranked = sorted(found.values(), key=lambda each: -each.probability)
    if partial or not ranked:
        return ranked
    weighed = sorted(_weigh_together(ranked, world), key=lambda each: -each.probability)
    if is_searched(world, world.catalog.relation(weighed[0].spec.rows)):
        return weighed
    doubt = math.prod(MARKED[mark] for mark in find_marks(weighed[0]))
    return [replace(each, probability=each.probability * doubt) for each in weighed]


def find_marks(reading: Reading) -> list[str]:
    """Return the marks of wrong queries that a reading has; experiments/strangers/marks.py counts each."""
    spec = reading.spec
    has = (
        len(spec.tests) > 1,
        bool(spec.having) or any(each.find(exp.Select) for each in spec.expressions() if JOINS not in each.meta),
        len(spec.measures) > 1,
        spec.distinct,
        reading.loose,
    )
    return [mark for mark, found in zip(MARKED, has, strict=True) if found]


def _weigh_together(ranked: Sequence[Reading], world: World) -> list[Reading]:
    """Return readings with probabilities that heed each other: those that give the same rows share what they have."""
    worth = [each for each in ranked[:_MOST_WEIGHED] if not each.unused and each.probability >= _WORTH]
    if len(worth) < 2:
        return [*ranked]
    weighed = _weights(worth, [None] * len(worth))
    if weighed[worth[0].suql] < _CLEAR and max(each.certainty for each in worth) >= _HOPELESS:
        weighed = _weights(worth, [_columns_found(each, world) for each in worth])
    return [replace(each, probability=weighed.get(each.suql, each.probability)) for each in ranked]


def _weights(worth: Sequence[Reading], rows: Sequence[Found | None]) -> dict[str, float]:
    """Return the probability of each query beside the others, by what each gives where that is known.

    Readings that say the same in other words stand behind the likeliest of them, which has what all of them have.
    """
    groups: list[list[int]] = []
    for i, reading in enumerate(worth):
        alike = (g for g in groups if _same_rows(rows[i], rows[g[0]]) or _agree(reading, worth[g[0]]))
        found = next(alike, None)
        groups.append([i]) if found is None else found.append(i)
    for group in groups:  # of those that list the same rows, the one without joins goes before
        group.sort(key=lambda k: rows[k] is not None and not worth[k].spec.measures and " JOIN " in worth[k].suql)
    masses = []
    for group in groups:
        together = [worth[k] for k in group]
        mass = min(_MOST_SURE, _sum(together), max(each.certainty for each in together))
        masses.append(max(mass, *(each.probability for each in together)))
    weighed = {}
    for group, mass in zip(groups, masses, strict=True):
        others = [worth[g[0]] for g in groups if g is not group]
        against = sum(each.probability * min(1.0, each.probability / mass) for each in others)
        shared = mass / max(1.0, mass + against)
        for k in group:
            known = 1.0 if k == group[0] else _REPEATED if _same_rows(rows[k], rows[group[0]]) else 0.5
            nothing = _NOTHING_FOUND if rows[k] == ((), ()) and others and any(r and r[0] for r in rows) else 1.0
            weighed[worth[k].suql] = shared * known * nothing
    return weighed


def _sum(alike: Sequence[Reading]) -> float:
    """Return what readings that give the same rows have together; one from other rows by a join tells nothing more."""
    shares: dict[frozenset[exp.Expr], dict[str, float]] = {}
    for each in alike:
        of = shares.setdefault(each.spec.tests, {})
        of[each.spec.rows] = of.get(each.spec.rows, 0.0) + each.probability
    return sum(max(of.values()) for of in shares.values())


def _columns_found(reading: Reading, world: World) -> Found | None:
    """Return the values of each column that a reading gives, sorted; None where it was not run.

    Of one figure, itself and the rows that it is of: two figures may be equal by chance.
    """
    spec, figures = reading.spec, tuple[str, ...]()
    if world.run is None or any(map(has_text, spec.expressions())):
        return None
    try:
        if spec.measures and not spec.groups:
            figures = tuple(map(str, world.run(reading.suql)[0]))
            shown = tuple(plain(c) for c in world.columns(spec.rows) if c.kind != "prose")[:_MOST_SHOWN]
            spec = QuerySpec(spec.rows, shown, (), spec.conditions)
        if spec.having:  # what groups are counted for is not what they are
            spec = replace(spec, measures=())
        key = key_of(world.catalog.relation(spec.rows)) if spec.columns and not spec.distinct else None
        keys = tuple(plain(c) for c in world.columns(spec.rows) if c.name == key and plain(c) not in spec.columns)
        whole = replace(spec, columns=(*spec.columns, *keys), limit=spec.limit or _MOST_COMPARED)
        found = world.run(write_spec(whole, world.graph, world.dialect))
    except (AlmanaqError, KeyError):
        return None
    if not figures and all(row == found[0] for row in found):  # cells may be lists
        found = found[:1]  # one row over and over says no more than once
    columns = tuple((*figures, *sorted(map(str, column))) for column in zip(*found, strict=True))
    return columns[: len(columns) - len(keys)], columns[len(columns) - len(keys) :]


def _same_rows(one: Found | None, other: Found | None) -> bool:
    """Return whether the columns that one reading shows are among those of the rows of the other."""
    if not one or not other or not one[0] or not other[0]:
        return False
    ways = ((few, many) for few, many in ((one, other), (other, one)) if len(few[0]) <= len(many[0]))
    return any(all(column in (*many[0], *many[1]) for column in few[0]) for few, many in ways)


def _agree(one: Reading, other: Reading) -> bool:
    """Return whether two readings are about the same rows, and differ in what they show of these."""
    a, b = one.spec, other.spec
    if a.tests != b.tests or (a.limit, a.order, a.having) != (b.limit, b.order, b.having):
        return False
    return a.groups[-1:] == b.groups[-1:] and a.measures == b.measures


def with_ties(reading: Reading, world: World) -> Reading | None:
    """Return a reading that shows all that rank first where several do; None where these are too many, or before it."""
    spec = reading.spec
    first = spec.limit == 1 and spec.order
    if not first or world.run is None or any(map(has_text, spec.expressions())):
        return reading
    most = _MOST_PLACES if is_searched(world, world.catalog.relation(spec.rows)) else _MOST_TIED
    term = spec.order[0][0]
    place = spec.groups.index(term) if term in spec.groups else len(spec.groups)
    ranked = replace(
        spec, columns=() if spec.groups else (term,), measures=(term,) if spec.groups else (), distinct=False, offset=0
    )
    try:
        rows = world.run(write_spec(replace(ranked, limit=most + 1), world.graph, world.dialect))
    except AlmanaqError:
        return reading
    if spec.offset:  # "the second highest" is that of the rows, or of the values
        values = [row[place] for row in rows[: spec.offset + 2]]
        return reading if len({*values}) == len(values) else None
    tied = sum(1 for _ in takewhile(lambda row: row[place] is not None and row[place] == rows[0][place], rows))
    if tied < 2:
        return reading
    if tied > most:
        return None
    whole = replace(spec, limit=tied)
    suql = write_spec(whole, world.graph, world.dialect)
    return replace(
        reading, spec=whole, suql=suql, notes=(*reading.notes, f"{tied} rank equally, so all of them are shown.")
    )


def _compose(
    links: Links, cover: Sequence[Span], world: World, main: Relation, forced: dict[Hashable, int], *, partial: bool
) -> tuple[Composer, Choices, QuerySpec] | None:
    choices = Choices(forced)
    composer = Composer(Sentence(links, cover), world, main, choices, partial=partial)
    try:
        return composer, choices, composer.compose()
    except NotComposed:
        return None


def _flips(choices: Choices) -> Iterator[dict[Hashable, int]]:
    """Yield the other ways to decide one choice, the likeliest first."""
    options = [
        (shares[place] / shares[0], key, place)
        for key, shares in choices.made.items()
        for place in range(1, len(shares))
        if shares[place] >= _WORTH * shares[0]
    ]
    options.sort(key=lambda each: -each[0])
    for _, key, place in options[:_MOST_FLIPS]:
        yield {key: place}


def _add(
    found: dict[str, Reading], composer: Composer, choices: Choices, spec: QuerySpec, log_prior: float, world: World
) -> None:
    if spec.gives_figures and any(e not in spec.groups and e.find(exp.AggFunc) is None for e, _ in spec.order):
        return  # a group has several of what it would be ordered by
    try:
        suql = write_spec(spec, world.graph, world.dialect)
    except KeyError:
        return
    probability = min(_MOST_SURE, math.exp(min(0.0, choices.log_probability + log_prior)))
    certainty = min(_MOST_SURE, math.exp(min(0.0, choices.log_certainty + log_prior)))
    known = found.get(suql)
    if known is None or known.probability < probability:
        sentence = composer.sentence
        unused = tuple(sentence.links.text(span) for span in sentence.unused())
        spelled = [(sentence.links.text(i), i.how.removeprefix("misspelt:")) for i in sentence.items if ":" in i.how]
        notes = tuple(f"I took “{said}” for “{meant}”." for said, meant in spelled)
        said = [t for t in composer.conditions.tests if sentence.items[t.place].kind in ("period", "number", "compare")]
        dated = [t.column for t in said if t.column.kind == "date" or "year" in t.column.words]
        valued = [t.column for t in composer.conditions.tests if sentence.items[t.place].kind == "value"]
        told = [c for c in valued if c.relation is not composer.main]  # "published by Nordvik", of publishers
        named = (
            item
            for k, item in enumerate(sentence.items)  # a year tells, too, that "discovered" means the year of discovery
            if item.kind == "column"
            and not any(sentence.asks_for(k, c) or any(c is each for each in dated) for c in _columns(item))
            and not (item.how == "root" and any(c is each for c in _columns(item) for each in told))
        )
        loose = any(s.how in ("synonym", "root") or (s.how == "part" and bool(s.meanings[1:])) for s in named)
        found[suql] = Reading(spec, suql, probability, unused, notes, tuple(choices.reasons), certainty, loose)


def _mains(links: Links, cover: Sequence[Span], world: World) -> list[tuple[Relation, float]]:
    """Return the relations that a question may be about, each with how likely that is by its nouns alone."""
    named = [relation for span in cover if span.kind == "table" for relation in span.meanings]
    nouns = {(span.first, span.last) for span in cover if span.kind == "column"}
    called = [s for s in links.spans if s.kind == "table" and not s.how and (s.first, s.last) in nouns]
    meant = [relation for span in called for relation in span.meanings]
    held: list[Relation] = [column.relation for span in cover for column in _columns(span)]
    for span in cover:
        measured = getattr(span.meanings[0], "measured", None) if span.meanings else None
        if measured is not None:
            held += [column.relation for column, _ in world.index.measured_by(measured, world.index.columns)[:3]]
    defined = [term for span in cover if span.kind == "term" for term in span.meanings]
    held += [relation for term in defined if (relation := world.catalog.find(term.relation)) is not None]
    candidates = list({relation.name: relation for relation in (*named, *held)}.values())
    if not candidates and len(world.catalog.relations) == 1:
        candidates = list(world.catalog.relations)
    unsaid = (links.tokens[span.first].folded for span in cover if span.kind in ("silent", "unknown"))
    counts = any(map(is_verb_form, unsaid)) and any(span.kind == "count" for span in cover)  # "how many were recorded"
    if not named and len({relation.name for relation in held}) == 1 and counts:
        candidates += (r for r in world.details_of(held[0]) if len(world.graph.ways(r.name)[held[0].name]) == 1)
    ranks = {r.name for r in named} if any(span.kind == "superlative" for span in cover) else {*()}
    ties = (r for r in world.catalog.relations if sum(world.is_single(r.name, each) for each in ranks - {r.name}) > 1)
    candidates += [r for r in ties if r not in candidates]  # loans, for the reader with the most books
    scored = []
    for relation in candidates:
        explained = sum(
            max((world.reach(relation.name, column) for column in _columns(span)), default=0.0)
            for span in cover
            if span.kind in ("column", "value", "hold")
        )
        explained += sum(
            bool(world.index.measured_by(span.meanings[0].measured, [relation.name]))
            for span in cover
            if span.kind in ("superlative", "compare") and span.meanings[0].measured
        )
        explained += sum(1.0 for span in cover if span.kind == "table" and relation in span.meanings)
        explained += sum(2.0 for term in defined if term.kind == "metric" and term.relation == relation.name)
        scored.append((explained, relation))
    scored.sort(key=lambda each: -each[0])
    found = []
    for _, relation in scored[:_MOST_MAINS]:
        own = sum(any(column.relation is relation for column in _columns(span)) for span in cover)
        # "companies" means these rows rather than a column of `listings`, where nothing else is of `listings`.
        others = bool(meant) and not named and relation not in meant and own < 2
        found.append((relation, _UNNAMED if others else _likely(relation, named, world)))
    return found


def _likely(relation: Relation, named: Sequence[Relation], world: World) -> float:
    """Return how likely rows are asked about that no noun names: less so where they lead to none of these."""
    if not named or relation in named:
        return 1.0
    return _LED_TO if any(world.is_single(relation.name, other.name) for other in named) else _UNNAMED


def _columns(span: Span) -> Iterator[LinkedColumn]:
    for meaning in span.meanings:
        if isinstance(meaning, Named) and isinstance(meaning.thing, LinkedColumn):
            yield meaning.thing
        elif isinstance(meaning, ValueMeaning):
            yield meaning.column
        elif isinstance(meaning, Holding):
            yield from (each.thing for each in meaning.columns if isinstance(each.thing, LinkedColumn))
