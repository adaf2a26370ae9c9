"""What is worked out of a question once a turn, whoever asks for it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from functools import wraps
from typing import TypeVar

from almanaq.agent.local_old.recognize.vocabulary import Vocabulary

_KEPT = 12
"""Questions of which results are kept: that of a turn, and the one that it completes."""
T = TypeVar("T")


def once_a_turn(work: Callable[[str, Vocabulary], T]) -> Callable[[str, Vocabulary], T]:
    """Keep the last results of a function of a question with the vocabulary that they rest on."""

    @wraps(work)
    def kept(question: str, vocabulary: Vocabulary) -> T:
        key: tuple[str, str, date] = (work.__qualname__, question, vocabulary.index.today())
        known = vocabulary.kept
        if key not in known:
            found = work(question, vocabulary)
            same = [other for other in tuple(known) if other[0] == key[0]]
            for other in same[: max(0, len(same) - _KEPT + 1)]:
                known.pop(other, None)
            known[key] = found
            return found
        result: T = known[key]
        return result

    return kept
