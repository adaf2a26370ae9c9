"""Answers as they are kept: what was asked, the query, the record, and the turn that a conversation goes on from."""

from __future__ import annotations

import io
import secrets
import time
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from almanaq.agent.history import Shown, Turn
from almanaq.encode import plain

if TYPE_CHECKING:
    import pyarrow as pa

Columns = frozenset[tuple[str, str]]
"""Columns of a source: (relation, column)."""
MOST_ROWS_BYTES = 256_000_000
MOST_KEPT_BYTES = 64_000_000
"""What the rows of one answer may take: in memory, where they are read again, and where they are kept."""


@dataclass(frozen=True)
class Answer:
    """One answer.

    Attributes:
        kind: `ask`, or `sql` for a query that somebody wrote.
        asked: the question, or the query.
        record: as it was given to the client.
        rows: all rows, as Parquet; None where no query ran.
        turn: what its conversation remembers; None of a query.
        made: seconds since 1970.
        columns: those whose values it may show, in whatever part of it; None where nobody knows.
    """

    id: str
    conversation: str
    kind: str
    asked: str
    model: str
    record: dict[str, Any]
    rows: bytes | None = None
    turn: Turn | None = None
    made: float = field(default_factory=time.time)
    columns: Columns | None = None

    @property
    def rows_missing(self) -> bool:
        """Whether fewer rows are kept than there were: `rows_kept` of the record says how many."""
        return "rows_kept" in self.record


def new_id() -> str:
    """Return an identifier that nobody guesses: whoever has the link may read the answer."""
    return secrets.token_urlsafe(12)


def turn_to_json(turn: Turn) -> dict[str, Any]:
    """Return a turn as plain values."""
    return asdict(turn)


def turn_from_json(kept: dict[str, Any]) -> Turn:
    """Return the turn that `turn_to_json` wrote."""
    shown = kept["shown"]
    if shown is not None:
        keys = tuple(tuple(key) for key in shown["keys"])
        values = tuple(tuple(map(tuple, row)) for row in shown.get("values", ()))
        shown = Shown(shown["relation"], tuple(shown["columns"]), keys, tuple(shown["names"]), values)
    entities = tuple((name, value) for name, value in kept["entities"])
    lists = {name: tuple(kept.get(name, ())) for name in ("offered", "marks")}
    return replace(Turn(kept["question"]), **{**kept, "entities": entities, "shown": shown, **lists})


def to_parquet(table: pa.Table) -> bytes:
    """Return rows as Parquet, the first of them where all would take too much."""
    return kept_rows(table)[0]


def kept_rows(table: pa.Table) -> tuple[bytes, int]:
    """Return rows as Parquet, and how many they are: fewer than there were where all would take too much.

    What Parquet has no type for stands there as text.
    """
    import pyarrow as pa

    for number, one in enumerate(table.schema):
        if one.type == pa.month_day_nano_interval() or pa.types.is_duration(one.type):
            texts = pa.array([plain(value) for value in table.column(number).to_pylist()], pa.string())
            table = table.set_column(number, one.name, texts)
    while (table.nbytes > MOST_ROWS_BYTES or len(data := _parquet(table)) > MOST_KEPT_BYTES) and table.num_rows:
        table = table.slice(0, table.num_rows // 2)
    return data, table.num_rows


def _parquet(table: pa.Table) -> bytes:
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    return buffer.getvalue()


def from_parquet(rows: bytes) -> pa.Table:
    """Return the rows that `to_parquet` wrote."""
    import pyarrow.parquet as pq

    return pq.read_table(io.BytesIO(rows))
