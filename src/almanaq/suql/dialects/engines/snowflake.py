"""Snowflake: a pattern that sqlglot writes has to match the whole text, and has no groups like `(?:…)`."""

from __future__ import annotations

from almanaq.suql.dialects.engines.description import Description

SNOWFLAKE = Description(
    dialect="snowflake",
    division="CAST(({0} - MOD({0}, {1})) / {1} AS BIGINT)",
    match="REGEXP_INSTR({text}, {pattern}, 1, 1, 0, '{flags}') > 0",
    member="ARRAY_CONTAINS(CAST({value} AS VARIANT), {array})",
    flags_in_pattern=False,
    groups=False,
    filters=False,
    truth=False,
    escapes=False,
    numbers_want_order=True,
)
