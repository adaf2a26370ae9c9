"""Quotes found again in the passages they are said to come from; one that is not there is dropped."""

from __future__ import annotations

import re
from collections.abc import Sequence

from almanaq.models.parts import Piece
from almanaq.models.protocols import Quote
from almanaq.models.spending import record_dropped_quotes

_MOST = 3


def located(quotes: Sequence[tuple[int, str]], pieces: Sequence[Piece]) -> tuple[tuple[Quote, ...], int]:
    """Return the quotes that stand in the pieces shown, with their places in the document, and how many do not.

    Args:
        quotes: (number of the piece as shown, from 1 on; words). White space and case may differ from the document;
            a wrong number is forgiven when the words stand in another piece.
    """
    found: list[Quote] = []
    dropped = 0
    for number, words in quotes[:_MOST]:
        first = [pieces[number - 1]] if 1 <= number <= len(pieces) else []
        match = next((quote for piece in [*first, *pieces] if (quote := _find(words, piece)) is not None), None)
        if match is None:
            dropped += 1
        elif match not in found:
            found.append(match)
    if dropped:
        record_dropped_quotes(dropped)
    return tuple(found), dropped


def _find(words: str, piece: Piece) -> Quote | None:
    wanted = words.strip().strip('"“”').strip()
    if not wanted:
        return None
    start = piece.text.find(wanted)
    if start >= 0:
        return Quote(piece.passage, piece.start + start, wanted)
    pattern = r"\s+".join(re.escape(word).replace("\u2039", "[\u2039<]") for word in wanted.split())
    match = re.search(pattern, piece.text, re.IGNORECASE)
    return None if match is None else Quote(piece.passage, piece.start + match.start(), match[0])
