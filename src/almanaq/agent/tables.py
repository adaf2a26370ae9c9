"""Chooses the relations that a question is about, where a source has more than fit a prompt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from math import log

import sqlglot
from sqlglot import exp

from almanaq.agent.history import Turn
from almanaq.agent.local.lexicon import IGNORED
from almanaq.agent.local.words import identifier_stems, split, stems
from almanaq.suql.catalog.relations import Catalog, Relation

ChooseTables = Callable[[str, Catalog], tuple[str, ...]]
"""(question, catalog) → names of relations, the most relevant first; () when none fits."""

MOST_TABLES = 12


class WordChooser:
    """Gives the relations that share words with the question, the best first; rare words weigh more.

    Names, columns, values, samples and descriptions count. What it worked out of a catalog is kept until another comes.
    """

    def __init__(self) -> None:
        self._catalog: Catalog | None = None
        self._holders: dict[str, list[tuple[str, float]]] = {}

    def __call__(self, question: str, catalog: Catalog) -> tuple[str, ...]:
        if self._catalog is not catalog:
            self._catalog, self._holders = catalog, _holders(catalog)
        asked = {w.stem for w in split(question) if w.folded not in IGNORED and w.text[0].isalnum()}
        scores: Counter[str] = Counter()
        for word in asked:
            holders = self._holders.get(word, [])
            rarity = log(1 + len(catalog.relations) / len(holders)) if holders else 0.0
            for name, weight in holders:
                scores[name] += weight * rarity  # type: ignore[assignment]
        return tuple(name for name, _ in scores.most_common(MOST_TABLES))


def _holders(catalog: Catalog) -> dict[str, list[tuple[str, float]]]:
    """Give for each word the relations that hold it, with the word's weight in them."""
    found: dict[str, list[tuple[str, float]]] = {}
    for relation in catalog.relations:
        for word, weight in _weights(relation).items():
            found.setdefault(word, []).append((relation.name, weight))
    return found


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
        for value in (*column.values, *column.samples) if not column.private else ():
            add(stems(value), 1.0)
        add(stems(column.description), 1.0)
        add(identifier_stems(column.name), 1.5)
    add(identifier_stems(relation.name), 3.0)
    return found


def relevant(question: str, catalog: Catalog, history: Sequence[Turn], choose: ChooseTables) -> Catalog:
    """Give the relations that a turn may be about: those chosen for the question, and those that the last query read.

    With each chosen relation come those of its own database that it refers to, and where the source is several
    databases, the rest of the one that most of the chosen ones lie in: a join needs them. No relation when none fits.
    """
    last = next((t.suql for t in reversed(history) if t.suql), None)
    earlier = tuple(r.name for r in map(catalog.find, tables_of(last) if last else ()) if r is not None)
    chosen = choose(question, catalog)
    return restrict(catalog, _with_company(tuple(dict.fromkeys((*chosen, *earlier))), catalog))


def _with_company(names: Sequence[str], catalog: Catalog) -> tuple[str, ...]:
    relations = [catalog.relation(name) for name in names]
    homes: Counter[tuple[str, ...]] = Counter()
    for rank, relation in enumerate(relations, 1):
        homes[relation.location[:-1]] += 1 / rank  # type: ignore[assignment]
    kept: dict[str, None] = {}
    several = len({r.location[:-1] for r in catalog.relations}) > 1
    if several and homes:
        home = homes.most_common(1)[0][0]
        neighbours = [r.name for r in catalog.relations if r.location[:-1] == home]
        kept = dict.fromkeys([n for n in names if n in neighbours] + neighbours)
    for relation in relations:
        kept.setdefault(relation.name)
        for _, other, _ in relation.foreign_keys:
            if catalog.find(other):
                kept.setdefault(other)
    return tuple(kept)[:MOST_TABLES]


def restrict(catalog: Catalog, names: Sequence[str]) -> Catalog:
    """Give a catalog of the named relations only, in the catalog's order."""
    kept = set(names)
    return Catalog(tuple(r for r in catalog.relations if r.name in kept))


def tables_of(suql: str) -> tuple[str, ...]:
    """Give the names of the relations that a query reads, in the order of their first mention."""
    tree = sqlglot.parse_one(suql, read="postgres")
    local = {cte.alias for cte in tree.find_all(exp.CTE)}
    tables = (".".join(p.name for p in t.parts) for t in tree.find_all(exp.Table))
    return tuple(dict.fromkeys(name for name in tables if name not in local))
