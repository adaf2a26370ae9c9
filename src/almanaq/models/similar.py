"""Which of many values look most like a literal, by words and by groups of three letters."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from almanaq.text.words import stems


def trigrams(text: str) -> frozenset[str]:
    """Return the groups of three letters of a text, with its borders."""
    padded = f"  {text.casefold()} "
    return frozenset(padded[i : i + 3] for i in range(len(padded) - 2))


def similarity(one: str, other: str) -> float:
    """Return how alike two short texts look, from 0 to 2: shared stems, and shared groups of letters.

    >>> similarity("Italian", "italian food") > similarity("Italian", "Thai")
    True
    """
    a, b = trigrams(one), trigrams(other)
    words_a, words_b = set(stems(one)), set(stems(other))
    letters = len(a & b) / len(a | b)
    return letters + (len(words_a & words_b) / len(words_a | words_b) if words_a and words_b else 0.0)


def most_similar(literal: str, values: Sequence[str], most: int) -> tuple[str, ...]:
    """Return at most `most` of the values, those that look most like the literal, in their own order.

    >>> most_similar("italian", ["Thai", "Italian", "Korean"], 1)
    ('Italian',)
    """
    if len(values) <= most:
        return tuple(values)
    best = heapq.nlargest(most, range(len(values)), key=lambda i: (similarity(literal, values[i]), -i))
    return tuple(values[i] for i in sorted(best))
