"""The compiler against the oracle: the same rows, and never more calls than there is reason for."""

from __future__ import annotations

import random
from itertools import islice

import duckdb
import pyarrow as pa
import pytest

from almanaq.engines.duckdb.engine import load_table
from almanaq.errors import ModelCallError
from almanaq.testing import FunctionModel

from .check import (
    Failure,
    LinkingModel,
    Ready,
    RuleSet,
    cases,
    check,
    connect_exactly,
    open_in_one_instance,
    prepare,
    rules_that_change,
)
from .compare import difference, expect
from .expressions import Col, Draw, Scope, boolean, call, literal
from .generator import Case
from .oracle import Oracle
from .run import run
from .world import FREE, TYPES, Model, Relation, World, make_world

QUICK, PARTS, EACH_RULE = 60, 3, 3
RARE_RULES = (7_000_020, 7_000_024, 7_000_040, 7_000_145, 7_000_196, 7_100_004)
"""Seeds of cases that rules change which change few."""
IN_ONE_INSTANCE = RuleSet("all", open_in_one_instance).connect


def told(failures: list[Failure]) -> str:
    """Return failures as the message of an assertion."""
    return f"{len(failures)} of the queries differ:\n" + "\n".join(str(f) for f in failures[:10])


@pytest.mark.sampled(PARTS)
@pytest.mark.parametrize("part", range(PARTS))
def test_rows_are_those_of_the_database(part: int) -> None:
    """And the calls in all are fewer than those of a naive evaluation."""
    report = run(part * 30, QUICK // PARTS, connect=IN_ONE_INSTANCE, thrifty=True)
    assert not report.failures, told(report.failures)
    assert 0 < report.calls < report.naive


@pytest.mark.nightly
@pytest.mark.slow
def test_each_rule_on_top_of_those_before_it_gives_the_same_rows() -> None:
    """Where a rule changes nothing, its plan is the one before."""
    few = [*cases(7_000_000, EACH_RULE), *(ready for seed in RARE_RULES if isinstance(ready := prepare(seed), Ready))]
    failures: list[Failure] = []
    changed: set[str] = set()
    for ready in few:
        changing = rules_that_change(ready)
        changed |= changing
        chosen_rules = (RuleSet.until(name, open_in_one_instance) for name in sorted(changing))
        for chosen in (RuleSet("none", open_in_one_instance), *chosen_rules):
            failure, _ = check(ready, connect=chosen.connect)
            failures += [failure] if failure is not None else []
    assert not failures, told(failures)
    assert changed == set(RuleSet.NAMES), "a rule that no case needs is not tested"


@pytest.mark.slow
@pytest.mark.parametrize(("order", "speculation"), [("similarity", 2.0), ("similarity", 1), ("table", 3.5)])
def test_neither_order_nor_speculation_changes_rows(order: str, speculation: float) -> None:
    report = run(2_000_000, 5, connect=IN_ONE_INSTANCE, order=order, speculation=speculation)
    assert not report.failures, told(report.failures)


def test_a_query_without_text_functions_asks_nothing() -> None:
    prepared = (found for found in map(prepare, range(400, 500)) if isinstance(found, Ready))
    asking_nothing = (r for r in prepared if "answer(" not in r.case.sql and "summary(" not in r.case.sql)
    structured = list(islice(asking_nothing, 3))
    assert len(structured) == 3
    for ready in structured:
        failure, observed = check(ready, connect=IN_ONE_INSTANCE, thrifty=True)
        assert failure is None, str(failure)
        assert observed is not None
        assert observed.calls == 0


def test_the_same_query_twice_gives_the_same_rows() -> None:
    """In the same order too, on one thread: on several, DuckDB itself gives rows without ORDER BY now so, now so."""
    for ready in cases(5_000, 3):
        model = LinkingModel(ready.case.world.model.reply)
        con = connect_exactly(on_one_thread(ready.case.world.tables()), model, link=ready.case.link)
        try:
            first, second = con.sql(ready.case.sql), con.sql(ready.case.sql)
        finally:
            con.close()
        assert list(first.rows) == list(second.rows)
        assert first.trace.text_calls == second.trace.text_calls


def on_one_thread(tables: dict[str, pa.Table]) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 1})
    for name, table in tables.items():
        load_table(connection, ("memory", "main", name), table)
    return connection


