"""HTML entities in texts: decoded for reading, with the place of every character in the text as it was."""

from __future__ import annotations

import html
import re

_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")


def decode_entities(text: str) -> tuple[str, list[int]]:
    """Return a text with its entities decoded, and for each character, and the end, its place in the given text.

    >>> decode_entities("isn&#039;t")
    ("isn't", [0, 1, 2, 3, 9, 10])
    """
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
