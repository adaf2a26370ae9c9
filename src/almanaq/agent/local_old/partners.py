"""What the rows say of the columns that relations are joined by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from almanaq.agent.local_old import sql
from almanaq.agent.local_old.joins import Hop
from almanaq.agent.local_old.schema_index import Finds, Place
from almanaq.errors import AlmanaqError
from almanaq.suql.catalog.relations import Relation

_FAR = 100
"""A number so many times as large as the largest value of a column is not one of it."""


class Partners:
    """Whether columns repeat, and whether rows lack a partner; looked up once each.

    Args:
        finds: says whether a query finds a row; None where nothing can be asked.
    """

    def __init__(self, finds: Finds | None) -> None:
        self._finds = finds
        self._found: Callable[[str], bool | None] = cache(self._ask)

    def is_unique(self, relation: Relation, columns: Sequence[str]) -> bool:
        """Return whether no two rows share what stands in columns; what cannot be found out is not so."""
        if relation.key and set(relation.key) <= set(columns):
            return True
        listed = ", ".join(map(sql.name, columns))
        known = " AND ".join(f"{sql.name(column)} IS NOT NULL" for column in columns)
        query = f"SELECT {listed} FROM {sql.name(relation.name)} WHERE {known} GROUP BY {listed} HAVING COUNT(*) > 1"
        return self._found(query) is False

    def all_have(self, hop: Hop) -> bool:
        """Return whether each row on the left has a partner on the right; what cannot be found out is not so."""
        own, theirs = sql.name(hop.left_column), sql.name(hop.right_column)
        inside = f"SELECT {hop.compared(theirs)} FROM {sql.name(hop.right)} WHERE {theirs} IS NOT NULL"
        alone = f"{own} IS NULL OR {hop.compared(own)} NOT IN ({inside})"
        return self._found(f"SELECT {own} FROM {sql.name(hop.left)} WHERE {alone}") is False

    def has_none_and_many(self, place: Place) -> bool:
        """Return whether a column holds whole numbers, 0 for some rows and more than 1 for others."""
        own = sql.compared(place, False)
        whole = f"MIN({own}) = 0 AND MAX({own}) > 1 AND MAX(ABS({own} - FLOOR({own}))) = 0"
        return self._is_so(place, whole)

    def has_none_and_nothing(self, place: Place) -> bool:
        """Return whether a column holds 0 for some rows, and nothing for others."""
        own = sql.compared(place, False)
        both = f"MIN(ABS({own})) = 0 AND COUNT({own}) < COUNT(*)"
        return self._is_so(place, both)

    def reaches(self, place: Place, number: float) -> bool:
        """Return whether a number is not far beyond all that a column holds; what cannot be found out is so."""
        own = sql.compared(place, False)
        near = f"{own} >= {sql.number(number / _FAR)}"
        return self._found(f"SELECT 1 FROM {sql.name(place.relation.name)} WHERE {near}") is not False

    def _is_so(self, place: Place, condition: str) -> bool:
        """Return whether a condition holds of all rows of a column together; what cannot be found out does not."""
        return self._found(f"SELECT COUNT(*) FROM {sql.name(place.relation.name)} HAVING {condition}") is True

    def _ask(self, query: str) -> bool | None:
        try:
            return None if self._finds is None else self._finds(f"{query} LIMIT 1")
        except AlmanaqError:
            return None
