"""What a conversation remembers of its turns."""

from __future__ import annotations

from dataclasses import dataclass

Key = tuple[str, str]
"""(name of a column, value as text) by which a row that was shown is found again."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One question with its reply.

    Attributes:
        suql: the query that ran, None when none did.
        entities: for each row shown, in order, the column and value that name it.
    """

    question: str
    suql: str | None = None
    answer: str = ""
    status: str = "answered"
    entities: tuple[Key, ...] = ()


History = tuple[Turn, ...]
"""The turns of a conversation, the oldest first."""
