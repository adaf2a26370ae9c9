"""Each rule of the optimizer: what it does to a plan, and that it saves what it says while the rows stay the same."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
import pytest
from sqlglot import exp, parse_one

import almanaq
from almanaq.suql.optimizer import QUERY_RULES, RULES
from almanaq.suql.optimizer.query_rules import pushed_conditions
from almanaq.testing import FunctionModel

from .support import run

CALM = "answer(body, 'calm?') = 'Yes'"

EXAMPLES = {
    "unused_outputs": "SELECT count(*) FROM (SELECT city, answer(body, 'who?') AS a FROM t LIMIT 8) AS d",
    "exists_limit": "SELECT count(*) FROM t WHERE EXISTS (SELECT 1 FROM t AS s WHERE answer(s.body, 'calm?') = 'Yes')",
    "limited_arms": "SELECT answer(body, 'who?') AS a FROM t UNION ALL SELECT answer(body, 'calm?') FROM t LIMIT 1",
    "inner_joins": "SELECT t.id, s.id FROM t LEFT JOIN t AS s ON s.id = t.id + 1 AND answer(s.body, 'calm?') = 'Yes' "
    "WHERE s.stars < 2",
    "merged_derived_tables": f"SELECT id FROM (SELECT * FROM t WHERE {CALM}) AS d WHERE city = 'Oslo' LIMIT 1",
    "keyed_conditions": f"SELECT city, count(*) FROM t WHERE {CALM} GROUP BY city HAVING city = 'Oslo'",
    "pushed_conditions": "SELECT d.city, count(*) FROM (SELECT DISTINCT city, stars, answer(body, 'who?') AS a FROM t "
    "UNION SELECT city, stars, answer(body, 'calm?') FROM t) AS d WHERE d.city = 'Oslo' AND d.stars > 2 GROUP BY 1",
    "shown_groups": f"SELECT stars, count(*) FILTER (WHERE {CALM}) FROM t GROUP BY stars HAVING count(*) > 2",
    "weakest_condition": f"SELECT id FROM t WHERE (stars = 4 OR {CALM}) AND city = 'Oslo'",
    "text_filter": f"SELECT id FROM t WHERE city = 'Oslo' OR ({CALM} AND answer(body, 'loud?') = 'No')",
    "limit_stop": f"SELECT id FROM t WHERE {CALM} ORDER BY id DESC LIMIT 2",
    "exists_stop": "SELECT id FROM t WHERE stars = 4 AND EXISTS "
    "(SELECT 1 FROM t AS s WHERE s.city <> t.city AND answer(s.body, 'calm?') = 'Yes')",
    "late_projection": "SELECT summary(body) FROM t ORDER BY stars DESC, id LIMIT 3",
    "lazy_branches": f"SELECT id, CASE WHEN {CALM} AND stars < 4 THEN answer(body, 'who?') END, "
    "coalesce(phone, answer(body, 'phone?')) FROM t",
    "direct_rows": f"SELECT id, stars FROM t WHERE city = 'Oslo' AND {CALM}",
}
"""A query per rule."""


def without(name: str) -> tuple[tuple, tuple]:  # type: ignore[type-arg]
    """Return all rules but one, as `run` takes them."""
    return (
        tuple(rule for rule in RULES if rule.__name__ != name),
        tuple(rule for rule in QUERY_RULES if rule.__name__ != name),
    )


def only(name: str) -> tuple[tuple, tuple]:  # type: ignore[type-arg]
    """Return one rule, as `run` takes them."""
    return (
        tuple(rule for rule in RULES if rule.__name__ == name),
        tuple(rule for rule in QUERY_RULES if rule.__name__ == name),
    )


def test_every_rule_has_an_example() -> None:
    assert list(EXAMPLES) == [rule.__name__ for rule in (*QUERY_RULES, *RULES)]


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_rule_keeps_the_rows(name: str) -> None:
    sql = EXAMPLES[name]
    rows = [sorted(run(sql, *rules).rows) for rules in ((RULES, QUERY_RULES), without(name), only(name), ((), ()))]
    if "LIMIT" in sql and "ORDER" not in sql:  # any right row will do
        assert {len(r) for r in rows} == {1}
        return
    assert all(r == rows[0] for r in rows)


STAYS = {
    "stays": {"id": list(range(1, 13)), "kind": [1, 2, 3] * 4, "said": [*"nnnyyynynyyy"]},
    "notes": {"kind": [1, 2, 3, 1, 2, 3], "note": [*"pqprps"], "page": [1, 2, 3, 4, 5, 6]},
}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM stays s WHERE answer(said, 'q') = 'y' AND EXISTS (SELECT 1 FROM notes n WHERE n.kind = s.kind"
        " AND answer(n.note, 'q') = 'p') ORDER BY id LIMIT 2",
        "SELECT id FROM stays WHERE kind IN (SELECT kind FROM notes WHERE answer(note, 'q') = 'r')"
        " AND answer(said, 'q') = 'y' ORDER BY id LIMIT 2",
        "SELECT s.id, d.v FROM stays s LEFT JOIN (SELECT kind, coalesce(note, 'none') AS v, page FROM notes) d"
        " ON s.kind = d.kind AND d.page > 5 WHERE answer(s.said, 'q') <> 'z' ORDER BY 1, 2 LIMIT 5",
    ],
)
def test_no_rule_stops_or_merges_before_the_rows_are_decided(sql: str) -> None:
    """The rows are those that DuckDB gives with `answer` as a function of its own."""
    with almanaq.connect(STAYS, model=FunctionModel(lambda text, _: text), cache=False) as connection:
        found = connection.sql(sql).rows
    with duckdb.connect() as plain:
        for name, columns in STAYS.items():
            plain.register(name, pa.table(columns))
        texts: Any = ["VARCHAR", "VARCHAR"]
        plain.create_function("answer", lambda text, _: text, texts, "VARCHAR")
        assert found == plain.execute(sql).fetchall()


@pytest.mark.parametrize(
    ("name", "calls", "more"),
    [
        ("unused_outputs", 0, 8),
        ("exists_limit", 3, 12),
        ("limited_arms", 2, 24),
        ("inner_joins", 4, 11),
        ("merged_derived_tables", 2, 6),
        ("keyed_conditions", 6, 12),
        ("pushed_conditions", 4, 24),
        ("shown_groups", 6, 12),
        ("text_filter", 8, 24),
        ("limit_stop", 4, 12),
        ("exists_stop", 5, 12),
        ("late_projection", 3, 12),
        ("lazy_branches", 19, 36),
    ],
)
def test_a_rule_saves_calls(name: str, calls: int, more: int) -> None:
    """Fewer calls with all rules than with all but this one."""
    assert run(EXAMPLES[name], RULES, QUERY_RULES).calls == calls
    assert run(EXAMPLES[name], *without(name)).calls == more


@pytest.mark.parametrize(
    ("sql", "calls"),
    [
        (f"SELECT city, count(*) FILTER (WHERE {CALM}) AS n FROM t GROUP BY city ORDER BY count(*), 1 LIMIT 1", 6),
        (f"SELECT stars, bool_or({CALM}) FROM t GROUP BY 1 ORDER BY sum(id) DESC, 1 LIMIT 1 OFFSET 1", 6),
        (f"SELECT city, bool_or({CALM}) FROM t GROUP BY city HAVING count(*) > 5 AND bool_or({CALM})", 12),
        (
            f"SELECT n FROM (SELECT city, id, row_number() OVER (PARTITION BY city ORDER BY {CALM}) AS n FROM t) AS d "
            "WHERE city = 'Oslo' AND id > 4",
            6,
        ),
        (
            "SELECT a FROM (SELECT city, answer(body, 'who?') AS a FROM t UNION ALL "
            "SELECT city, answer(body, 'calm?') FROM t) AS d LIMIT 1 OFFSET 1",
            4,
        ),
        ("SELECT min(id) FROM t AS s WHERE answer(s.body, 'calm?') = 'Yes' AND id < 0", 0),
        (f"SELECT max(id) FROM t WHERE {CALM} AND city = 'Oslo'", 2),
        (f"SELECT max(id) FROM (SELECT id FROM t WHERE {CALM} AND city = 'Oslo' ORDER BY stars) AS d", 2),
        (
            f"SELECT id FROM (SELECT id FROM t WHERE {CALM} AND city = 'Oslo' ORDER BY stars) AS d "
            "QUALIFY row_number() OVER (ORDER BY id DESC) = 1",
            2,
        ),
        (f"SELECT max(id) - 1 FROM t WHERE {CALM} AND city = 'Oslo' HAVING max(id) > 2", 2),
        (f"SELECT id FROM t WHERE {CALM} AND city = 'Oslo' QUALIFY row_number() OVER (ORDER BY id DESC) = 1", 2),
        (f"SELECT max(CASE WHEN id > 99 THEN id END) FROM t WHERE {CALM} GROUP BY 'a'", 3),
        (f"SELECT max(CASE WHEN id > 99 THEN id END) FROM t WHERE {CALM}", 0),
    ],
)
def test_groups_that_are_not_shown_are_not_asked_about(sql: str, calls: int) -> None:
    found, naive = run(sql, RULES, QUERY_RULES), run(sql, (), ())
    assert sorted(found.rows) == sorted(naive.rows)
    assert found.calls == calls


@pytest.mark.parametrize(("totals", "pushed"), [("", 2), ("WITH TOTALS", 1)])
def test_no_condition_is_pushed_below_totals(totals: str, pushed: int) -> None:
    """The row of totals, of ClickHouse, is of all rows below."""
    inner = f"SELECT t.city, count(answer(t.body, 'who?')) AS n FROM t GROUP BY t.city {totals}"
    tree = parse_one(f"SELECT d.n FROM ({inner}) AS d WHERE d.city = 'Oslo'", read="clickhouse")
    assert isinstance(tree, exp.Query)
    assert pushed_conditions(tree).sql().count("'Oslo'") == pushed


NUMBERED = "row_number() OVER (PARTITION BY city ORDER BY id DESC)"


@pytest.mark.parametrize(
    ("sql", "calls"),
    [
        (f"SELECT id, answer(body, 'who?') FROM t QUALIFY {NUMBERED} = 1", 2),
        ("SELECT DISTINCT ON (city) answer(body, 'who?'), id + 1 AS j FROM t ORDER BY city, j DESC LIMIT 1", 1),
        (f"SELECT id, {NUMBERED} AS n, answer(body, 'who?') FROM t ORDER BY id LIMIT 2", 2),
        (f"SELECT id, answer(body, 'who?') AS a FROM t QUALIFY {NUMBERED} = 1 AND a <> 'nobody'", 2),
        # The first that passes: of Rome the 12th, of Oslo the 11th does not, the 9th does.
        (f"SELECT id FROM t WHERE {CALM} QUALIFY {NUMBERED} = 1", 3),
        (f"SELECT id, answer(body, 'who?') FROM t WHERE {CALM} QUALIFY {NUMBERED} < 2", 3 + 2),
        (f"SELECT DISTINCT ON (city) city, id FROM t WHERE {CALM} ORDER BY city, id DESC", 3),
        (f"SELECT city, max(id) FROM t WHERE {CALM} GROUP BY city HAVING max(id) > 9", 3),
        # Any one that passes will do.
        (f"SELECT DISTINCT city FROM t WHERE {CALM}", 5),
        (f"SELECT city FROM t WHERE {CALM} GROUP BY city ORDER BY city LIMIT 1", 2),
        (f"SELECT count(DISTINCT city) FROM t WHERE {CALM}", 5),
        ("SELECT DISTINCT a.id FROM t AS a JOIN t AS b USING (city) WHERE answer(b.body, 'calm?') = 'Yes'", 8),
        (f"SELECT id FROM (SELECT id, {NUMBERED} AS n FROM t WHERE {CALM}) AS d WHERE n <= 1", 3),
        (f"WITH d AS (SELECT id, {NUMBERED} AS n FROM t WHERE {CALM}) SELECT id FROM d WHERE n = 1", 3),
        # All are needed where other rows are read, counted, or cut.
        (f"SELECT id FROM t WHERE {CALM} QUALIFY {NUMBERED} = 2", 12),
        (f"SELECT city, max(id), count(*) FROM t WHERE {CALM} GROUP BY city", 12),
        (f"SELECT city, count(*) FROM t WHERE {CALM} GROUP BY CUBE (city) HAVING city IS NOT NULL", 12),
        (f"SELECT id, count(*) OVER (PARTITION BY city) FROM t WHERE {CALM} QUALIFY {NUMBERED} = 1", 12),
        (f"WITH d AS (SELECT id, {NUMBERED} AS n FROM t WHERE {CALM}) SELECT * FROM d WHERE n = 1 UNION FROM d", 12),
        (f"SELECT id FROM (SELECT id, {NUMBERED} AS n FROM t WHERE {CALM} ORDER BY id LIMIT 3) AS d WHERE n = 1", 12),
    ],
)  # fmt: skip
def test_of_each_group_the_first_row_that_passes_is_looked_for(sql: str, calls: int) -> None:
    found, naive = run(sql, RULES, QUERY_RULES), run(sql, (), ())
    assert sorted(found.rows) == sorted(naive.rows)
    assert found.calls == calls


def test_a_derived_table_is_merged_where_an_outer_join_keeps_its_rows() -> None:
    rows, on = f"(SELECT * FROM t WHERE {CALM}) AS d", "ON u.id = d.id + 1 LIMIT 1"
    assert run(f"SELECT d.id FROM {rows} LEFT JOIN t AS u {on}", RULES, QUERY_RULES).calls == 3
    assert run(f"SELECT u.id FROM t AS u LEFT JOIN {rows} {on}", RULES, QUERY_RULES).calls == 11  # one follows none


@pytest.mark.parametrize(
    ("selected", "order", "calls"),
    [
        ("answer(body, 'who?')", "answer(body, 'calm?')", 12 + 3),
        ("answer(body, 'calm?'), answer(body, 'who?')", "answer(body, 'calm?') DESC", 12 + 3),
        ("answer(body, 'calm?')", "answer(body, 'calm?')", 12),
        ("answer(body, 'who?')", f"CASE WHEN {CALM} THEN answer(body, 'loud?') END", 12 + 4 + 3),
    ],
)
def test_an_order_by_answers_leaves_few_rows_to_ask_what_is_only_shown(selected: str, order: str, calls: int) -> None:
    sql = f"SELECT id, {selected} FROM t ORDER BY {order}, id LIMIT 3"
    found = run(sql, RULES, QUERY_RULES)
    assert (found.calls, found.rows) == (calls, run(sql, (), ()).rows)


def test_the_weakest_condition_saves_calls_where_the_database_filters() -> None:
    """The text filter skips the same rows by itself, so the calls are saved where it does not run."""
    sql = EXAMPLES["weakest_condition"]
    assert run(sql, *only("weakest_condition")).calls == 6
    assert run(sql, (), ()).calls == 12


def test_the_weakest_condition_moves_fewer_rows() -> None:
    sql = EXAMPLES["weakest_condition"]
    assert run(sql, RULES, QUERY_RULES).stages["_block_2_kept"]["candidates"] == 6
    assert run(sql, *without("weakest_condition")).stages["_block_2_kept"]["candidates"] == 12


def test_direct_rows_copies_no_candidates() -> None:
    sql = EXAMPLES["direct_rows"]
    assert [name for name in run(sql, RULES, QUERY_RULES).stages if name.endswith("_rows")] == []
    copied = run(sql, *without("direct_rows")).stages
    assert [copied[name]["rows"] for name in copied if name.endswith("_rows")] == [6]


def test_two_conditions_are_asked_the_decisive_one_first() -> None:
    """Never more than the paper's disjunctive normal form, which asks both of every row that the first lets through."""
    sql = f"SELECT id FROM t WHERE ({CALM} AND stars > 2) OR ({CALM} AND city = 'Oslo')"
    assert run(sql, RULES, QUERY_RULES).calls == 8


@pytest.mark.parametrize("speculation", [1, 2])
def test_a_row_whose_text_is_known_does_not_overtake_the_first_of_its_group(speculation: int) -> None:
    """Row 4 asks what row 1 has asked, and passes for nothing; row 3, which waits, comes before it."""
    table = pa.table(
        {"id": [1, 2, 3, 4], "k": ["a", "b", "b", "b"], "body": ["calm here", "loud", "calm", "calm here"]}
    )
    model = FunctionModel(lambda text, _: "Yes" if "calm" in text else "No")
    with almanaq.connect({"t": table}, model=model, cache=False, speculation=speculation) as con:
        sql = f"SELECT id FROM t WHERE {CALM} QUALIFY row_number() OVER (PARTITION BY k ORDER BY id) = 1"
        assert sorted(con.sql(sql).rows) == [(1,), (3,)]