def test_literals_are_linked_through_derived_tables() -> None:
    grades = pa.array(["low", "mid", "high"]).dictionary_encode()
    tables = {"t": pa.table({"id": [1, 2, 3], "grade": grades})}
    con = connect_exactly(tables, LinkingModel(lambda *_: None), link=True)
    try:
        for source in ("t", "(SELECT * FROM t) AS d", "(SELECT id, grade FROM (SELECT * FROM t) AS e) AS d"):
            assert con.sql(f"SELECT id FROM {source} WHERE grade = 'not low'").rows == [(2,), (3,)]
        sql = "WITH w (a, b) AS (SELECT id, grade FROM t) SELECT a FROM w WHERE b <> 'top'"
        assert con.sql(sql).rows == [(1,), (2,)]
        nothing = con.sql("SELECT id FROM t WHERE grade = 'unheard of'")
    finally:
        con.close()
    assert nothing.rows == []
    assert "no value of t.grade means 'unheard of'" in nothing.trace.warnings[0]


def test_queries_of_one_connection_do_not_disturb_each_other() -> None:
    """Temporary tables, settings and streams of one query leave no trace for the next over the same world."""
    ready = next(iter(cases(6_000, 1)))
    con = connect_exactly(ready.case.world.tables(), LinkingModel(ready.case.world.model.reply), link=ready.case.link)
    try:
        for _ in range(3):
            result = con.sql(ready.case.sql)
            wrong = difference(ready.expected, result.columns, result.rows, fold=ready.case.world.model.varied)
            assert wrong is None
    finally:
        con.close()


# --- calls that fail -----------------------------------------------------------------------------------------


def failing_world(rng: random.Random) -> tuple[World, Relation]:
    """Return a world with a relation that has an id, and a model of which a fifth of the calls fail."""
    while True:
        world = make_world(rng)
        keyed = [r for r in world.relations if r.keyed and len(r.rows) >= 6]
        if keyed:
            model = Model(rng.getrandbits(32), fail=0.2, error=ModelCallError)
            return World(world.relations, model), keyed[0]


def verdicts(draw: Draw, scope: Scope, depth: int = 2) -> str:
    """Draw a nest of verdicts none of which asks whether something is NULL."""
    if depth and draw.chance(0.5):
        operator = draw.rng.choice(("AND", "OR"))
        return f"({verdicts(draw, scope, depth - 1)} {operator} {verdicts(draw, scope, depth - 1)})"
    if depth and draw.chance(0.25):
        return f"NOT ({verdicts(draw, scope, depth - 1)})"
    if draw.chance(0.25):
        return boolean(draw, scope)
    draw.text_left = 1
    inner = call(draw, Scope(tuple(c for c in scope.columns if c.free)), "is")
    assert inner is not None
    return f"{inner} {draw.rng.choice(('=', '<>'))} {literal(draw.rng.choice(('Yes', 'No')))}"


def test_a_call_that_failed_never_satisfies_and_is_counted() -> None:
    rng = random.Random(7)
    unknown = 0
    for _ in range(14):
        world, relation = failing_world(rng)
        scope = Scope(tuple(Col(f"t.{c}", TYPES[c], c in FREE) for c in relation.columns))
        sql = f"SELECT t.id FROM {relation.name} AS t WHERE {verdicts(Draw(rng), scope)}"
        sql = Case(0, world, sql.replace("coalesce(", "(").replace(", 'no text')", ")")).sql
        model = world.model
        oracle = Oracle(world.tables(), lambda t, q, m=model: None if m.failing(t, q) else m.canonical(t, q))
        expected = expect(oracle, sql)
        oracle.close()
        under_test = FunctionModel(model.reply)
        con = connect_exactly(world.tables(), under_test)
        result = con.sql(sql)
        con.close()
        assert difference(expected, result.columns, result.rows) is None, sql
        failed = [pair for pair in under_test.requests if model.failing(*pair)]
        assert result.trace.unknown_calls == len(failed), sql
        unknown += len(failed)
    assert unknown > 10
