"""The rows of a text projection held as columns: a million of them take megabytes, where objects take gigabytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from almanaq.suql.execution.columns import boolean_column, id_column, text_column
from almanaq.suql.execution.spellings import Spellings
from almanaq.suql.plan.stages import ROW, TextStage

if TYPE_CHECKING:
    from almanaq.suql.execution.stage_rows import StageRow

_AT_ONCE = 10_000
_NUMBER = "_number"


class ProjectedRows:
    """Takes rows in whatever order they are answered, and gives the table that later SQL joins on ROW.

    Args:
        spellings: give one spelling to all equals of a value, in the order of the source.
    """

    def __init__(self, stage: TextStage, spellings: Spellings) -> None:
        self._spellings = spellings
        self._texts = [item.site.id for item in stage.inputs] if stage.predicate is None else []
        self._verdicts = [name for item in stage.inputs for name in item.site.columns[1:]] if self._texts else []
        self._waiting: list[StageRow] = []
        self._pieces: list[pa.Table] = []

    def add(self, rows: Sequence[StageRow]) -> None:
        """Take rows."""
        self._waiting += rows
        if len(self._waiting) >= _AT_ONCE:
            self._pack()

    def table(self) -> pa.Table:
        """Return all rows in source order."""
        self._pack()
        whole = pa.concat_tables(self._pieces)
        self._pieces = []
        numbers = whole.column(_NUMBER).to_numpy()
        if len(numbers) > 1 and (np.diff(numbers) < 0).any():
            whole = whole.take(_indices(np.argsort(numbers, kind="stable")))
        columns = {ROW: whole.column(ROW)}
        for name in self._texts:
            columns[name] = self._spellings.column(whole.column(name))
        columns |= {name: whole.column(name) for name in self._verdicts}
        return pa.table(columns)

    def _pack(self) -> None:
        rows, self._waiting = self._waiting, []
        if self._pieces and not rows:
            return
        columns: dict[str, pa.Array] = {_NUMBER: id_column([row.number for row in rows])}
        columns[ROW] = id_column([row.row for row in rows])
        columns |= {name: text_column([row.values.get(name) for row in rows]) for name in self._texts}
        columns |= {name: boolean_column([row.values.get(name) for row in rows]) for name in self._verdicts}
        self._pieces.append(pa.table(columns))


def unsorted(stage: TextStage, table: pa.Table) -> list[str]:
    """Say how many rows have no answer by which they are sorted: they come last, and may be the first in truth."""
    warnings = []
    for item in stage.inputs:
        unknown = table.column(item.site.id).null_count if item.site.id in stage.sorts else 0
        if unknown:
            asked = item.site.question.name if item.site.question.is_string else "what is asked of them"
            warnings.append(
                f"{unknown:,} of {table.num_rows:,} rows have no answer to {asked!r}, by which they are sorted"
            )
    return warnings


def _indices(order: Any) -> pa.Array:
    buffer = pa.py_buffer(order.astype(np.int64).tobytes())
    return pa.Array.from_buffers(pa.int64(), len(order), [None, buffer])
