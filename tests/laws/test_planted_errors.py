"""Errors planted into the optimizer are found by the queries of the quick run.

A generator that lost its eye for one of them, or a count that became too small, fails here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlglot import exp

import almanaq.suql.optimizer
from almanaq.suql.plan import predicates

from .check import Failure, Ready, RuleSet, cases, check, open_in_one_instance
from .test_laws import QUICK

Plant = Callable[[pytest.MonkeyPatch], None]


def _rule(name: str) -> Any:
    return sys.modules[f"{almanaq.suql.optimizer.__name__}.{name}"]


def either_side_of_or_drops_a_row(patch: pytest.MonkeyPatch) -> None:
    right = _rule("query_rules")._drops

    def wrong(node: exp.Expr, names: set[str]) -> bool:
        if isinstance(node, exp.Or):
            return wrong(node.this, names) or wrong(node.expression, names)
        return bool(right(node, names))

    patch.setattr(_rule("query_rules"), "_drops", wrong)


def what_is_null_drops_a_row(patch: pytest.MonkeyPatch) -> None:
    module, right = _rule("query_rules"), _rule("query_rules")._drops

    def wrong(node: exp.Expr, names: set[str]) -> bool:
        return bool(right(node, names)) or (isinstance(node, exp.Is) and bool(module._is_null(node.this, names)))

    patch.setattr(module, "_drops", wrong)


def conditions_are_repeated_below_a_limit(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(_rule("query_rules"), "_CUTS", ())


def or_implies_both_sides(patch: pytest.MonkeyPatch) -> None:
    right = predicates._combine
    patch.setattr(predicates, "_combine", lambda _, left, other: right(exp.And, left, other))


def asking_stops_before_offset(patch: pytest.MonkeyPatch) -> None:
    right = _rule("block_rules").number_in

    def wrong(clause: exp.Expr | None) -> int | None:
        return 0 if isinstance(clause, exp.Offset) else right(clause)

    patch.setattr(_rule("block_rules"), "number_in", wrong)


@pytest.fixture(scope="module")
def quick() -> Callable[[], Iterator[Ready]]:
    """Return the cases of the quick run again and again, each prepared once."""
    made: list[Ready] = []
    more = cases(0, QUICK)

    def every() -> Iterator[Ready]:
        yield from made
        for ready in more:
            made.append(ready)
            yield ready

    return every


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize(
    "plant",
    [
        either_side_of_or_drops_a_row,
        what_is_null_drops_a_row,
        conditions_are_repeated_below_a_limit,
        or_implies_both_sides,
        asking_stops_before_offset,
    ],
)
def test_the_quick_run_finds_a_planted_error(
    quick: Callable[[], Iterator[Ready]], monkeypatch: pytest.MonkeyPatch, plant: Plant
) -> None:
    plant(monkeypatch)
    connect = RuleSet("all", open_in_one_instance).connect
    failures = (check(ready, connect=connect, thrifty=False)[0] for ready in quick())
    found: Failure | None = next((failure for failure in failures if failure is not None), None)
    assert found is not None, "the laws do not see it"
