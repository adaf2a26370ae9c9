"""read: a question → the queries that it may mean, the likeliest first."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

from almanaq.agent.linking.columns import LinkedColumn
from almanaq.agent.linking.index import Named, ValueMeaning
from almanaq.agent.linking.link import Holding, Links
from almanaq.agent.linking.spans import Span
from almanaq.agent.local.choices import Choices
from almanaq.agent.local.compose import Composer
from almanaq.agent.local.draft import NotComposed
from almanaq.agent.local.search.wishes import is_searched, search_covers
from almanaq.agent.local.sentence import Sentence
from almanaq.agent.local.spec import QuerySpec, write_spec
from almanaq.agent.local.world import World
from almanaq.suql.catalog.relations import Relation

MOST_READINGS = 3
_MOST_MAINS, _MOST_BASES, _MOST_FLIPS = 4, 4, 12
_UNNAMED, _LED_TO = 0.7, 0.88
_MOST_SURE = 0.99
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
    """

    spec: QuerySpec
    suql: str
    probability: float
    unused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()


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
        for relation, likely in [(main, 1.0)] if main is not None else _mains(cover, world):
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
    return sorted(found.values(), key=lambda each: -each.probability)


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
    try:
        suql = write_spec(spec, world.graph, world.dialect)
    except KeyError:
        return
    probability = min(_MOST_SURE, math.exp(min(0.0, choices.log_probability + log_prior)))
    known = found.get(suql)
    if known is None or known.probability < probability:
        sentence = composer.sentence
        unused = tuple(sentence.links.text(span) for span in sentence.unused())
        found[suql] = Reading(spec, suql, probability, unused, tuple(_notes(sentence)), tuple(choices.reasons))


def _notes(sentence: Sentence) -> Iterator[str]:
    for item in sentence.items:
        if item.how.startswith("misspelt:"):
            yield f"I took “{sentence.links.text(item)}” for “{item.how.removeprefix('misspelt:')}”."


def _mains(cover: Sequence[Span], world: World) -> list[tuple[Relation, float]]:
    """Return the relations that a question may be about, each with how likely that is by its nouns alone."""
    named = [relation for span in cover if span.kind == "table" for relation in span.meanings]
    held: list[Relation] = [column.relation for span in cover for column in _columns(span)]
    for span in cover:
        measured = getattr(span.meanings[0], "measured", None) if span.meanings else None
        if measured is not None:
            held += [column.relation for column, _ in world.index.measured_by(measured, world.index.columns)[:3]]
    candidates = list({relation.name: relation for relation in (*named, *held)}.values())
    if not candidates and len(world.catalog.relations) == 1:
        candidates = list(world.catalog.relations)
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
        scored.append((explained, relation))
    scored.sort(key=lambda each: -each[0])
    return [(relation, _likely(relation, named, world)) for _, relation in scored[:_MOST_MAINS]]


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
