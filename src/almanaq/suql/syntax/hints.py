"""What somebody may have meant by a word that is no SQL."""

from __future__ import annotations

import re

from almanaq.errors import nearest

_CLAUSES = (
    *("SELECT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "JOIN", "UNION", "WINDOW", "WITH"),
    "SUMMARIZE",
)


def clause_meant(text: str, place: int | None) -> str:
    """Return the end of a message that offers the clause which a word at a place, or the one before it, is meant for.

    >>> clause_meant("SELECT name FORM dogs", 17)
    '; did you mean FROM?'
    """
    if place is None:
        return ""
    words = [word[0] for word in re.finditer(r"\w+", text) if word.start() <= place]
    for word in words[-1:-3:-1]:
        near = nearest(word.upper(), _CLAUSES, most=1, alike=0.7) if word.upper() not in _CLAUSES else []
        if near:
            return f"; did you mean {near[0]}?"
    return ""
