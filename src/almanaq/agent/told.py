"""What a reply has told already of the rows it speaks of, so that nobody reads it twice."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from almanaq.agent.responder import quoted, said_cell

if TYPE_CHECKING:
    from almanaq.agent.response import Response
    from almanaq.suql.result import Evidence


def rows_told(response: Response) -> bool:
    """Return whether the reply holds every cell of every row, as replies write cells; NULLs need not be told."""
    cells = {
        said_cell(column, value)
        for row in response.rows
        for column, value in zip(response.columns, row, strict=True)
        if value is not None
    }
    return bool(response.rows) and all(_stands_in(cell, response.answer) for cell in cells)


def untold(quotes: Sequence[Evidence], answer: str) -> list[Evidence]:
    """Return the quotes that the reply does not hold."""
    return [quote for quote in quotes if quoted(quote) not in answer]


def _stands_in(cell: str, text: str) -> bool:
    """Return whether a cell stands in a text, and not as a part of another word or number."""
    return re.search(rf"(?<![\w.]){re.escape(cell)}(?!\w)", text) is not None
