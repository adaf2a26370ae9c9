"""Trino: LIKE has no escape of its own."""

from __future__ import annotations

from almanaq.suql.dialects.engines.description import Description

TRINO = Description(
    dialect="trino",
    division="({} / {})",
    match="REGEXP_LIKE({text}, {pattern})",
    member="CONTAINS({array}, {value})",
    truth=False,
    escapes=False,
)
