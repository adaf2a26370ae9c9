"""Why a table was found: the text that is indexed of it, and the words of the question in its fields and cells."""

from __future__ import annotations

from collections.abc import Sequence

from almanaq.corpus.serialize import Field, field_text
from almanaq.corpus.table import Table
from almanaq.retrieval.words import Analyzer

_CHARS = 160  # of a field's text that are shown
_CELLS = 6  # matching cells that are shown


def explained(question: str, table: Table, fields: Sequence[Field]) -> list[str]:
    """Give lines: each declared field's text with the question's terms in it, then the cells with most of them."""
    analyzer = Analyzer()
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


def matching_cells(asked: Sequence[str] | dict[str, None], table: Table, analyzer: Analyzer) -> list[str]:
    """Give cells as `row 3, column: text`, those with most of the asked terms first."""
    scored: list[tuple[int, int, str]] = []
    for number, row in enumerate(table.rows, 1):
        for column, cell in zip(table.header, row, strict=True):
            shared = sum(term in asked for term in set(analyzer.terms(cell)))
            if shared:
                scored.append((-shared, len(scored), f"row {number}, {column or 'unnamed column'}: {cell[:_CHARS]}"))
    return [text for _, _, text in sorted(scored)[:_CELLS]]
