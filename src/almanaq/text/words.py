"""Words of a text, their stems and offsets, and the similarity of short texts."""

from __future__ import annotations

import heapq
import re
import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from almanaq.text.stopwords import STOPWORDS

_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)?")
_stemmers = threading.local()


def words(text: str) -> list[str]:
    """Return the words of a text, case folded, in order.

    >>> words("The Dogs, and a bowl")
    ['the', 'dogs', 'and', 'a', 'bowl']
    """
    return [match[0].casefold().replace("\u2019", "'") for match in _WORD.finditer(text)]


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Return the stem of an English word (Porter 2): "dogs" and "dog" are one.

    >>> stem("dogs"), stem("walking")
    ('dog', 'walk')
    """
    stemmer: Any = getattr(_stemmers, "english", None)
    if stemmer is None:
        import Stemmer

        # A stemmer keeps state while it works: one for each thread.
        stemmer = _stemmers.english = Stemmer.Stemmer("english")
    return str(stemmer.stemWord(word.removesuffix("'s")))


def stems(text: str) -> list[str]:
    """Return the stems of the words of a text that carry meaning, in order.

    >>> stems("Which dogs are walking?")
    ['dog', 'walk']
    """
    return [stem(word) for word in words(text) if word not in STOPWORDS]


def letter_trigrams(text: str) -> frozenset[str]:
    """Return the three-letter groups of a text, its borders included."""
    padded = f"  {text.casefold()} "
    return frozenset(padded[i : i + 3] for i in range(len(padded) - 2))


def text_similarity(one: str, other: str) -> float:
    """Return the similarity of two short texts, from 0 to 2: shared stems plus shared letter groups.

    >>> text_similarity("Italian", "italian food") > text_similarity("Italian", "Thai")
    True
    """
    a, b = letter_trigrams(one), letter_trigrams(other)
    words_a, words_b = set(stems(one)), set(stems(other))
    letters = len(a & b) / len(a | b)
    return letters + (len(words_a & words_b) / len(words_a | words_b) if words_a and words_b else 0.0)


def most_similar(literal: str, values: Sequence[str], most: int) -> tuple[str, ...]:
    """Return at most `most` of the values, the most similar to the literal, in their own order.

    >>> most_similar("italian", ["Thai", "Italian", "Korean"], 1)
    ('Italian',)
    """
    if len(values) <= most:
        return tuple(values)
    best = heapq.nlargest(most, range(len(values)), key=lambda i: (text_similarity(literal, values[i]), -i))
    return tuple(values[i] for i in sorted(best))
