"""What a prompt shows of a table beside its columns: all rows of a small one, and how it writes typed values."""

from __future__ import annotations

from almanaq_bench.hybridqa.relation import INFO, TEXT, HybridRelation
from almanaq_bench.hybridqa.short_answer import written

MOST_ROWS = 20
"""Tables of at most so many rows are shown whole."""

_CELL, _SPELLINGS = 60, 3


def whole_table(relation: HybridRelation) -> list[list[str]]:
    """Return the header and the rows as the table writes them; [] for a table of more rows than are shown."""
    if relation.arrow.num_rows > MOST_ROWS:
        return []
    names = [name for name in relation.arrow.column_names if name not in relation.info_columns and name[-5:] != TEXT]
    rows = relation.arrow.select(names).to_pylist()
    return [names, *([written(name, row[name], relation)[:_CELL] for name in names] for row in rows)]


def spellings(relation: HybridRelation) -> list[str]:
    """Return a line for each typed column whose values the table writes in another way than a query compares them."""
    lines = []
    for name, known in relation.spelled.items():
        other = {value: text.strip() for value, text in known.items() if str(value) != text.strip()}
        if other and not name.endswith(INFO):
            shown = [f"{_compared(value)} (written {text!r})" for value, text in other.items()]
            lines.append(f'Column "{name}" holds {", ".join(shown[:_SPELLINGS])}')
    return lines


def _compared(value: object) -> str:
    return str(value) if isinstance(value, int | float) else f"'{value}'"
