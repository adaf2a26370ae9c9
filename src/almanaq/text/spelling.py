"""How far two spellings of a word are apart, and how far they may be."""

from __future__ import annotations

from jellyfish import damerau_levenshtein_distance


def edit_distance(left: str, right: str, limit: int) -> int:
    """Return the edits (insert, delete, replace, swap neighbours) between two words, or limit + 1 when there are more.

    >>> edit_distance("recieve", "receive", 2)
    1
    >>> edit_distance("cat", "restaurant", 2)
    3
    """
    if abs(len(left) - len(right)) > limit:
        return limit + 1
    return min(limit + 1, damerau_levenshtein_distance(left, right))


def tolerance(word: str) -> int:
    """Return how many edits still spell the same word: none below 5 letters, 1 below 8, else 2.

    >>> tolerance("cat"), tolerance("pizza"), tolerance("restaurant")
    (0, 1, 2)
    """
    return 0 if len(word) < 5 else 1 if len(word) < 8 else 2
