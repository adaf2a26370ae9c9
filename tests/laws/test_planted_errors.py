"""Errors planted into the optimizer are found by the queries of the quick run: a generator that lost its eye for one
of them, or a count that became too small, fails here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from sqlglot import exp

import almanaq.suql.optimizer
from almanaq.suql.plan.stages import TextBlock

from .check import Ready, RuleSet, check, open_in_one_instance, prepare
from .test_laws import QUICK_SEEDS

Patch = Callable[[pytest.MonkeyPatch], object]


def _rule(name: str) -> Any:
    return sys.modules[f"{almanaq.suql.optimizer.__name__}.{name}"]


def _either_side_of_or_drops(patch: pytest.MonkeyPatch) -> None:
    right = _rule("inner_joins")._drops

    def wrong(node: exp.Expr, names: set[str]) -> bool:
        if isinstance(node, exp.Or):
            return wrong(node.this, names) or wrong(node.expression, names)
        return bool(right(node, names))

    patch.setattr(_rule("inner_joins"), "_drops", wrong)


def _is_null_drops(patch: pytest.MonkeyPatch) -> None:
    module = _rule("inner_joins")
    right = module._drops
    said = lambda node, names: isinstance(node, exp.Is) and module._is_null(node.this, names)  # noqa: E731
    patch.setattr(module, "_drops", lambda node, names: said(node, names) or right(node, names))


def _pushed_below_windows_and_groups(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(_rule("pushed_conditions"), "_is_open", lambda block: True)


def _pushed_below_limit(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(_rule("pushed_conditions"), "_CUTS", ())


def _merged_behind_full_joins(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(_rule("preserved_derived_tables"), "side_of", lambda join: "")


def _or_is_and_in_what_is_implied(patch: pytest.MonkeyPatch) -> None:
    from almanaq.suql.plan import predicates

    right = predicates._combine
    patch.setattr(predicates, "_combine", lambda kind, *sides: right(exp.And, *sides))


def _stopped_before_offset(patch: pytest.MonkeyPatch) -> None:
    right = _rule("limit_stop")._number
    wrong = lambda clause: 0 if isinstance(clause, exp.Offset) else right(clause)  # noqa: E731
    patch.setattr(_rule("limit_stop"), "_number", wrong)


