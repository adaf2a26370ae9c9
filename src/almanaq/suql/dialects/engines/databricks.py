"""Databricks: row_number() wants an order."""

from __future__ import annotations

from almanaq.suql.dialects.engines.description import Description

DATABRICKS = Description(
    dialect="databricks",
    division="({} DIV {})",
    match="{text} RLIKE {pattern}",
    member="ARRAY_CONTAINS({array}, {value})",
    numbers_want_order=True,
)
