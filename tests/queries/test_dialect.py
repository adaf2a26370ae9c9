"""What PostgreSQL's operators mean, on every engine."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest

from almanaq.errors import UnsupportedError

from .support import Asked, Row, arrays, texts


@pytest.fixture(scope="module")
def words(engine: str) -> Asked:
    return Asked(
        t={
            "id": [1, 2, 3, 4, 5],
            "name": texts("anna", "Zoe", "b_b", "line\nend", None),
            "body": texts(*["calm=Yes"] * 5),
            "day": pa.array([datetime.date(2024, 2, 29), None, None, None, datetime.date(1969, 12, 28)]),
        },
        l={"id": [1, 2, 3], "tags": arrays(["x", "y", None], [], None)},
    )


@pytest.mark.parametrize(
    ("condition", "ids"),
    [
        ("name ~ '^an'", [1]),
        ("name ~ 'N'", []),
        ("name ~* 'N'", [1, 4]),
        ("name !~ 'e'", [1, 3]),
        ("name ~ 'line.end'", [4]),
        (r"name ~ '\yend'", [4]),
        ("name ~ 'end$'", [4]),
        ("name ~ '^end'", []),
        ("name SIMILAR TO '(an|b_)%'", [1, 3]),
        ("name SIMILAR TO 'an'", []),
        ("name LIKE '%_b'", [3]),
        (r"name LIKE 'b\_b'", [3]),
        (r"name LIKE '%\_%'", [3]),
        ("name NOT LIKE '%n%'", [2, 3]),
        ("name ILIKE 'z%'", [2]),
        ("regexp_replace(name, 'n', 'x') = 'axna'", [1]),
        ("regexp_replace(name, 'n', 'x', 'g') = 'axxa'", [1]),
        ("name < 'a'", [2]),
        ("name > 'Z' AND name < 'b'", [1, 2]),
        ("extract(dow FROM day) = 4", [1]),
        ("day + interval '1 year' = date '2025-02-28'", [1]),
        ("date_trunc('week', day)::date = date '2024-02-26'", [1]),
        ("day - date '2024-02-01' = 28", [1]),
        ("(day::text || ' 23:00:00+02')::timestamptz::date = date '2024-02-29'", [1]),
    ],
)
def test_where(words: Asked, condition: str, ids: list[int]) -> None:
    sql = f"SELECT id FROM t WHERE answer(body, 'calm?') = 'Yes' AND {condition} ORDER BY id"
    assert [i for (i,) in words.rows(sql)] == ids


@pytest.mark.parametrize(
    ("expression", "values"),
    [
        ("tags[1]", ["x", None, None]),
        ("tags[-1]", [None, None, None]),
        ("tags[9]", [None, None, None]),
        ("tags[2:3]", [["y", None], [], None]),
        ("cardinality(tags)", [3, 0, None]),
        ("'y' = ANY(tags)", [True, False, None]),
        ("'z' = ANY(tags)", [None, False, None]),
        ("array_to_string(tags, '-')", ["x-y", "", None]),
        ("(SELECT count(*) FROM unnest(tags) AS u(v))", [3, 0, 0]),
    ],
)
def test_arrays(words: Asked, expression: str, values: list[object]) -> None:
    assert [v for _, v in words.rows(f"SELECT id, {expression} AS v FROM l ORDER BY id")] == values


def test_text_is_ordered_by_its_bytes(words: Asked) -> None:
    assert [n for (n,) in words.rows("SELECT name FROM t ORDER BY name")] == ["Zoe", "anna", "b_b", "line\nend", None]
    assert words.rows("SELECT min(name), max(name) FROM t") == [("Zoe", "line\nend")]


@pytest.mark.parametrize("pattern", [r"\bend", r"x\by"])
def test_a_backspace_in_a_pattern_is_a_mistake(words: Asked, pattern: str) -> None:
    with pytest.raises(UnsupportedError, match=r"\\y"):
        words.rows(f"SELECT id FROM t WHERE name ~ '{pattern}'")


def test_what_an_engine_s_patterns_cannot_say_is_an_error_with_a_name(words: Asked, engine: str) -> None:
    sql = "SELECT id FROM t WHERE name ~ 'n(?=a)'"
    if engine == "postgres":
        assert words.rows(sql) == [(1,)]
    else:
        with pytest.raises(UnsupportedError, match="look-around"):
            words.rows(sql)


@pytest.mark.parametrize(
    ("sql", "row"),
    [
        ("SELECT array_agg(DISTINCT 5 - id) FROM t", ([0, 1, 2, 3, 4],)),
        ("SELECT string_agg(DISTINCT left(name, 1), '/') FROM t WHERE id < 4", ("Z/a/b",)),
        ("SELECT lag(id, 1, 0.5) OVER (ORDER BY id) FROM t LIMIT 1", (0.5,)),
    ],
)
def test_aggregates_and_windows(words: Asked, sql: str, row: Row) -> None:
    assert words.rows(sql)[0] == row


def test_an_aggregate_over_a_query_around_its_own(words: Asked, engine: str) -> None:
    sql = "SELECT (SELECT max(t.id)) FROM t"
    if engine == "postgres":
        assert words.rows(sql) == [(5,)]
    else:
        with pytest.raises(UnsupportedError, match="around its own"):
            words.rows(sql)


def test_grouping_of_a_query_around(words: Asked) -> None:
    inner = "SELECT grouping(t.id) FROM (VALUES (1)) v(c)"
    sql = f"SELECT ({inner}) AS g, count(*) FROM t GROUP BY ROLLUP (t.id) ORDER BY 1, 2"
    assert words.rows(sql) == [(0, 1)] * 5 + [(1, 5)]
