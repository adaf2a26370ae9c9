"""What no table can tell is answered too: why, what the tables lack, and the columns that come nearest."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from almanaq.agent.describe import join_words, words
from almanaq.suql.catalog.relations import Catalog
from almanaq.text.words import stems

_MOST, _ALIKE = 5, 0.8
_NEAREST = re.compile(r"\b(?:nearest|closest)\b", re.IGNORECASE)
_ASKS_ADVICE = re.compile(r"\b(?:can|could|do|did|should|would|may|must|are|am|have) (?:i|we|you)\b", re.IGNORECASE)


def say_unanswerable(reason: str, left_out: Sequence[str], catalog: Catalog) -> str:
    """Return the reply to a request that the tables cannot fulfil.

    Args:
        reason: what a model says of it; "" where it says nothing.
        left_out: the wishes that no column expresses.
    """
    lines = [reason or "These tables cannot tell."]
    lines += say_missing([each for each in left_out if each.casefold() not in reason.casefold()])
    wished = f"{reason} {' '.join(left_out)}"
    near = (
        [] if _NEAREST.search(reason) else [n for n in nearest_columns(wished, catalog) if n not in reason.casefold()]
    )
    if reason:  # a model that gives one has seen the columns: one that shares a word with it misleads
        near = [name for name in near if set(stems(name)) <= set(stems(wished))]
    if near:
        lines.append(f"The nearest column{'s are' if len(near) > 1 else ' is'} {join_words(near)}.")
    return "\n".join(lines)


def say_missing(wishes: Sequence[str]) -> tuple[str, ...]:
    """Return the sentence that names wishes that no column expresses; none where there are none.

    What asks for advice, as "can I trust that", is no wish for data.
    """
    data = [f"“{each}”" for each in wishes if not _ASKS_ADVICE.search(each)]
    return (f"The tables do not hold: {', '.join(data)}.",) if data else ()


def nearest_columns(text: str, catalog: Catalog) -> tuple[str, ...]:
    """Return up to five columns in words, whose names and descriptions share most words with a text.

    Keys and references are none of them: they tell nothing but which row is meant.
    """
    asked = set(stems(text))
    scores: dict[str, float] = {}
    for relation in catalog.relations:
        keys = {*relation.key, *(name for own, _, _ in relation.foreign_keys for name in own)}
        for column in relation.columns:
            if column.name in keys:
                continue
            own, described = set(stems(words(column.name))), set(stems(column.description or ""))
            shared = sum(any(a == b or SequenceMatcher(None, a, b).ratio() >= _ALIKE for b in asked) for a in own)
            if shared or described & asked:
                scores[words(column.name)] = shared / max(1, len(own)) + len(described & asked) / 10
    return tuple(sorted(scores, key=lambda name: -scores[name])[:_MOST])
