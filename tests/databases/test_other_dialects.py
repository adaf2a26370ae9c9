"""The SQL that engines without a server here would be sent: golden where it matters, an error where they cannot."""

from __future__ import annotations

import pytest
import sqlglot

from almanaq.errors import UnsupportedError
from almanaq.suql.execution.differences import write_differences
from almanaq.suql.syntax.dialect import suql_dialect

DIALECTS = ("mysql", "trino", "clickhouse", "snowflake", "bigquery", "databricks")
DIVIDED = {
    "mysql": "CAST((a - a % b) / b AS SIGNED)",
    "trino": "(a / b)",
    "clickhouse": "intDiv(a, b)",
    "snowflake": "CAST((a - a % b) / b AS BIGINT)",
    "bigquery": "DIV(a, b)",
    "databricks": "(a DIV b)",
}


def written(sql: str, dialect: str) -> str:
    """Give a query of ours as an engine gets it; `//` stands for a division of integers, which types tell."""
    tree = suql_dialect().parse(sql)[0]
    assert tree is not None
    tree = tree.transform(
        lambda n: sqlglot.exp.IntDiv(this=n.this, expression=n.expression) if isinstance(n, sqlglot.exp.Div) else n
    )
    return write_differences(tree, dialect).sql(dialect, unsupported_level=sqlglot.ErrorLevel.RAISE)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_integers_are_divided_towards_zero(dialect: str) -> None:
    assert written("SELECT a / b FROM t", dialect) == f"SELECT {DIVIDED[dialect]} FROM t"


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("direction", ["ASC", "DESC"])
def test_nulls_come_last(dialect: str, direction: str) -> None:
    sql = written(f"SELECT a FROM t ORDER BY a {direction} LIMIT 3", dialect)
    smallest = {"mysql", "bigquery", "databricks"}  # NULL sorts before every value: first under ASC
    last_of_themselves = dialect in {"trino", "clickhouse"}
    said = not last_of_themselves and direction == ("ASC" if dialect in smallest else "DESC")
    assert ("NULL" in sql) == said
    assert "LIMIT 3" in sql


@pytest.mark.parametrize("dialect", ["mysql", "bigquery", "snowflake"])
def test_a_filter_of_an_aggregate_moves_inside(dialect: str) -> None:
    sql = written("SELECT count(*) FILTER (WHERE a > 2), sum(b) FILTER (WHERE a > 2) FROM t", dialect)
    assert sql == "SELECT COUNT(CASE WHEN a > 2 THEN 1 END), SUM(CASE WHEN a > 2 THEN b END) FROM t"


@pytest.mark.parametrize("expression", ["ARRAY['x']", "array_agg(a)", "a = ANY(b)", "b[1]"])
def test_an_engine_without_arrays_refuses_them(expression: str) -> None:
    with pytest.raises(UnsupportedError, match="no arrays"):
        written(f"SELECT {expression} FROM t", "mysql")
