"""Generators that look at nothing, or hardly: what every other must beat.

The seam hands them more than they look at, hence the unused arguments.
"""

# ruff: noqa: ARG002

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from almanaq.corpus.dataset import Question
from almanaq_bench.generation.protocols import Asked, Reply


@dataclass(frozen=True)
class Constant:
    """Always says the same."""

    name: str
    text: str
    model: str = ""
    prompts: Mapping[str, str] = field(default_factory=dict)

    async def reply(self, asked: Asked) -> Reply:
        """Return the same reply to all."""
        return Reply(self.text)


@dataclass(frozen=True)
class FirstCell:
    """Says the first cell of the best table; for SQL selects it."""

    name: str = "first-cell"
    model: str = ""
    prompts: Mapping[str, str] = field(default_factory=dict)

    async def reply(self, asked: Asked) -> Reply:
        """Return the first cell of the best table that has one."""
        if asked.role == "verify":
            return Reply("true")
        for table in asked.tables:
            if asked.role == "sql" and table.header:
                column, name = (text.replace('"', '""') for text in (table.header[0], table.id.table))
                return Reply(f'SELECT "{column}" FROM "{name}" LIMIT 1')
            cell = next((cell for row in table.rows for cell in row if cell.strip()), "")
            if cell:
                return Reply(cell)
        return Reply("")


def majority(questions: Sequence[Question]) -> Constant:
    """Return the generator that always says the most frequent gold answer of these questions: a bound, not a method."""
    counts = Counter(question.answer.strip().lower() for question in questions)
    return Constant("majority", counts.most_common(1)[0][0] if counts else "")
