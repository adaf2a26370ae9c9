"""MySQL and MariaDB: no arrays, no FILTER; the rows behind a group are gathered as JSON."""

from __future__ import annotations

from almanaq.suql.dialects.engines.description import Description

MYSQL = Description(
    dialect="mysql",
    division="CAST(({0} - MOD({0}, {1})) / {1} AS SIGNED)",
    match="REGEXP_INSTR({text}, {pattern}) > 0",
    filters=False,
    rows_of_groups="JSON_ARRAYAGG",
)
