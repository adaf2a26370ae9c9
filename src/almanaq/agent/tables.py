"""Chooses the relations that a question is about, where a source has more than fit a prompt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlglot import exp

from almanaq.agent.history import Turn
from almanaq.agent.query_tree import query_tree
from almanaq.suql.catalog.relations import Catalog, Relation

ChooseTables = Callable[[str, Catalog], tuple[str, ...]]
"""(question, catalog) → names of relations, the most relevant first; () when none fits."""

MOST_TABLES = 12


def relevant(
    question: str, catalog: Catalog, history: Sequence[Turn], choose: ChooseTables, *, one_database: bool = False
) -> Catalog:
    """Return the relations that a turn may be about: those the last query read, and those chosen for the question.

    With each chosen relation come those that it refers to, and where the source is several databases, the rest of the
    one that most of the chosen ones lie in: a join needs them. No relation when none fits.

    Args:
        one_database: of several databases, give only that one: a parser that links words takes them where it can.
    """
    last = next((t.suql for t in reversed(history) if t.suql), None)
    earlier = [r.name for r in map(catalog.find, tables_of(last) if last else ()) if r is not None]
    chosen = [catalog.relation(name) for name in choose(question, catalog)]
    neighbours = _neighbours(chosen, catalog)
    kept = dict.fromkeys([*earlier, *neighbours])
    for relation in () if one_database and neighbours else chosen:
        kept |= dict.fromkeys([relation.name, *(other for _, other, _ in relation.foreign_keys if catalog.find(other))])
    return restrict(catalog, tuple(kept)[:MOST_TABLES])


def _neighbours(chosen: Sequence[Relation], catalog: Catalog) -> list[str]:
    """Return the relations of the database that most chosen ones lie in, the chosen first.

    None of a single database.
    """
    if not catalog.separate:
        return []
    place = home(chosen)
    return [r.name for r in (*chosen, *catalog.relations) if r.location[:-1] == place]


def home(chosen: Sequence[Relation]) -> tuple[str, ...] | None:
    """Return the database that most of the chosen relations lie in, the first ones weighing most; None of none."""
    weights: dict[tuple[str, ...], float] = {}
    for rank, relation in enumerate(chosen, 1):
        place = relation.location[:-1]
        weights[place] = weights.get(place, 0.0) + 1 / rank
    return max(weights, key=lambda place: weights[place], default=None)


def restrict(catalog: Catalog, names: Sequence[str]) -> Catalog:
    """Return a catalog of the named relations only, in the catalog's order."""
    kept = set(names)
    return replace(catalog, relations=tuple(r for r in catalog.relations if r.name in kept))


def tables_of(suql: str) -> tuple[str, ...]:
    """Return the names of the relations that a query reads, in the order of their first mention."""
    tree = query_tree(suql)
    local = {cte.alias for cte in tree.find_all(exp.CTE)}
    tables = (".".join(p.name for p in t.parts) for t in tree.find_all(exp.Table))
    return tuple(dict.fromkeys(name for name in tables if name not in local))
