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

MOST_ROWS_BYTES = 16_000_000
"""What the rows of one answer may take where it is kept."""


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
    offered = tuple(kept.get("offered", ()))
    return replace(Turn(kept["question"]), **{**kept, "entities": entities, "shown": shown, "offered": offered})


def to_parquet(table: pa.Table) -> bytes:
    """Return rows as Parquet: the first of them, where all would take too much.

    What Parquet has no type for as text.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    while table.nbytes > MOST_ROWS_BYTES and table.num_rows > 1:
        table = table.slice(0, table.num_rows // 2)
    for number, one in enumerate(table.schema):
        if one.type == pa.month_day_nano_interval() or pa.types.is_duration(one.type):
            texts = pa.array([plain(value) for value in table.column(number).to_pylist()], pa.string())
            table = table.set_column(number, one.name, texts)
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    return buffer.getvalue()


def from_parquet(rows: bytes) -> pa.Table:
    """Return the rows that `to_parquet` wrote."""
    import pyarrow.parquet as pq

    return pq.read_table(io.BytesIO(rows))
