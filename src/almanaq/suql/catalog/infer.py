"""The kind of a column that nobody declared, guessed from its type and its values; `almanaq schema` prints it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from almanaq.suql.catalog.relations import Column, ColumnKind

PROSE_WORDS = 12
"""Text with at least so many words per value is prose …"""
SENTENCE_WORDS = 7
"""… and so is text with so many words whose values mostly end as sentences do: addresses and titles rarely do."""
DISTINCT_SHARE = 0.5
"""Prose differs from row to row: at least this share of the sampled values is distinct."""
ENUM_VALUES = 50
"""An inferred ENUM has at most so many values, each of them short, and each used five times on average."""
_ENUM_REPEATS = 5
_ENUM_CHARACTERS = 40


@dataclass(frozen=True, slots=True)
class ColumnSample:
    """What inference looks at.

    Attributes:
        values: non-null values of some rows, in row order; of an array, its elements.
        distinct: every distinct value of the whole column, the commonest first, where few were found; None: unknown.
        total: non-null values in the whole column, when `distinct` is given.
    """

    values: tuple[str, ...]
    distinct: tuple[str, ...] | None = None
    total: int = 0


def infer_kind(column: Column, sample: ColumnSample) -> Column:
    """Give the column with the kind that its values suggest; only undeclared columns of text are changed."""
    if column.kind is not ColumnKind.STRUCTURED or column.type != "text":
        return column
    if is_prose(sample.values):
        return replace(column, kind=ColumnKind.FREE_TEXT)
    if sample.distinct is not None and is_enumerable(sample.distinct, sample.total):
        return replace(column, kind=ColumnKind.ENUM, values=sample.distinct)
    return column


def is_prose(values: Iterable[str]) -> bool:
    """Tell whether values read like prose: long, and mostly distinct."""
    texts = [text for text in values if text.strip()]
    if not texts or len(set(texts)) < DISTINCT_SHARE * len(texts):
        return False
    words = sum(len(text.split()) for text in texts) / len(texts)
    ended = sum(text.rstrip().endswith((".", "!", "?", "…", '."', ".”")) for text in texts)
    return words >= PROSE_WORDS or (words >= SENTENCE_WORDS and ended * 2 >= len(texts))


def is_enumerable(distinct: tuple[str, ...], total: int) -> bool:
    """Tell whether the distinct values of a column are few, short and often repeated."""
    few = 2 <= len(distinct) <= ENUM_VALUES and len(distinct) * _ENUM_REPEATS <= total
    return few and all(0 < len(value) <= _ENUM_CHARACTERS for value in distinct)
