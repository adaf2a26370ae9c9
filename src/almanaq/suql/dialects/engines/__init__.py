"""Engines that ibis reaches, one module each: what each is told otherwise than PostgreSQL."""

from __future__ import annotations

from almanaq.suql.dialects.engines.bigquery import BIGQUERY
from almanaq.suql.dialects.engines.clickhouse import CLICKHOUSE
from almanaq.suql.dialects.engines.databricks import DATABRICKS
from almanaq.suql.dialects.engines.description import Description
from almanaq.suql.dialects.engines.mysql import MYSQL
from almanaq.suql.dialects.engines.snowflake import SNOWFLAKE
from almanaq.suql.dialects.engines.trino import TRINO

DESCRIPTIONS: dict[str, Description] = {
    described.dialect: described for described in (MYSQL, TRINO, CLICKHOUSE, SNOWFLAKE, DATABRICKS, BIGQUERY)
}
"""Each engine's description by sqlglot's name of its dialect."""
