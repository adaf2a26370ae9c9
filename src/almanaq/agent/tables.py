"""The tables that a parser is shown: those that a question is about, and the rows of small ones."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sqlglot.errors import SqlglotError

from almanaq.agent.dialects import quote_name
from almanaq.agent.history import Turn
from almanaq.agent.linking.english import english
from almanaq.agent.linking.words import identifier_stems, roots, stems
from almanaq.agent.queries import QueryEngine, tables_of
from almanaq.agent.terms import terms_named
from almanaq.agent.turn import options_of_turn
from almanaq.errors import AlmanaqError
from almanaq.options import Options
from almanaq.suql.catalog.definitions import usable_terms
from almanaq.suql.catalog.relations import Catalog, Column, ColumnKind, Relation

ChooseTables = Callable[[str, Catalog], tuple[str, ...]]
"""(question, catalog) → names of relations, the most relevant first; () when none fits."""

MOST_TABLES, FEW_TABLES = 12, 4


def choose_relations(
    question: str,
    catalog: Catalog,
    history: Sequence[Turn],
    choose: ChooseTables,
    *,
    one_database: bool = False,
    fits: Callable[[Catalog], bool] = lambda _: True,
) -> Catalog:
    """Return the relations that a turn may be about: those the last query read, and those chosen for the question.

    After the two that fit best come those that alone share words with the question, however little fits the rest of it.
    With each chosen relation come those that it refers to, and where the source is several databases, the rest of the
    one that most of the chosen ones lie in: a join needs them. No relation when none fits.

    Args:
        one_database: of several databases, give only that one: a parser that links words takes them where it can.
        fits: whether a prompt has room for a catalog; the last of more than a few relations are left out until it has.
    """
    last = next((t.suql for t in reversed(history) if t.suql), None)
    read = tables_of(last, catalog.dialect) if last else ()
    earlier = [r.name for r in map(catalog.find, read) if r is not None]
    defined = [term.relation for term in terms_named(question, catalog)]
    found = choose(question, catalog)
    sharing = () if catalog.separate or one_database else find_sharing(question, catalog)
    names_chosen = dict.fromkeys((*defined, *found[:2], *sharing, *found[2:]))
    chosen = [catalog.relation(name) for name in names_chosen]
    neighbours = _neighbours(chosen, catalog)
    kept = dict.fromkeys([*earlier, *neighbours])
    for relation in () if one_database and neighbours else chosen:
        kept |= dict.fromkeys([relation.name, *(other for _, other, _ in relation.foreign_keys if catalog.find(other))])
    names = list(kept)[:MOST_TABLES]
    while len(names) > FEW_TABLES and not catalog.separate and not fits(restrict_catalog(catalog, names)):
        names.pop()
    return restrict_catalog(catalog, names)


def find_sharing(question: str, catalog: Catalog) -> tuple[str, ...]:
    """Return the relations that share words with a question which at most two others hold, those of most words first.

    Words count by their roots, "attacked" as "attacker"; a value counts where the question has all its words.
    """
    asked = {form for word in stems(question) if word not in english().silent for form in (word, *roots(word))}
    held = {relation.name: _words_held(relation, asked) for relation in catalog.relations}
    times = Counter(word for words in held.values() for word in words)
    telling = {name: sum(times[word] < FEW_TABLES for word in words) for name, words in held.items()}
    return tuple(sorted(filter(telling.get, telling), key=lambda name: -telling[name])[:FEW_TABLES])


def _words_held(relation: Relation, asked: set[str]) -> set[str]:
    """Return the words of a question that name a relation or a column of it, or make up a value that is known."""
    names = (relation.name, *(column.name for column in relation.columns))
    words = {form for name in names for word in identifier_stems(name) for form in (word, *roots(word))}
    values = (value for column in relation.columns if not column.private for value in (*column.values, *column.samples))
    for spelled in map(set, map(stems, values)):
        words |= spelled if spelled <= asked else set()
    return {word for word in words & asked if len(word) > 2 and not word.isdigit()}


def _neighbours(chosen: Sequence[Relation], catalog: Catalog) -> list[str]:
    """Return the relations of the database that most chosen ones lie in, the chosen first.

    None of a single database.
    """
    if not catalog.separate:
        return []
    place = main_database(chosen)
    return [r.name for r in (*chosen, *catalog.relations) if r.location[:-1] == place]


def main_database(chosen: Sequence[Relation]) -> tuple[str, ...] | None:
    """Return the database that most of the chosen relations lie in, the first ones weighing most; None of none."""
    weights: dict[tuple[str, ...], float] = {}
    for rank, relation in enumerate(chosen, 1):
        place = relation.location[:-1]
        weights[place] = weights.get(place, 0.0) + 1 / rank
    return max(weights, key=lambda place: weights[place], default=None)


def restrict_catalog(catalog: Catalog, names: Sequence[str]) -> Catalog:
    """Return a catalog of the named relations only, in the catalog's order."""
    kept = set(names)
    return usable_terms(replace(catalog, relations=tuple(r for r in catalog.relations if r.name in kept)))


