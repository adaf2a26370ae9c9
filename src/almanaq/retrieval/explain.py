"""Why a table was found: the text that is indexed of it, and the words of the question in its fields and cells."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from almanaq.corpus.serialize import Field, field_text
from almanaq.corpus.table import Table
from almanaq.text.index_terms import Analyzer

_CHARS = 160  # of a field's text that are shown
_CELLS = 6  # matching cells that are shown


def explained(question: str, table: Table, fields: Sequence[Field], analyzer: Analyzer | None = None) -> list[str]:
    """Return lines: each declared field's text with the question's terms in it, then the cells of the rows with most.

    Args:
        analyzer: makes terms as the index does; None: as an index does of which nothing else was said.
    """
    analyzer = analyzer or Analyzer()
    asked = dict.fromkeys(analyzer.terms(question))
    lines = []
    for name in fields:
        text = field_text(table, name)
        if not text:
            continue
        held = set(analyzer.terms(text))
        found = [term for term in asked if term in held]
        shown = " / ".join(text[:_CHARS].splitlines()) + ("…" if len(text) > _CHARS else "")
        lines.append(f"{name}: {shown}")
        lines.append(f"  matched: {', '.join(found) or 'nothing'}")
    if Field.CELLS in fields:
        lines.extend(f"  {cell}" for cell in matching_cells(asked, table, analyzer))
    return lines


def matching_cells(asked: Mapping[str, None], table: Table, analyzer: Analyzer) -> list[str]:
    """Return cells as `row 3, column: text`: those of the row with most of the asked terms first, and row by row."""
    scored: list[tuple[int, int, int, str, str]] = []
    for number, row in enumerate(table.rows, 1):
        found = [{term for term in analyzer.terms(cell) if term in asked} for cell in row]
        together = len(set().union(*found))
        for column, cell, shared in zip(table.header, row, found, strict=True):
            if shared:
                scored.append((-together, number, -len(shared), column or "unnamed column", cell))
    return [
        f"row {number}, {column}: {_around(cell, asked, analyzer)}"
        for _, number, _, column, cell in sorted(scored)[:_CELLS]
    ]


def _around(text: str, asked: Mapping[str, None], analyzer: Analyzer) -> str:
    """Return a text; of a long one the piece in which the first of the asked terms stands."""
    if len(text) <= _CHARS:
        return text
    words = re.finditer(r"\S+", text)
    found = next((word.start() for word in words if not asked.keys().isdisjoint(analyzer.terms(word.group()))), 0)
    start = max(0, min(found - _CHARS // 4, len(text) - _CHARS))
    return f"{'…' if start else ''}{text[start : start + _CHARS]}{'…' if start + _CHARS < len(text) else ''}"
