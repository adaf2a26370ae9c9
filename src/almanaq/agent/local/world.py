"""World: a catalog made searchable, with the ways between its relations; kept from question to question."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date
from typing import Any

from sqlglot import exp

from almanaq.agent.linking.columns import LinkedColumn
from almanaq.agent.linking.index import CatalogIndex, Values
from almanaq.agent.linking.joins import JoinGraph, is_missing, table_of
from almanaq.agent.linking.link import Links, link
from almanaq.agent.linking.words import stems
from almanaq.agent.local.spec import plain
from almanaq.agent.queries import QueryEngine, to_sql
from almanaq.bounded_dict import BoundedDict
from almanaq.suql.catalog.relations import Catalog, Relation

_KEPT = 64
_MOST_LISTS = 5_000
"""Lists of dishes that are read."""
_SAME = 0.5
"""How much less a column is meant that a join makes equal to one of its name, which is nearer."""


class World:
    """What questions are asked of.

    Args:
        catalog: the relations; values: gives those of a column; run: gives the rows of a query.
        dialect: the SQL that is written.
    """

    def __init__(
        self,
        catalog: Catalog,
        values: Values,
        run: Callable[[str], Sequence[Sequence[Any]]] | None = None,
        today: Callable[[], date] = date.today,
        dialect: str = "duckdb",
    ) -> None:
        self.catalog, self.dialect = catalog, dialect
        self.run = run
        self.graph = JoinGraph(catalog, None if run is None else lambda tree: bool(run(to_sql(tree, dialect))))
        self.index = CatalogIndex(catalog, values, today, self.graph.is_unique)
        self._dishes: dict[str, frozenset[tuple[str, ...]]] = {}
        self._links = BoundedDict[str, Links](_KEPT)

    @classmethod
    def of(cls, engine: QueryEngine, catalog: Catalog | None = None) -> World:
        """Return the world of an engine."""
        return cls(catalog or engine.catalog, engine.values, lambda q: engine.run(q).rows, dialect=engine.dialect)

    def link(self, question: str) -> Links:
        """Return what the words of a question mean; worked out once."""
        known = self._links.get(question)
        if known is None:
            known = self._links[question] = link(question, self.index)
        return known

    def columns(self, relation: str) -> tuple[LinkedColumn, ...]:
        """Return the columns of a relation."""
        return self.index.columns[relation]

    def column_of(self, expression: exp.Expr) -> LinkedColumn | None:
        """Return the one column that an expression speaks of; None where it is none, or several."""
        found = {(c.table, c.name) for c in expression.find_all(exp.Column)}
        return self.index.column(*next(iter(found))) if len(found) == 1 else None

    def reach(self, main: str, column: LinkedColumn) -> float:
        """Weigh how near a column is to the rows of a relation: 1 for its own, 0 for what cannot be reached."""
        own = column.relation.name
        way = self.graph.ways(main).get(own)
        if way is None:
            return 0.0
        if not way:
            return 1.0
        near = 0.85 ** len(way) if self.graph.is_single(main, own) else 0.5
        near *= _SAME if way[-1].left_column == way[-1].right_column == column.name else 1.0
        return near * (0.4 if self.graph.is_ambiguous(main, own) else 1.0)

    def is_single(self, main: str, relation: str) -> bool:
        """Return whether each row of `main` has at most one of a relation."""
        return self.graph.is_single(main, relation)

    def details_of(self, relation: Relation) -> list[Relation]:
        """Return the relations of which several rows may each lead to one row of another: sightings of each bird."""
        name = relation.name
        leading = (r for r in self.catalog.relations if r is not relation and name in self.graph.ways(r.name))
        return [r for r in leading if self.is_single(r.name, name) and not self.is_single(name, r.name)]

    def is_unique(self, column: LinkedColumn) -> bool:
        """Return whether no two rows share a value of a column, as far as can be asked."""
        return column.relation.key == (column.name,) or self.graph.is_unique(column.relation.name, column.name)

    def tells_apart(self, column: LinkedColumn) -> bool:
        """Return whether every row has its own value of a column, by which it may be found again."""
        found = column.kind in ("text", "number") and not column.column.private and self.is_unique(column)
        return found and not self.graph.finds(column.relation.name, is_missing(plain(column)))

    def target_of(self, column: LinkedColumn) -> Relation | None:
        """Return the relation whose rows a column refers to; None where it refers to none."""
        for hop in self.graph.hops(column.relation.name):
            if hop.single and hop.left_column == column.name:
                return self.catalog.find(hop.right)
        return None

    def dates(self, relation: str) -> list[LinkedColumn]:
        """Return the columns of dates of a relation."""
        return [c for c in self.columns(relation) if c.kind == "date"]

    def dishes(self, relation: Relation) -> frozenset[tuple[str, ...]]:
        """Return the stems of what lists of dishes hold: of the last word of each, and of runs of words."""
        if relation.name not in self._dishes:
            listed = [
                c
                for c in self.columns(relation.name)
                if c.kind == "prose" and "dishes" in c.roles and not c.column.private
            ]
            query = exp.select(*map(plain, listed)).from_(table_of(relation.name)).distinct().limit(_MOST_LISTS)
            rows = self.run(to_sql(query, self.dialect)) if listed and self.run is not None else ()
            items = {tuple(stems(item)) for row in rows for cell in row for item in re.split("[,;]", str(cell))}
            runs = (item[i:k] for item in items for k in range(2, len(item) + 1) for i in range(k - 1))
            self._dishes[relation.name] = frozenset((*runs, *(item[-1:] for item in items if item)))
        return self._dishes[relation.name]

    def named(self, relation: Relation) -> exp.Expr:
        """Return the column that names the rows of a relation."""
        return plain(self.index.name_of(relation))
