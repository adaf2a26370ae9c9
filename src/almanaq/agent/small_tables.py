"""The rows of small tables, which a prompt shows whole: who writes a query sees what there is to ask for."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from almanaq.agent.engine_protocol import QueryEngine
from almanaq.agent.turn_time import options_of_turn
from almanaq.errors import AlmanaqError
from almanaq.options import Options
from almanaq.suql.catalog.relations import Catalog, Column, ColumnKind, Relation
from almanaq.text.sql_literals import identifier

MOST_ROWS = 20
"""Tables of at most so many rows are shown whole, their prose and private columns aside."""

_MOST_TABLES, _MOST_CHARACTERS = 6, 4000
_CELL = 60
_SECONDS_KEPT = 10.0
"""So long are rows shown again without another look, as in a turn whose query is written anew."""

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
        self._kept: tuple[Catalog, float, Mapping[str, Rows]] | None = None

    def __call__(self, catalog: Catalog) -> Mapping[str, Rows]:
        """Return the rows of each small table; one that cannot be read is left out."""
        kept = self._kept
        if kept is not None and kept[0] is catalog and time.monotonic() - kept[1] < _SECONDS_KEPT:
            return kept[2]
        found = self._all(catalog)
        self._kept = catalog, time.monotonic(), found
        return found

    def _all(self, catalog: Catalog) -> Mapping[str, Rows]:
        found: dict[str, Rows] = {}
        left = _MOST_CHARACTERS
        for relation in [r for r in catalog.relations if r.rows is not None and 0 < r.rows <= MOST_ROWS][:_MOST_TABLES]:
            rows = self._read(relation)
            size = sum(len(cell) + 3 for row in rows for cell in row)
            if rows and size <= left:
                found[relation.name] = rows
                left -= size
        return found

    def _read(self, relation: Relation) -> Rows:
        columns = [column for column in relation.columns if _is_shown(column)]
        if not columns:
            return ()
        names = ", ".join(identifier(column.name) for column in columns)
        query = f"SELECT {names} FROM {identifier(relation.name)} LIMIT {MOST_ROWS + 1}"
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
