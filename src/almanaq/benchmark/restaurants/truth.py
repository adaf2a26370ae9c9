"""The restaurants and what is true of them: which ones are right for a turn, after the rows that were shown before."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from almanaq.benchmark.restaurants.wanted import Wanted
from almanaq.errors import BenchmarkError, SourceError, suggest

if TYPE_CHECKING:
    from almanaq.agent.history import Shown

PRICES = ("cheap", "moderate", "expensive", "luxury")
Attributes = Mapping[int, Mapping[str, bool | None]]


class Restaurants:
    """The rows by id, and the attributes that their texts express.

    Args:
        file: the Parquet file; its column `id` identifies the rows.
        attributes: what is true of each restaurant by its texts; None where it does not say.

    Raises:
        SourceError: the file cannot be read, or has no column `id` of distinct values.
    """

    def __init__(self, file: Path, attributes: Attributes) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            self.table = pq.read_table(file)
        except (OSError, pa.ArrowException) as error:
            raise SourceError(f"cannot read {file}: {error}") from error
        if "id" not in self.table.column_names:
            raise SourceError(f"{file} has no column id: {', '.join(self.table.column_names)}")
        self.attributes = attributes
        self.rows: Mapping[int, Mapping[str, Any]] = {row["id"]: row for row in self.table.to_pylist()}
        if len(self.rows) < self.table.num_rows:
            raise SourceError(f"{file}: two rows have the same id")
        self._lock = threading.Lock()

    def right(
        self, turn: Wanted, shown: Sequence[Sequence[int]], search: Wanted | None = None, since: int = 0
    ) -> list[int]:
        """Give the ids that are right for a turn.

        Args:
            shown: the ids of each list that was shown before; from `since` on, since the search.
            search: the last turn that said what to look for, which others go on from.

        Raises:
            BenchmarkError: a condition cannot be run, or names an attribute or column that is not there.
        """
        if turn.right is not None:
            return list(turn.right)
        if turn.kind == "detail":
            return [_pointed(turn.row, shown)] if turn.row is not None else list(shown[-1])
        if turn.kind == "best":
            return self._first(shown[-1], turn.order, 1)
        wanted = search if turn.kind in ("another", "compare") and search is not None else turn
        found = list(wanted.right) if wanted.right is not None else self.holding(wanted.where or "", wanted.attributes)
        if turn.kind == "another":
            return [i for i in found if all(i not in ids for ids in shown[since:])]
        if turn.kind == "compare":
            than = [self._value(i, turn.column) for i in shown[-1]]
            bound = max(than) if turn.more else min(than)
            values = {i: self._value(i, turn.column) for i in found}
            return [i for i, value in values.items() if (value > bound if turn.more else value < bound)]
        return self._first(found, turn.order, turn.limit) if turn.expect == "top" else found

    def holding(self, where: str, attributes: Mapping[str, bool]) -> list[int]:
        """Give the ids of the restaurants that fulfil a condition in SQL and have these attributes."""
        import duckdb

        try:
            with self._lock:
                rows = self._database.execute(
                    f"SELECT id FROM restaurants WHERE {where or 'TRUE'} ORDER BY id"
                ).fetchall()
        except duckdb.Error as error:
            raise BenchmarkError(f"the condition {where!r} cannot be run: {' '.join(str(error).split())}") from error
        known = next(iter(self.attributes.values()), {})
        for name in attributes:
            if name not in known:
                raise BenchmarkError(f"the truth has no attribute {name!r}{suggest(name, known)}")
        return [i for (i,) in rows if all(self.attributes[i][name] is value for name, value in attributes.items())]

    def ids(self, shown: Shown | None) -> list[int]:
        """Give the ids of rows that a reply showed, in order."""
        if shown is None:
            return []
        if shown.columns == ("id",):
            return [int(key[0]) for key in shown.keys]
        by_key: dict[tuple[str, ...], int] = {}
        for i, row in self.rows.items():
            by_key.setdefault(tuple(str(row.get(name)) for name in shown.columns), i)
        keys = (tuple(map(str, key)) for key in shown.keys)
        return [by_key[key] for key in keys if key in by_key]

    @cached_property
    def _database(self) -> Any:
        import duckdb

        connection = duckdb.connect(config={"enable_external_access": "false"})
        connection.register("restaurants", self.table)
        return connection

    def _value(self, restaurant: int, column: str) -> Any:
        """Give a value to compare restaurants by; prices as ranks."""
        row = self.rows[restaurant]
        if column not in row:
            raise BenchmarkError(f"the restaurants have no column {column!r}{suggest(column, row)}")
        return PRICES.index(row[column]) if row[column] in PRICES else row[column]

    def _first(self, ids: Sequence[int], order: str, limit: int) -> list[int]:
        """Give the first restaurants by an order like "rating DESC", and all that tie with the last of them."""
        column, direction = order.split()
        ranked = sorted(ids, key=lambda i: self._value(i, column), reverse=direction == "DESC")
        last = self._value(ranked[min(limit, len(ranked)) - 1], column) if ranked else None
        return [i for n, i in enumerate(ranked) if n < limit or self._value(i, column) == last]


def read_attributes(file: Path) -> Attributes:
    """Give the attributes of a JSON Lines file of `{"id": …, NAME: true | false | null, …}`; {} where it is not there.

    Raises:
        SourceError: a line is no such object, or names other attributes than the first.
    """
    if not file.is_file():
        return {}
    found: dict[int, Mapping[str, bool | None]] = {}
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


def _pointed(row: int | None, shown: Sequence[Sequence[int]]) -> int:
    """Give the row at a place (1 is the first, -1 the last) of the last list that has several, else the last shown."""
    several = next((ids for ids in reversed(shown) if len(ids) > 1), shown[-1])
    place = row or 1
    return several[place if place < 0 else place - 1]
