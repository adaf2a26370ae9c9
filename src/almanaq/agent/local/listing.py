"""Lists: whether a turn asks for all rows, and the queries that give or count all that a LIMIT cut."""

from __future__ import annotations

from sqlglot import exp

from almanaq.agent.local.followups import asks_to_list
from almanaq.agent.local.spec import read_spec, select_without_limit


def asks_for_list(question: str) -> bool:
    """Return whether a turn asks to list the rows that were found."""
    return asks_to_list(question)


def without_limit(suql: str, dialect: str) -> str:
    """Return a query without its LIMIT; as it is where it is no plain SELECT."""
    tree = select_without_limit(suql, dialect)
    return suql if tree is None else tree.sql(dialect, normalize_functions=False)


def count_all(suql: str, found: int, dialect: str) -> str | None:
    """Return the query that counts all rows, where a LIMIT that nobody asked for kept so many of them; else None."""
    spec = read_spec(suql, dialect)
    tree = select_without_limit(suql, dialect)
    if spec is None or tree is None or spec.limit != found or spec.gives_figures or spec.distinct or spec.offset:
        return None
    if spec.order or tree.find(exp.Anonymous) is not None:
        return None
    tree.set("expressions", [exp.Count(this=exp.Star())])
    return tree.sql(dialect, normalize_functions=False)
