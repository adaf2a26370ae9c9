"""The SQL that engines without a server here would be sent: golden where it matters, an error where they cannot."""

from __future__ import annotations

import re

import pytest
import sqlglot

from almanaq.errors import UnsupportedError
from almanaq.suql.dialects.write import write_differences
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
    """Return a query of ours as an engine gets it; `//` stands for a division of integers, which types tell."""
    tree = suql_dialect().parse(sql)[0]
    assert tree is not None
    tree = tree.transform(
        lambda n: sqlglot.exp.IntDiv(this=n.this, expression=n.expression) if isinstance(n, sqlglot.exp.Div) else n
    )
    sql = write_differences(tree, dialect).sql(dialect, unsupported_level=sqlglot.ErrorLevel.RAISE)
    return re.sub(r'[`"]', "", sql)  # every name is quoted; that is shown by the golden statements


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


MATCHED = {
    "mysql": "REGEXP_INSTR(a, '(?s)^x\\\\by') > 0",
    "trino": "REGEXP_LIKE(a, '(?s)^x\\by')",
    "clickhouse": "match(a, '(?s)^x\\\\by')",
    "snowflake": "REGEXP_INSTR(a, '^x\\\\by', 1, 1, 0, 's') > 0",
    "bigquery": "REGEXP_CONTAINS(a, '(?s)^x\\\\by')",
    "databricks": "a RLIKE '(?s)^x\\\\by'",
}
MEMBER = {
    "trino": "CONTAINS(b, 'x')",
    "clickhouse": "has(b, 'x')",
    "snowflake": "ARRAY_CONTAINS(CAST('x' AS VARIANT), b)",
    "bigquery": "'x' IN UNNEST(b)",
    "databricks": "ARRAY_CONTAINS(b, 'x')",
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_pattern_is_found_anywhere_and_a_dot_is_any_sign(dialect: str) -> None:
    written_out = written(r"SELECT a FROM t WHERE a ~ '^x\yy'", dialect)
    assert (
        sqlglot.parse_one(written_out, read=dialect).args["where"].this
        == sqlglot.parse_one(f"SELECT {MATCHED[dialect]}", read=dialect).expressions[0]
    )


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("a ~ '(?=x)'", "have no '\\(\\?='"),
        ("a ~ b", "written out"),
        ("a ~ '[[:alpha:]]'", "classes"),
        ("regexp_replace(a, 'x', 'y') = 'z'", "regexp_replace"),
        ("a < ANY(b)", "nothing for"),
        ("EXISTS (SELECT 1 FROM unnest(b) AS u)", "unnest|arrays|UNNEST"),
    ],
)
def test_what_differs_everywhere_is_refused_by_name(dialect: str, condition: str, said: str) -> None:
    with pytest.raises(UnsupportedError, match=said):
        written(f"SELECT a FROM t WHERE {condition}", dialect)


@pytest.mark.parametrize("dialect", MEMBER)
def test_members_of_arrays(dialect: str) -> None:
    assert written("SELECT a FROM t WHERE 'x' = ANY(b)", dialect).endswith(f"WHERE {MEMBER[dialect]}")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_array_that_is_written_out_is_a_list(dialect: str) -> None:
    assert written("SELECT a FROM t WHERE a = ANY(ARRAY['x', 'y'])", dialect).endswith("WHERE a IN ('x', 'y')")


@pytest.mark.parametrize("dialect", ["trino", "snowflake"])
def test_a_truth_is_never_unknown(dialect: str) -> None:
    assert written("SELECT a FROM t WHERE a IS TRUE", dialect).endswith("WHERE COALESCE(a, FALSE)")
    assert written("SELECT a FROM t WHERE a IS NOT FALSE", dialect).endswith("WHERE NOT COALESCE(NOT (a), FALSE)")


@pytest.mark.parametrize("dialect", ["snowflake", "databricks"])
def test_row_numbers_have_an_order_where_one_is_wanted(dialect: str) -> None:
    assert "ROW_NUMBER() OVER (ORDER BY 1" in written("SELECT row_number() OVER () FROM t", dialect)
