"""A query that ran before: its plan and its SQL are kept, and it gives what it would give if it were new."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
import pytest

import almanaq
from almanaq.errors import UnsupportedError
from almanaq.options import Options

from .support import Asked, texts

pytestmark = pytest.mark.usefixtures("engine")

SPLIT = "SELECT id, answer(body, 'which?') FROM t WHERE answer(body, 'ok?') = 'Yes' ORDER BY id LIMIT 3"
GROUPED = "SELECT kind, count(*) FROM t WHERE answer(body, 'ok?') = 'Yes' GROUP BY kind ORDER BY kind"
JOINED = "SELECT a.id, b.id FROM t a JOIN t b ON answer(a.body, 'which?') = answer(b.body, 'which?') ORDER BY 1, 2"
COMPUTED = "SELECT id FROM t WHERE length(answer(body, 'which?')) > 1 OR kind = 'a' ORDER BY id"


class World:
    """Rows of which a changing set says yes."""

    def __init__(self) -> None:
        self.good: set[int] = set()
        kinds = texts("a", "b", "a", "b", "a", "b")
        bodies = texts(*(f"text {i}" for i in range(6)))
        self.asked = Asked(reply=self.reply, t={"id": pa.array(range(6)), "kind": kinds, "body": bodies})

    def reply(self, text: str, question: str) -> str | None:
        number = int(text.removeprefix("text "))
        if question == "ok?":
            return "Yes" if number in self.good else "No"
        return f"w{number % 2}" if number > 3 else None


@pytest.fixture(scope="module")
def world(engine: str) -> World:
    return World()


@pytest.mark.parametrize("sql", [SPLIT, GROUPED, JOINED, COMPUTED])
def test_a_query_that_ran_before_gives_what_a_new_one_gives(world: World, sql: str) -> None:
    for number, good in enumerate([{0, 2, 4}, set(), {1, 3, 5}]):
        world.good = good
        assert world.asked.rows(sql) == world.asked.rows(sql + " " * (number + 1))


def test_more_rows_pass_than_are_written_out(monkeypatch: pytest.MonkeyPatch, world: World) -> None:
    """Row ids in the text of the first run, in a table in that of the second."""
    world.good = {1, 2}
    assert world.asked.rows(SPLIT) == [(1, None), (2, None)]
    monkeypatch.setattr("almanaq.suql.execution.render._ROWS_WRITTEN_OUT", 0)
    world.good = {0, 4, 5}
    assert world.asked.rows(SPLIT) == [(0, None), (4, "w0"), (5, "w1")]


class Masked(str):
    """Shows nothing of itself."""

    def __repr__(self) -> str:
        return "'***'"


@pytest.mark.parametrize(("one", "other"), [(Masked("a"), Masked("b")), ("1", 1), (True, 1)])
def test_parameters_that_look_alike_are_told_apart(world: World, one: Any, other: Any) -> None:
    sql = "SELECT id FROM t WHERE kind || '' = CAST(? AS text) AND answer(body, 'ok?') = 'Yes'"
    world.good = set(range(6))
    expected = {"a": [0, 2, 4], "b": [1, 3, 5]}
    for value in (one, other, one):
        assert sorted(row[0] for row in world.asked.rows(sql, [value])) == expected.get(str(value), [])


def test_the_options_of_each_run_hold(world: World) -> None:
    """A budget is checked at every run of a kept plan."""
    from almanaq.errors import BudgetExceeded

    world.good = {0, 1, 2, 3, 4, 5}
    assert len(world.asked.rows(SPLIT)) == 3
    with pytest.raises(BudgetExceeded):
        world.asked.con.sql(SPLIT, options=Options(order="table", max_calls=1, link=False))
    assert len(world.asked.rows(SPLIT)) == 3


def test_a_query_is_bound_once_to_be_planned_and_described(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, sql = world.asked.con.engine, SPLIT + " -- once"
    before = engine.bound(sql).tree.sql()
    engine.plan(sql)
    monkeypatch.setattr(type(engine._planner.language), "names", lambda *_: pytest.fail("described again"))
    assert engine.bound(sql).tree.sql() == before


def test_what_a_star_stands_for_is_asked_of_the_table_as_it_is_now() -> None:
    with duckdb.connect() as own:
        own.execute("CREATE TABLE t AS SELECT 1 AS a")
        engine = almanaq.connect(own).engine
        engine.bound("SELECT * FROM t")
        own.execute("ALTER TABLE t ADD COLUMN b INTEGER")
        with pytest.raises(UnsupportedError, match="what \\* stands for"):
            engine.bound("SELECT * FROM t")
