"""Documents cut into parts that fit a model's context, so that a long one is read whole (semantics 5)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from almanaq.models.token_estimate import estimate_tokens

_BREAKS = (re.compile(r"\n\s*\n"), re.compile(r"(?<=[.!?])\s+"), re.compile(r"\s+"))
"""Where a long passage is cut, the best place first."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Words of one passage: `passages[passage][start : start + len(text)] == text`."""

    passage: int
    start: int
    text: str


def cut_into_parts(passages: Sequence[str], tokens: int) -> list[list[Piece]]:
    """Return parts of at most about `tokens` tokens each, which together hold every word, in order."""
    parts: list[list[Piece]] = []
    room = 0
    for number, passage in enumerate(passages):
        for start, text in _pieces(passage, tokens):
            size = estimate_tokens(text) + 6
            if not parts or size > room:
                parts.append([])
                room = max(tokens, size)
            parts[-1].append(Piece(number, start, text))
            room -= size
    return parts


def _pieces(text: str, tokens: int) -> Iterator[tuple[int, str]]:
    """Yield (start, words) of pieces of one passage, each of at most about `tokens` tokens."""
    start = 0
    limit = max(1, tokens * 4 - 32)
    while estimate_tokens(text[start:]) + 6 > tokens and len(text) - start > 1:
        width = _fitting(text, start, limit)
        end = _cut(text, start, start + width)
        yield start, text[start:end]
        start = end
    if text[start:]:
        yield start, text[start:]


def _fitting(text: str, start: int, limit: int) -> int:
    """Return how many characters from `start` on have at most `limit` bytes, at least one."""
    piece = text[start : start + limit]
    return max(1, len(piece.encode("utf-8", "replace")[:limit].decode("utf-8", "ignore")))


def _cut(text: str, start: int, end: int) -> int:
    """Return the best place to cut before `end`, not so early that parts become many."""
    if end >= len(text):
        return len(text)
    for pattern in _BREAKS:
        places = [match.end() for match in pattern.finditer(text, start, end)]
        if places and places[-1] > start + (end - start) // 2:
            return places[-1]
    return end
