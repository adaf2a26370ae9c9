"""Queries about one table or view that a catalog needs, in SQL that every engine understands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from almanaq.errors import SourceError
from almanaq.suql.catalog.infer import ColumnSample, infer_kind
from almanaq.suql.catalog.reading import flatten, shown_samples, written_name
from almanaq.suql.catalog.relations import Column, ColumnKind, Relation

Rows = Callable[[str], list[tuple[Any, ...]]]
_MOST_ENUM_VALUES = 10_000
_SAMPLED_ROWS, _SAMPLED_CHARACTERS = 200, 400


@dataclass(frozen=True, slots=True)
class RelationQueries:
    """Asks an engine about its relations.

    Attributes:
        rows: runs a SELECT and gives its rows.
        dialect: how names are quoted.
    """

    rows: Rows
    dialect: str

    def key_holds(self, relation: Relation, key: tuple[str, ...]) -> bool:
        """Tell whether a key is unique and never null."""
        names, place = ", ".join(map(self._quoted, key)), self._quoted(*relation.location)
        null = " OR ".join(f"{self._quoted(name)} IS NULL" for name in key)
        nulls = f"SELECT 1 FROM {place} WHERE {null} LIMIT 1"
        twice = f"SELECT 1 FROM {place} GROUP BY {names} HAVING COUNT(*) > 1 LIMIT 1"
        return not self.rows(nulls) and not self.rows(twice)

    def sampled(self, relation: Relation, *, infer: bool) -> Relation:
        """Return a relation with samples of its columns; `infer`: also with the kinds that they suggest.

        Where the sample is all that there is, the number of rows is known by it.
        """
        names = ", ".join(self._quoted(column.name) for column in relation.columns)
        rows = self.rows(f"SELECT {names} FROM {self._quoted(*relation.location)} LIMIT {_SAMPLED_ROWS}")
        columns = []
        for position, column in enumerate(relation.columns):
            values = tuple(str(value)[:_SAMPLED_CHARACTERS] for value in flatten(row[position] for row in rows))
            inferred = infer_kind(column, ColumnSample(values)) if infer else column
            columns.append(replace(inferred, samples=shown_samples(values)))
        whole = relation.rows is None and len(rows) < _SAMPLED_ROWS
        return replace(relation, columns=tuple(columns), rows=len(rows) if whole else relation.rows)

    def completed(self, relation: Relation) -> Relation:
        """Return a relation with the values of ENUMs declared without, and rows named by a key of one column."""
        columns = tuple(self._with_values(relation, column) for column in relation.columns)
        row_id = written_name(relation.key, "postgres") if len(relation.key) == 1 else None
        return replace(relation, columns=columns, row_id=row_id)

    def _with_values(self, relation: Relation, column: Column) -> Column:
        if column.kind is not ColumnKind.ENUM or column.values:
            return column
        if column.array:
            raise SourceError(f"{relation.name}.{column.name} is declared ENUM[]: list its values in the schema file")
        name, place = self._quoted(column.name), self._quoted(*relation.location)
        rows = self.rows(
            f"SELECT {name} FROM {place} WHERE {name} IS NOT NULL GROUP BY {name} ORDER BY COUNT(*) DESC, {name} "
            f"LIMIT {_MOST_ENUM_VALUES + 1}"
        )
        if len(rows) > _MOST_ENUM_VALUES:
            raise SourceError(
                f"{relation.name}.{column.name} is declared ENUM and has more than {_MOST_ENUM_VALUES:,} distinct "
                "values: declare it structured, or list its values in the schema file"
            )
        return replace(column, values=tuple(str(value) for (value,) in rows))

    def _quoted(self, *names: str) -> str:
        return written_name(names, self.dialect)
