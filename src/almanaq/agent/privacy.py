"""Which replies must not reach a language model: those whose rows show private columns (semantics 16)."""

from __future__ import annotations

from collections.abc import Sequence

from almanaq.agent.engine_protocol import QueryEngine


def shows_private(suql: str, engine: QueryEngine, links: Sequence[tuple[str, str, tuple[str, ...]]] = ()) -> bool:
    """Return whether the rows of a query that ran, the quotes they rest on, or its links show private values.

    Args:
        links: the trace's: column, literal, and the values that it was taken for.
    """
    private = {f"{r.name}.{c.name}" for r in engine.catalog.relations for c in r.columns if c.private}
    return any(column in private for column, _, _ in links) or bool(private and engine.private_columns(suql))
