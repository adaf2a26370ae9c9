"""What a conversation remembers of its turns, and what of them a language model may be shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from almanaq.suql.catalog.relations import Catalog

TurnKind = Literal["talk", "world", "new", "detail"]
"""What an asker does with a turn; a "detail" of rows that were shown is nothing from which the next turn goes on."""

NO_DATA: frozenset[TurnKind] = frozenset({"talk", "world"})
"""Turns that need nothing of the source."""

Key = tuple[str, str]
"""(name of a column, value as text) that finds a shown row again."""

Value = str | int | float

_MOST_VALUES, _VALUE_LENGTH = 6, 60


@dataclass(frozen=True, slots=True)
class Shown:
    """The rows that a reply showed, in order, and how a query finds each again.

    Attributes:
        relation: the relation they are rows of.
        columns: the columns that identify a row, its declared key where there is one; `keys` their values per row.
        names: what each row was called in the reply.
        values: for each row, its other short cells, and those that its query compares or sorts by: (column, value).
    """

    relation: str
    columns: tuple[str, ...]
    keys: tuple[tuple[Value, ...], ...]
    names: tuple[str, ...]
    values: tuple[tuple[Key, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Turn:
    """One question with its reply.

    Attributes:
        suql: the query that ran, None when none did.
        entities: for each row shown, in order, the column and value that name it.
        shown: the same rows with their keys; None when the rows are no rows of one relation.
        meant: the query before one of its conditions was left out to find rows; None when none was.
        private: its rows show private columns, so no language model may see what it found.
        marks: the columns that were private when that was decided; () where that is unknown.
        asked: the complete question, where the turn continues an earlier one.
        of: the query whose rows its figures summarize, where it refers to rows found before.
        values: for each row shown that is no row of one relation, its other short cells: (column, value).
        offered: the queries that were offered to choose from, where none was sure.
    """

    question: str
    suql: str | None = None
    answer: str = ""
    status: str = "answered"
    entities: tuple[Key, ...] = ()
    kind: TurnKind = "new"
    shown: Shown | None = None
    meant: str | None = None
    private: bool = False
    asked: str = ""
    of: str = ""
    offered: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    values: tuple[tuple[Key, ...], ...] = ()


History = tuple[Turn, ...]
"""The turns of a conversation, the oldest first."""


def short_cells(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> tuple[tuple[Key, ...], ...]:
    """Return the short cells of each row with their columns; of more than six, the last ones."""
    found = []
    for row in rows:
        cells = [(column, " ".join(str(v).split())) for column, v in zip(columns, row, strict=True) if v is not None]
        found.append(tuple((column, text) for column, text in cells if len(text) <= _VALUE_LENGTH)[-_MOST_VALUES:])
    return tuple(found) if any(found) else ()


def private_columns(catalog: Catalog) -> tuple[str, ...]:
    """Return the columns that are private now, as `relation.column`."""
    return tuple(f"{r.name}.{c.name}" for r in catalog.relations for c in r.columns if c.private)


def judge_turns(turns: Iterable[Turn], catalog: Catalog) -> History:
    """Return turns as they may be shown to a language model at this moment.

    A turn was judged by the columns that were private when it was made. One from before another column was marked may
    hold that column's values in any part of it, so it is private as a whole.
    """
    now = set(private_columns(catalog))
    return tuple(turn if now.issubset(turn.marks) else replace(turn, private=True) for turn in turns)
