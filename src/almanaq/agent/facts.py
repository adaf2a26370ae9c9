"""What a prompt says of a source beside its schema: how many cells are missing, and which columns refer to others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from types import MappingProxyType

from almanaq.agent.dialects import quote_name
from almanaq.agent.queries import QueryEngine
from almanaq.agent.turn import options_of_turn
from almanaq.errors import AlmanaqError
from almanaq.options import Options
from almanaq.suql.catalog.relations import Catalog, Column, ColumnKind, Relation

_MOST_ROWS, _MOST_COLUMNS = 1_000_000, 40
_LEAST_ROWS, _LEAST_SHARE = 5, 0.9
_FEW_ZEROS = 0.02
NUMBERS = frozenset({"integer", "bigint", "smallint", "double precision", "real", "numeric", "double", "float"})
_MOST_RELATED, _MOST_KEYS, _MOST_TEXTS = 12, 8, 4

Cell = tuple[str, str]
"""A relation and one of its columns."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A text column whose values lie, nearly all of them, in a column that tells the rows of another relation apart."""

    relation: str
    column: str
    share: float


@dataclass(frozen=True, slots=True)
class Facts:
    """What was counted.

    Attributes:
        missing: the share of missing cells, where there are some.
        zeros: of columns with a few zeros and else greater numbers: how many, the least and the greatest of the others.
        references: those that nobody declared.
    """

    missing: Mapping[Cell, float] = field(default_factory=lambda: MappingProxyType({}))
    zeros: Mapping[Cell, tuple[int, float, float]] = field(default_factory=lambda: MappingProxyType({}))
    references: Mapping[Cell, Reference] = field(default_factory=lambda: MappingProxyType({}))


class SourceFacts:
    """Counts over the tables of an engine in this process; elsewhere counting costs a server's time or money.

    Tables of more than a million rows are not counted, and references are looked for among a dozen tables at most.
    """

    def __init__(self, engine: QueryEngine, options: Options | None = None) -> None:
        self._engine, self._options = engine, options
        self._cached: tuple[Catalog, Facts] | None = None

    def __call__(self, catalog: Catalog) -> Facts:
        """Return the facts of the whole source, of which a turn sees a part; counted once."""
        whole = self._engine.catalog
        if whole.dialect != "duckdb":
            return Facts()
        if self._cached is None or self._cached[0] is not whole:
            self._cached = whole, self._count(whole)
        del catalog
        return self._cached[1]

    def _count(self, catalog: Catalog) -> Facts:
        small = [r for r in catalog.relations if r.rows is not None and 0 < r.rows <= _MOST_ROWS][:_MOST_COLUMNS]
        missing: dict[Cell, float] = {}
        zeros: dict[Cell, tuple[int, float, float]] = {}
        keys: list[Cell] = []
        for relation in small:
            columns = [column for column in relation.columns if not column.private][:_MOST_COLUMNS]
            if not columns:
                continue
            texts = [column for column in columns if is_short_text(column)][:_MOST_TEXTS]
            different = [f"count(DISTINCT {_quote(column.name)})" for column in texts]
            counted = [f"count({_quote(column.name)})" for column in columns]
            numbers = [c for c in columns if c.type in NUMBERS and not c.array and c.name not in relation.key]
            ranges = [item for column in numbers for item in _zeros_and_range(_quote(column.name))]
            asked = ", ".join(["count(*)", *counted, *different, *ranges])
            row = self._row(f"SELECT {asked} FROM {_quote(relation.name)}")
            if not row or not row[0]:
                continue
            values = iter(row)
            rows, filled, distinct = next(values), [*islice(values, len(columns))], [*islice(values, len(texts))]
            missing |= {
                (relation.name, column.name): 1 - count / rows
                for column, count in zip(columns, filled, strict=True)
                if count < rows
            }
            for column, none, least, most in zip(numbers, values, values, values, strict=True):
                if 0 < none <= _FEW_ZEROS * rows and least > 1:  # counts begin 0, 1
                    zeros[relation.name, column.name] = int(none), least, most
            unique = [
                column.name for column, count in zip(texts, distinct, strict=True) if count == rows >= _LEAST_ROWS
            ]
            keys += [(relation.name, name) for name in unique]
        few = len(small) <= _MOST_RELATED
        return Facts(missing, zeros, dict(self._references(small, keys[:_MOST_KEYS])) if few else {})

    def _references(self, relations: list[Relation], keys: list[Cell]) -> Iterator[tuple[Cell, Reference]]:
        for relation in relations:
            declared = {name for own, _, _ in relation.foreign_keys for name in own} | set(relation.key)
            open_ = [c for c in relation.columns if is_short_text(c) and c.name not in declared][:_MOST_COLUMNS]
            found: dict[str, Reference] = {}
            for other, key in keys if open_ else ():
                if other == relation.name:
                    continue
                inside = [f"avg(({_quote(c.name)} IN (SELECT {_quote(key)} FROM {_quote(other)}))::int)" for c in open_]
                shares = self._row(f"SELECT {', '.join(inside)} FROM {_quote(relation.name)}") or [0] * len(open_)
                for column, share in zip(open_, shares, strict=True):
                    if (share or 0) >= max(_LEAST_SHARE, found[column.name].share if column.name in found else 0):
                        found[column.name] = Reference(other, key, share)
            yield from (((relation.name, name), reference) for name, reference in found.items())

    def _row(self, query: str) -> list[float] | None:
        try:
            rows = self._engine.run(query, options=options_of_turn(self._options)).rows
        except AlmanaqError:
            return None
        return [value or 0 for value in rows[0]] if rows else None


def _zeros_and_range(column: str) -> tuple[str, str, str]:
    """Return what counts the zeros of a column, and finds the least and the greatest of its other numbers."""
    return f"count_if({column} = 0)", f"min({column}) FILTER ({column} <> 0)", f"max({column})"


def is_short_text(column: Column) -> bool:
    """Return whether a column holds names or the like, which may be shown."""
    return column.type == "text" and not column.array and not column.private and column.kind is not ColumnKind.FREE_TEXT


def _quote(name: str) -> str:
    return quote_name(name, "duckdb")
