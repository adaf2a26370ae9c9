"""Comparatives: what "cheaper" or "with more reviews" orders by, and the condition it makes beside rows shown."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from sqlglot import exp

from almanaq.agent.history import Shown
from almanaq.agent.local_old import sql, trees
from almanaq.agent.local_old.frame import Term, ranks
from almanaq.agent.local_old.lexicon import REWRITES
from almanaq.agent.local_old.recognize.vocabulary import Vocabulary
from almanaq.agent.local_old.search.linking import link
from almanaq.agent.local_old.search.wishes import Wishes
from almanaq.suql.catalog.relations import Relation

Lookup = Callable[[str], Sequence[Any]]
"""Runs a query without text functions and gives its first column."""

_ROW = re.compile(
    r"\bthan (?:that|this|it|them|those|these|her|him|the (?:first|second|third|last)(?: one)?)\b", re.IGNORECASE
)


def superlative(question: str) -> str:
    """Return a question with its comparative as the superlative of the same meaning."""
    plain = _ROW.sub("", question.replace("\u2019", "'"))
    for pattern, into in REWRITES:
        changed, count = pattern.subn(into, plain, count=1)
        if count:
            return changed
    return plain


def order_of(text: str, vocabulary: Vocabulary, main: Relation) -> tuple[tuple[Term, bool], ...]:
    """Return what a superlative over the rows of a relation orders by; () when no column of it can tell."""
    order = Wishes(link(text, vocabulary), vocabulary, main).columns.order
    return tuple((item, down) for item, down in order if item.place is not None and item.place.relation == main)


def beyond(item: Term, descending: bool, shown: Shown, lookup: Lookup) -> exp.Expr | str:
    """Return the condition that a row has more (or less) than each of the rows shown; a sentence when none can have."""
    assert item.place is not None
    own = sql.column(item.place, False)
    rows = trees.write(exp.select(own).from_(sql.name(shown.relation)).where(trees.only(shown)))
    values = [v for v in lookup(rows) if v is not None]
    if not values:
        return f"The rows shown have no {item.place.column.name} to compare with."
    if item.place.kind == "text":
        return _on_scale(item, descending, [str(v) for v in values])
    bound = max(values) if descending else min(values)
    return (exp.GT if descending else exp.LT)(this=trees.parsed(own), expression=trees.literal(bound))


def _on_scale(item: Term, descending: bool, values: Sequence[str]) -> exp.Expr | str:
    """Compare along a scale of words, which the item's CASE ranks."""
    assert item.place is not None
    rank_of = ranks(item.place)
    known = [rank_of[v] for v in values if v in rank_of]
    bound = (max(known) if descending else min(known)) if known else None
    better = [v for v, rank in rank_of.items() if bound is not None and (rank > bound if descending else rank < bound)]
    if not better:
        end = "highest" if descending else "lowest"
        return (
            f"Nothing goes beyond {', '.join(dict.fromkeys(values))}: that is the {end} {item.place.column.name} here."
        )
    column = exp.column(exp.to_identifier(item.place.column.name))
    return trees.one_of(column, better)
