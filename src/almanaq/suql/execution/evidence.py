"""Which quotes stand behind which row."""

from __future__ import annotations

import json
from collections import defaultdict

from almanaq.suql.execution.text_stage import SiteQuote, StageRow
from almanaq.suql.result import Evidence

_MOST_PER_AGGREGATE = 3


class EvidenceBook:
    """The quotes found by text stages, by block and row."""

    def __init__(self) -> None:
        self._quotes: dict[tuple[str, object], list[Evidence]] = defaultdict(list)

    def add(self, block: str, row: StageRow) -> None:
        """Keep the quotes of a row that passed or was read."""
        kept = self._quotes[block, row.row]
        for quote in row.quotes:
            evidence = _evidence(quote, row)
            if evidence not in kept:
                kept.append(evidence)

    def of(self, block: str, rows: object) -> tuple[Evidence, ...]:
        """Give the evidence of one row, or a few examples for the rows behind an aggregate."""
        if isinstance(rows, str) and rows.startswith("["):
            rows = json.loads(rows)  # where there are no arrays the rows come as JSON
        if not isinstance(rows, list):
            return tuple(self._quotes.get((block, rows), ()))
        found = (evidence for row in rows for evidence in self._quotes.get((block, row), ()))
        return tuple(evidence for evidence, _ in zip(found, range(_MOST_PER_AGGREGATE), strict=False))


def _evidence(found: SiteQuote, row: StageRow) -> Evidence:
    item, quote = found.item, found.quote
    key = ", ".join(str(row.key.get(name)) for name in item.key) if item.key else str(row.row)
    return Evidence(item.relation, key, item.column, quote.passage, quote.start, quote.text, found.question)
