"""What a text stage gives: the rows that passed, the quotes that they rest on, and counts of what was done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from almanaq.models.protocols import Quote
from almanaq.suql.accuracy.estimates import CountEstimate, Sample
from almanaq.suql.accuracy.targets import Inference
from almanaq.suql.plan.stages import SiteInput


@dataclass(frozen=True, slots=True)
class SiteQuote:
    """A quote that an answer rests on, with the input it belongs to; `text` is its passage where those are kept."""

    item: SiteInput
    question: str
    quote: Quote
    text: str | None = None


@dataclass(slots=True)
class StageRow:
    """A row that passed: its id, the computed columns known of it, the quotes they rest on, and its key columns.

    `payload` is that of its candidate. An `inferred` row was kept without asking about it, by the caller's choice.
    """

    number: int
    row: Any
    values: dict[str, Any]
    quotes: list[SiteQuote] = field(default_factory=list)
    key: dict[str, Any] = field(default_factory=dict)
    payload: tuple[pa.RecordBatch, int] | None = None
    inferred: bool = False


@dataclass
class StageCounts:
    """What a stage did, for EXPLAIN ANALYZE and the trace.

    `cells` says how many of each column were asked about; `inference` what was decided without asking,
    `estimate` how many rows pass where they were only counted, `sample` what rows drawn at random say.
    """

    candidates: int = 0
    passed: int = 0
    calls: int = 0
    cells: Counter[str] = field(default_factory=Counter)
    inference: Inference | None = None
    estimate: CountEstimate | None = None
    sample: Sample | None = None

    def add_asked(self, part: StageCounts) -> None:
        """Count what a run over some of the rows asked."""
        self.calls += part.calls
        self.cells.update(part.cells)


def payload_of(rows: Sequence[StageRow]) -> pa.Table:
    """Return the columns that came along with the candidates that became rows, in one table of these rows alone."""
    pieces = [batch.slice(number, 1) for batch, number in (row.payload for row in rows if row.payload is not None)]
    return pa.Table.from_batches(pieces).combine_chunks()
