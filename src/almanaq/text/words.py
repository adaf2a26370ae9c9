"""Words of a text, their stems, those that carry little meaning; how alike words and short texts are; HTML entities."""

from __future__ import annotations

import heapq
import html
import re
import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from jellyfish import damerau_levenshtein_distance

QUESTION_WORDS = ("who", "whom", "whose", "what", "which", "where", "when", "why", "how")
"""The words that open a question."""

STOPWORDS = frozenset(
    """a an the this that these those i you he she it we they me him her us them my your his its our their is are was
    were be been being am do does did done have has had having will would can could should shall may might must of in on
    at to from for with by about as into over under and or but if then than so very too just also there here what which
    who whom whose when where why how any some all each not no nor""".split()
)
"""Words that sentences are compared without."""

SMALL_WORDS = frozenset("a an the my your our his her their on in for of with at some any".split())
"""Words that may stand inside a phrase of others."""

INDEX_STOPWORDS = frozenset(
    """a an and are as at be been by did do does for from had has have how in into is it its of on or that the their
    them then there these they this those to was were what when where which who whom whose why will with""".split()
)
"""Words of questions that say nothing of a table; dropped because in a small corpus they can look rare.

"No", "All" and "You" are not among them: tables are called so.
"""

_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)?")
_stemmers = threading.local()


def words(text: str) -> list[str]:
    """Return the words of a text, case folded, in order."""
    return [match[0].casefold().replace("\u2019", "'") for match in _WORD.finditer(text)]


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Return the stem of an English word (Porter 2): "dogs" and "dog" are one."""
    stemmer: Any = getattr(_stemmers, "english", None)
    if stemmer is None:
        import Stemmer

        # A stemmer keeps state while it works: one for each thread.
        stemmer = _stemmers.english = Stemmer.Stemmer("english")
    return str(stemmer.stemWord(word.removesuffix("'s")))


def stems(text: str) -> list[str]:
    """Return the stems of the words of a text that carry meaning, in order."""
    return [stem(word) for word in words(text) if word not in STOPWORDS]


def without_small(said: Sequence[str]) -> tuple[str, ...]:
    """Return words without the small ones inside them: "cheesecake for your birthday" is "cheesecake birthday"."""
    return tuple(word for i, word in enumerate(said) if word not in SMALL_WORDS or i in (0, len(said) - 1))


def letter_trigrams(text: str) -> frozenset[str]:
    """Return the three-letter groups of a text, its borders included."""
    padded = f"  {text.casefold()} "
    return frozenset(padded[i : i + 3] for i in range(len(padded) - 2))


def text_similarity(one: str, other: str) -> float:
    """Return the similarity of two short texts, from 0 to 2: shared stems plus shared letter groups."""
    a, b = letter_trigrams(one), letter_trigrams(other)
    words_a, words_b = set(stems(one)), set(stems(other))
    letters = len(a & b) / len(a | b)
    return letters + (len(words_a & words_b) / len(words_a | words_b) if words_a and words_b else 0.0)


def most_similar(literal: str, values: Sequence[str], most: int) -> tuple[str, ...]:
    """Return at most `most` of the values, the most similar to the literal, in their own order."""
    if len(values) <= most:
        return tuple(values)
    best = heapq.nlargest(most, range(len(values)), key=lambda i: (text_similarity(literal, values[i]), -i))
    return tuple(values[i] for i in sorted(best))


def edit_distance(left: str, right: str, limit: int) -> int:
    """Return the edits (insert, delete, replace, swap neighbours) between two words, at most limit + 1."""
    if abs(len(left) - len(right)) > limit:
        return limit + 1
    return min(limit + 1, damerau_levenshtein_distance(left, right))


def tolerance(word: str) -> int:
    """Return how many edits still spell the same word: none below 5 letters, 1 below 8, else 2."""
    return 0 if len(word) < 5 else 1 if len(word) < 8 else 2


_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")


def decode_entities(text: str) -> tuple[str, list[int]]:
    """Return a text with its HTML entities decoded, and for each character, and the end, its former place."""
    pieces: list[str] = []
    places: list[int] = []
    at = 0
    for match in _ENTITY.finditer(text):
        decoded = html.unescape(match[0])
        pieces += [text[at : match.start()], decoded]
        places += [*range(at, match.start()), *[match.start()] * len(decoded)]
        at = match.end()
    pieces.append(text[at:])
    places += range(at, len(text) + 1)
    return "".join(pieces), places
