"""What is worked out of a question once a turn, whoever asks for it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from functools import wraps
from typing import TypeVar

from almanaq.agent.local.schema_index import SchemaIndex

_KEPT = 4
"""Questions of which results are kept: that of a turn, and the one that it completes."""
T = TypeVar("T")


def once(work: Callable[[str, SchemaIndex], T]) -> Callable[[str, SchemaIndex], T]:
    """Keep the last results of a function of a question with the index that they rest on."""

    @wraps(work)
    def kept(question: str, index: SchemaIndex) -> T:
        key: tuple[str, str, date] = (work.__qualname__, question, index.today())
        known: dict[tuple[str, str, date], T] = index.kept
        if key not in known:
            found = work(question, index)
            same = [other for other in tuple(known) if other[0] == key[0]]
            for other in same[: max(0, len(same) - _KEPT + 1)]:
                known.pop(other, None)
            known[key] = found
            return found
        return known[key]

    return kept
