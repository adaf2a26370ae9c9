"""Read candidates straight from a base table by row id."""

from __future__ import annotations

from dataclasses import replace

from almanaq.suql.plan.stages import TextBlock


def direct_rows(block: TextBlock) -> TextBlock:
    """Stream candidates from the one relation of FROM, and fetch those that pass by their row ids.

    Before: the candidates are copied to a temporary table with a number per row.
    After: keys and texts are streamed; no other column is moved until a row has passed.

    A row id names one row within a snapshot, so joining on it gives each row that passed exactly once.
    """
    return replace(block, direct=True) if block.row_id is not None else block
