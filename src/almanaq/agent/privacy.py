"""Which replies must not reach a language model: those that show private columns (semantics 16)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from almanaq.agent.engine_protocol import QueryEngine
from almanaq.agent.history import History, Turn
from almanaq.suql.catalog.relations import Catalog


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


def shows_private(suql: str, engine: QueryEngine, links: Sequence[tuple[str, str, tuple[str, ...]]] = ()) -> bool:
    """Return whether the rows of a query that ran, the quotes they rest on, or its links show private values.

    Args:
        links: the trace's: column, literal, and the values that it was taken for.
    """
    private = private_columns(engine.catalog)
    return any(column in private for column, _, _ in links) or bool(private and engine.private_columns(suql))
