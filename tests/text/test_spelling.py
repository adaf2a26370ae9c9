"""Edits between words, against the plain recurrence."""

from __future__ import annotations

from functools import cache

from hypothesis import given
from hypothesis import strategies as st

from almanaq.text.words import edit_distance, tolerance

WORDS = st.text("abé", max_size=6)


@cache
def plain(left: str, right: str) -> int:
    """Return the edits by trying each at the end of both words; a pair of letters is swapped at most once."""
    if not left or not right:
        return len(left) + len(right)
    found = [plain(left[:-1], right) + 1, plain(left, right[:-1]) + 1]
    found.append(plain(left[:-1], right[:-1]) + (left[-1] != right[-1]))
    if left[-2:] == right[-2:][::-1] and len(left) > 1 and len(right) > 1:
        found.append(plain(left[:-2], right[:-2]) + 1)
    return min(found)


@given(WORDS, WORDS, st.integers(0, 3))
def test_edits_are_those_of_the_recurrence_up_to_the_limit(left: str, right: str, limit: int) -> None:
    assert edit_distance(left, right, limit) == min(plain(left, right), limit + 1)


def test_short_words_are_spelt_right_and_long_ones_may_have_two_edits() -> None:
    assert [tolerance("x" * letters) for letters in (1, 4, 5, 7, 8, 20)] == [0, 0, 1, 1, 2, 2]
