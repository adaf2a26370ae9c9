"""What a query gives back: rows, the evidence for them, and a trace of what it took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from almanaq.errors import DataError
from almanaq.models.spending import Line


@dataclass(frozen=True, slots=True)
class Evidence:
    """Words of a cell that an answer rests on.

    Attributes:
        relation, key, column: where the text stands; `key` is the row's declared key (or row id) as text.
        passage: which element of a text[] (0 for text); `start` the offset of `quote` in it.
        question: the question that was answered.
    """

    relation: str
    key: str
    column: str
    passage: int
    start: int
    quote: str
    question: str


@dataclass(frozen=True, slots=True)
class Trace:
    """What a query took. `text_calls` were made to the model, `cached_calls` were served from the reply cache.

    Attributes:
        candidate_rows: rows whose text was considered.
        unknown_calls: calls that failed after their retries; they satisfy nothing and show as NULL.
        exact: False when the user chose an approximation; `partial` True when a budget stopped the query.
        links: (column, literal, values it was linked to) for ENUM literals.
        columns_sent: (column, number of cells) that left the machine.
        physical_calls: requests that the server got, repeated ones and those that read parts of a text included.
        dropped_quotes: quotes of replies that do not stand in the text, and are no evidence.
        spending: calls (asked for, cached, physical), tokens and money for each stage of the plan and model.
    """

    text_calls: int = 0
    cached_calls: int = 0
    unknown_calls: int = 0
    candidate_rows: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    money: float | None = 0.0
    exact: bool = True
    partial: bool = False
    links: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    columns_sent: tuple[tuple[str, int], ...] = ()
    warnings: tuple[str, ...] = ()
    physical_calls: int = 0
    spending: tuple[Line, ...] = ()
    dropped_quotes: int = 0


@dataclass(frozen=True)
class Result:
    """The rows of a query.

    Attributes:
        table: the rows as Arrow.
        evidence: for each row, the quotes its text answers rest on; up to 3 for an aggregate row.
        suql: the query as it was given.
    """

    table: pa.Table
    evidence: tuple[tuple[Evidence, ...], ...]
    trace: Trace
    suql: str = ""
    _rows: list[tuple[Any, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        columns = [_python_values(name, column) for name, column in zip(self.columns, self.table.columns, strict=True)]
        object.__setattr__(self, "_rows", list(zip(*columns, strict=True)) if columns else [])

    @property
    def columns(self) -> Sequence[str]:
        """Names of the columns, in order."""
        return tuple(self.table.column_names)

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        """The rows as Python tuples."""
        return self._rows

    def arrow(self) -> pa.Table:
        """Give the rows as an Arrow table."""
        return self.table

    def df(self) -> Any:
        """Give the rows as a pandas DataFrame."""
        return self.table.to_pandas()


def _python_values(name: str, column: pa.ChunkedArray) -> list[Any]:
    """Give the values of a column; raise DataError for dates that Python has none for, as infinity."""
    try:
        return column.to_pylist()  # type: ignore[no-any-return]
    except (OverflowError, ValueError) as error:
        raise DataError(
            f"the column {name!r} holds a date or time outside the years 1 to 9999: write {name}::text"
        ) from error