def add_relations(catalog: Catalog, whole: Catalog, suql: str) -> Catalog:
    """Return a catalog with those relations of the whole one, too, that a query names."""
    try:
        named = [relation.name for name in tables_of(suql, whole.dialect) if (relation := whole.find(name)) is not None]
    except SqlglotError:
        return catalog
    known = [relation.name for relation in catalog.relations]
    return catalog if set(named) <= set(known) else restrict_catalog(whole, (*known, *named))


def make_chooser() -> ChooseTables:
    """Return a TableChooser that is made when it is first needed: most sources have few tables."""
    chooser: list[ChooseTables] = []

    def choose(question: str, catalog: Catalog) -> tuple[str, ...]:
        if not chooser:
            from almanaq.agent.table_chooser import TableChooser

            chooser.append(TableChooser())
        return chooser[0](question, catalog)

    return choose


# Rows of small tables, which a prompt shows whole: whoever writes a query sees what there is to ask for.

MOST_ROWS = 20
"""The most rows of a table that is shown whole, except its prose and private columns."""

_MOST_SMALL_TABLES, _MOST_CHARACTERS = 6, 2400
_CELL = 60
_CACHE_SECONDS = 10.0
"""How long rows are shown again without another look, as when a query of the turn is repaired."""

Rows = tuple[tuple[str, ...], ...]
"""The names of columns, and then the cells of each row, in text."""

ShowRows = Callable[[Catalog], Mapping[str, Rows]]


class SmallTables:
    """Reads the small tables of a catalog, by relation; as many as fit a prompt.

    Args:
        engine: runs a query for each table, which calls no model.
    """

    def __init__(self, engine: QueryEngine, options: Options | None = None) -> None:
        self._engine, self._options = engine, options
        self._cached: tuple[Catalog, float, Mapping[str, Rows]] | None = None

    def __call__(self, catalog: Catalog) -> Mapping[str, Rows]:
        """Return the rows of each small table; one that cannot be read is left out."""
        cached = self._cached
        if cached is not None and cached[0] is catalog and time.monotonic() - cached[1] < _CACHE_SECONDS:
            return cached[2]
        found = self._all(catalog)
        self._cached = catalog, time.monotonic(), found
        return found

    def _all(self, catalog: Catalog) -> Mapping[str, Rows]:
        found: dict[str, Rows] = {}
        left = _MOST_CHARACTERS
        for relation in [r for r in catalog.relations if r.rows is not None and 0 < r.rows <= MOST_ROWS][
            :_MOST_SMALL_TABLES
        ]:
            rows = self._read(relation, catalog.dialect)
            size = sum(len(cell) + 3 for row in rows for cell in row)
            if rows and size <= left:
                found[relation.name] = rows
                left -= size
        return found

    def _read(self, relation: Relation, dialect: str) -> Rows:
        columns = [column for column in relation.columns if _is_shown(column)]
        if not columns:
            return ()
        names = ", ".join(quote_name(column.name, dialect) for column in columns)
        query = f"SELECT {names} FROM {quote_name(relation.name, dialect)} LIMIT {MOST_ROWS + 1}"
        try:
            rows = self._engine.run(query, options=options_of_turn(self._options)).rows
        except AlmanaqError:
            return ()
        if len(rows) > MOST_ROWS:  # it has grown
            return ()
        return (tuple(column.name for column in columns), *(tuple(map(_cell, row)) for row in rows))


def _is_shown(column: Column) -> bool:
    return not column.private and column.kind is not ColumnKind.FREE_TEXT


def _cell(value: object) -> str:
    text = "NULL" if value is None else str(value)
    return text if len(text) <= _CELL else text[: _CELL - 1] + "…"
