"""ClickHouse: functions of its own for division, patterns and arrays."""

from __future__ import annotations

from almanaq.suql.dialects.engines.description import Description

CLICKHOUSE = Description(
    dialect="clickhouse",
    division="intDiv({}, {})",
    match="match({text}, {pattern})",
    member="has({array}, {value})",
)
