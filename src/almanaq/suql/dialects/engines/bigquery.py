"""BigQuery: no column's name has dots."""

from __future__ import annotations

from almanaq.suql.dialects.engines.description import Description


def _without_dots(name: str) -> str:
    return name.replace(".", "__")


BIGQUERY = Description(
    dialect="bigquery",
    division="DIV({}, {})",
    match="REGEXP_CONTAINS({text}, {pattern})",
    member="{value} IN UNNEST({array})",
    filters=False,
    spelled=_without_dots,
)
