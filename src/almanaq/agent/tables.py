"""Chooses the relations that a question is about, where a source has more than fit a prompt."""

from __future__ import annotations

from collections.abc import Callable
from math import log

from almanaq.agent.local.lexicon import IGNORED
from almanaq.agent.local.words import identifier_stems, split, stems
from almanaq.suql.catalog.relations import Catalog, Relation

ChooseTables = Callable[[str, Catalog], tuple[str, ...]]
"""(question, catalog) → names of relations, the most relevant first; () when none fits."""

MOST_TABLES = 12


def choose_tables(question: str, catalog: Catalog) -> tuple[str, ...]:
    """Give the relations that share words with the question, the best first; rare words weigh more.

    Names, columns, values, samples and descriptions count. Relations that a chosen one refers to come along, so that
    joins can be written.
    """
    asked = {w.stem for w in split(question) if w.folded not in IGNORED and w.text[0].isalnum()}
    bags = {r.name: _weights(r) for r in catalog.relations}
    spread = {word: sum(word in bag for bag in bags.values()) for word in asked}
    scores = {
        name: sum(bag[word] * log(1 + len(bags) / spread[word]) for word in asked if word in bag)
        for name, bag in bags.items()
    }
    ranked = sorted((name for name in scores if scores[name] > 0), key=lambda name: -scores[name])
    return _with_partners(ranked, catalog)


def _with_partners(ranked: list[str], catalog: Catalog) -> tuple[str, ...]:
    chosen: dict[str, None] = {}
    for name in ranked:
        partners = [other for _, other, _ in catalog.relation(name).foreign_keys if catalog.find(other)]
        for each in (name, *partners):
            if len(chosen) < MOST_TABLES:
                chosen.setdefault(each)
    return tuple(chosen)


def _weights(relation: Relation) -> dict[str, float]:
    """Give the words of a relation: its name weighs most, then columns, then values and descriptions."""
    found: dict[str, float] = {}

    def add(parts: tuple[str, ...], weight: float) -> None:
        for part in parts:
            found[part] = max(found.get(part, 0.0), weight)

    add(stems(relation.description), 1.0)
    for part in relation.location[:-1]:
        add(identifier_stems(part), 1.5)
    for column in relation.columns:
        for value in (*column.values, *column.samples):
            add(stems(value), 1.0)
        add(stems(column.description), 1.0)
        add(identifier_stems(column.name), 1.5)
    add(identifier_stems(relation.name), 3.0)
    return found


def restrict(catalog: Catalog, names: tuple[str, ...]) -> Catalog:
    """Give a catalog of the named relations only, in the catalog's order."""
    return Catalog(tuple(r for r in catalog.relations if r.name in names))
