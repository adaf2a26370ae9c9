"""The restaurants and what is true of them: which ones are right for a turn, after the rows that were shown before."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from almanaq.engines.files.load import read_table
from almanaq.errors import BenchmarkError, SourceError, suggest
from almanaq_bench.restaurants.wanted import ExpectedTurn, Id

if TYPE_CHECKING:
    from almanaq.agent.history import Shown

KEYS = ("id", "_id")
"""Names of the column that identifies a restaurant."""

PRICES = ("cheap", "moderate", "expensive", "luxury")
Attributes = Mapping[Id, Mapping[str, bool | None]]


class Restaurants:
    """The rows by id, and the attributes that their texts express.

    Args:
        file: a file of rows; its column `id` (or `_id`, as the paper's database has it) identifies them.
        attributes: what is true of each restaurant by its texts; None where it does not say.

    Raises:
        SourceError: the file cannot be read, or has no such column of distinct values.
    """

    def __init__(self, file: Path, attributes: Attributes) -> None:
        self.table, _ = read_table(file)
        self.key = next((name for name in KEYS if name in self.table.column_names), "")
        if not self.key:
            raise SourceError(f"{file} has no column id: {', '.join(self.table.column_names)}")
        self.attributes = attributes
        self.rows: Mapping[Id, Mapping[str, Any]] = {row[self.key]: row for row in self.table.to_pylist()}
        if len(self.rows) < self.table.num_rows:
            raise SourceError(f"{file}: two rows have the same id")
        self._lock = threading.Lock()

    def right(
        self, turn: ExpectedTurn, shown: Sequence[Sequence[Id]], search: ExpectedTurn | None = None, since: int = 0
    ) -> list[Id]:
        """Return the ids that are right for a turn.

        Args:
            shown: the ids of each list that was shown before; from `since` on, since the search.
            search: the last turn that said what to look for, which others go on from.

        Raises:
            BenchmarkError: a condition cannot be run, or names an attribute or column that is not there.
        """
        if turn.right is not None:
            return self._require_known(turn.right)
        if turn.kind == "detail":
            return [_resolve_pointer(turn.row, shown)] if turn.row is not None else list(shown[-1])
        if turn.kind == "best":
            return self._first(shown[-1], turn.order, 1)
        wanted = search if turn.kind in ("another", "compare") and search is not None else turn
        found = (
            self._require_known(wanted.right)
            if wanted.right is not None
            else self.holding(wanted.where or "", wanted.attributes)
        )
        if turn.kind == "another":
            return [i for i in found if all(i not in ids for ids in shown[since:])]
        if turn.kind == "compare":
            than = [self._value(i, turn.column) for i in shown[-1]]
            bound = max(than) if turn.more else min(than)
            values = {i: self._value(i, turn.column) for i in found}
            return [i for i, value in values.items() if (value > bound if turn.more else value < bound)]
        return self._first(found, turn.order, turn.limit) if turn.expect == "top" else found

    def holding(self, where: str, attributes: Mapping[str, bool]) -> list[Id]:
        """Return the ids of the restaurants that fulfil a condition in SQL and have these attributes."""
        import duckdb

        try:
            with self._lock:
                rows = self._database.execute(
                    f'SELECT "{self.key}" FROM restaurants WHERE {where or "TRUE"} ORDER BY 1'
                ).fetchall()
        except duckdb.Error as error:
            raise BenchmarkError(f"the condition {where!r} cannot be run: {' '.join(str(error).split())}") from error
        known = next(iter(self.attributes.values()), {})
        for name in attributes:
            if name not in known:
                raise BenchmarkError(f"the truth has no attribute {name!r}{suggest(name, known)}")
        return [
            i
            for (i,) in rows
            if all(self.attributes.get(i, {}).get(name) is value for name, value in attributes.items())
        ]

    def ids(self, shown: Shown | None) -> list[Id]:
        """Return the ids of rows that a reply showed, in order."""
        if shown is None:
            return []
        by_key: dict[tuple[str, ...], Id] = {}
        for i, row in self.rows.items():
            by_key.setdefault(tuple(str(row.get(name)) for name in shown.columns), i)
        keys = (tuple(map(str, key)) for key in shown.keys)
        return [by_key[key] for key in keys if key in by_key]

    def _require_known(self, ids: Sequence[Id]) -> list[Id]:
        unknown = [i for i in ids if i not in self.rows]
        if unknown:
            raise BenchmarkError(f"no restaurant has the id {unknown[0]!r}")
        return list(ids)

    @cached_property
    def _database(self) -> Any:
        import duckdb

        connection = duckdb.connect(config={"enable_external_access": "false"})
        connection.register("restaurants", self.table)
        return connection

    def _value(self, restaurant: Id, column: str) -> Any:
        """Return a value to compare restaurants by; prices as ranks."""
        row = self.rows[restaurant]
        if column not in row:
            raise BenchmarkError(f"the restaurants have no column {column!r}{suggest(column, row)}")
        return PRICES.index(row[column]) if row[column] in PRICES else row[column]

    def _first(self, ids: Sequence[Id], order: str, limit: int) -> list[Id]:
        """Return the first restaurants by an order like "rating DESC", and all that tie with the last of them."""
        column, direction = order.split()
        ranked = sorted(ids, key=lambda i: self._value(i, column), reverse=direction == "DESC")
        last = self._value(ranked[min(limit, len(ranked)) - 1], column) if ranked else None
        return [i for n, i in enumerate(ranked) if n < limit or self._value(i, column) == last]


def read_attributes(file: Path) -> Attributes:
    """Return the attributes of a JSON Lines file of `{"id": …, NAME: true | false | null, …}`; {} where it is not
    there.

    Raises:
        SourceError: a line is no such object, or names other attributes than the first.
    """
    if not file.is_file():
        return {}
    found: dict[Id, Mapping[str, bool | None]] = {}
    names: Iterable[str] | None = None
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        try:
            row = json.loads(line)
            found[row.pop("id")] = row
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise SourceError(f"{file}, line {number}: not an object with an id: {error}") from error
        names = row.keys() if names is None else names
        if set(row) != set(names):
            raise SourceError(f"{file}, line {number}: it names other attributes than the first line")
    return found


def _resolve_pointer(row: int | None, shown: Sequence[Sequence[Id]]) -> Id:
    """Return the row at a place (1 is the first, -1 the last) of the last list that has several, else
    the last shown.
    """
    several = next((ids for ids in reversed(shown) if len(ids) > 1), shown[-1])
    place = row or 1
    return several[place if place < 0 else place - 1]
