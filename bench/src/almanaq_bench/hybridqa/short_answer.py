"""From rows to a short answer: the first value of the first row, as the table writes it (paper, section 6.1)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from typing import Any

from almanaq_bench.hybridqa.relation import HybridRelation


def short_answer(rows: Sequence[Sequence[Any]], columns: Sequence[str], relation: HybridRelation | None = None) -> str:
    """Return the short answer that rows hold; "" where there is none.

    HybridQA has one answer to a question, so the first row that is not NULL decides. A value of a typed column of
    `relation` is written as the table writes it, since a gold answer is words of the table or of a passage; a remark
    after a linked name is left out.
    """
    for row in rows:
        for name, value in zip(columns, row, strict=True):
            if text := written(name, value, relation):
                return text
    return ""


def written(name: str, value: Any, relation: HybridRelation | None) -> str:
    """Return a value as the table writes it, "" for none."""
    if value is None:
        return ""
    if relation is not None and not isinstance(value, list):
        written = relation.spelled.get(name, {}).get(value) or relation.named.get(name, {}).get(value)
        if written:
            return written.strip()
    return _plain(value)


def _plain(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, datetime) and value.time() == time():
        value = value.date()
    if isinstance(value, date) and not isinstance(value, datetime):
        return f"{value:%B} {value.day}, {value.year}"
    if isinstance(value, timedelta):
        return str(value)
    if isinstance(value, list | tuple):
        return _plain(value[0]) if value else ""
    return str(value).strip()
