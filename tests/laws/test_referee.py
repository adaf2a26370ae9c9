"""The referee is refereed: an engine that is right passes, and each way of being wrong that peers show is caught."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from sqlglot import exp

from almanaq.testing import FunctionModel

from .check import Ready, cases, check, outcome
from .compare import Expected, difference
from .coverage import CLAUSES
from .oracle import Oracle, OracleError, document_text, linked, parse, translate

Mutation = Callable[[exp.Query], exp.Query]


class NaiveConnection:
    """A connection that is the oracle itself, with the query changed by a mutation."""

    def __init__(self, tables: dict[str, Any], model: FunctionModel, mutation: Mutation, *, link: bool) -> None:
        self.mutation, self.model, self.link = mutation, model, link
        self.oracle = Oracle(tables, self._reply)
        self.known: dict[tuple[str, str], str | None] = {}

    def _reply(self, text: str, question: str) -> str | None:
        if (text, question) not in self.known:
            self.model.calls += 1
            self.known[text, question] = self.model._function(text, question)
        return self.known[text, question]

    def sql(self, text: str, params: list[Any] | None = None) -> Any:
        tree = parse(text)
        for value in params or []:
            next(p for p in tree.find_all(exp.Placeholder)).replace(exp.convert(value))
        tree = self.mutation(linked(tree) if self.link else tree)
        names = [name for name, _ in self.oracle.columns(translate(tree))]
        rows = self.oracle.rows(translate(tree))
        return SimpleNamespace(columns=names, rows=rows, trace=SimpleNamespace(text_calls=self.model.calls))

    def close(self) -> None:
        self.oracle.close()


def found(mutation: Mutation) -> Iterator[str]:
    """Yield the kinds of failure that the referee finds with a mutation."""
    for ready in prepared():
        if ready.case.world.model.varied or "⟦" in ready.case.marked:
            continue
        failure, _ = check(ready, connect=lambda t, m, link: NaiveConnection(t, m, mutation, link=link))
        if failure is not None:
            yield failure.kind


@functools.cache
def prepared() -> list[Ready]:
    """Return cases among which each way of being wrong shows."""
    return list(cases(200, 150))


def without(clause: str) -> Mutation:
    def mutate(tree: exp.Query) -> exp.Query:
        tree = tree.copy()
        tree.set(clause, None)
        return tree

    return mutate


def not_is_false(tree: exp.Query) -> exp.Query:
    """Take "no information" for a reply that is not the literal."""
    tree = tree.copy()
    for node in list(tree.find_all(exp.EQ)):
        if isinstance(node.left, exp.Anonymous):
            node.set("this", exp.func("coalesce", node.left.copy(), exp.Literal.string("No")))
    return tree


def joins_inner(tree: exp.Query) -> exp.Query:
    tree = tree.copy()
    for join in tree.find_all(exp.Join):
        join.set("side", None)
    return tree


@pytest.mark.nightly
@pytest.mark.slow
def test_an_engine_that_is_right_passes() -> None:
    assert list(found(lambda tree: tree)) == []


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize(
    "mutation",
    [
        without("limit"),
        without("offset"),
        without("where"),
        without("order"),
        without("distinct"),
        not_is_false,
        joins_inner,
    ],
    ids=["limit", "offset", "where", "order", "distinct", "null", "outer join"],
)
def test_an_engine_that_errs_is_caught(mutation: Mutation) -> None:
    assert "wrong rows" in found(mutation)


def test_a_window_of_ties_may_hold_any_of_them_but_no_other_row() -> None:
    full = Expected(("a",), (((1,), (1,)), ((2,), (3,)), ((4,),)), 2, 1)
    normal = Expected(("a",), tuple(tuple((("number", float(v)),) for (v,) in g) for g in full.groups), 2, 1)
    assert difference(normal, ["a"], [(1,), (3,)]) is None
    assert difference(normal, ["a"], [(1,), (2,)]) is None
    for wrong in ([(2,), (1,)], [(1,), (4,)], [(1,)], [(1,), (1,)], [(1,), (5,)]):
        assert difference(normal, ["a"], wrong) is not None
    assert difference(normal, ["b"], [(1,), (2,)]) is not None


def test_a_document_is_its_passages_that_are_not_blank() -> None:
    assert document_text(json.dumps(["a", None, "  ", "b"])) == "a\n\nb"
    assert document_text('" x "') == " x "
    assert [document_text(d) for d in (None, "[]", '""', '"\\n"', "[null]", "null")] == [None] * 6


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        (f"SELECT sum(answer(a.body, 'how many?')::int) FROM {', '.join(f't AS {n}' for n in 'abcdefgh')}", "calls"),
        (f"SELECT a.id FROM {', '.join(f't AS {n}' for n in 'abcdefgh')}", "Memory|rows"),
    ],
    ids=["calls", "rows"],
)
def test_a_query_without_end_is_refused(sql: str, reason: str) -> None:
    """Of 10^12 rows; it once held a nightly run for good."""
    oracle = Oracle({"t": pa.table({"id": range(32), "body": [f"text {i}" for i in range(32)]})}, lambda *_: "1")
    try:
        with pytest.raises(OracleError, match=reason):
            oracle.rows(translate(parse(sql)))
        assert oracle.rows(parse("SELECT count(*) FROM t")) == [(32,)]
    finally:
        oracle.close()


def test_a_query_that_the_database_gets_wrong_is_not_held_against_the_compiler() -> None:
    """DuckDB 2.0.0 loses two of the three groups of seed 10329 by pushing its filter down; its plain plan does not."""
    told = outcome(10329)
    assert told.failure is None, str(told.failure)


def test_every_clause_is_covered() -> None:
    report = json.loads(Path(__file__).with_name("coverage.json").read_text(encoding="utf-8"))
    rare = {c: report["clauses"][c] for c in CLAUSES if report["clauses"][c] < 0.02}
    assert not rare
    assert report["nested"] >= 1 / 3
    assert report["reaching_two_blocks_out"] >= 0.005
    assert report["with_rows"] >= 0.7
    assert report["pairs_covered"] >= 0.97 * report["pairs_possible"]
