"""The optimizer: RULES, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from sqlglot import exp

from almanaq.suql.optimizer.block_rules import (
    direct_rows,
    exists_stop,
    late_projection,
    lazy_branches,
    limit_stop,
    text_filter,
    weakest_condition,
)
from almanaq.suql.optimizer.group_rules import keyed_conditions, shown_groups
from almanaq.suql.optimizer.query_rules import (
    exists_limit,
    inner_joins,
    limited_arms,
    merged_derived_tables,
    pushed_conditions,
    unused_outputs,
)
from almanaq.suql.plan.stages import LogicalPlan, TextBlock
from almanaq.suql.text_functions import has_text

QueryRule = Callable[[exp.Query], exp.Query]
Rule = Callable[[TextBlock], TextBlock]

QUERY_RULES: tuple[QueryRule, ...] = (
    unused_outputs,
    exists_limit,
    limited_arms,
    inner_joins,
    merged_derived_tables,
    keyed_conditions,
    pushed_conditions,
    shown_groups,
)
"""Rewrites of the bound query, before it is planned."""

RULES: tuple[Rule, ...] = (
    weakest_condition,
    text_filter,
    limit_stop,
    exists_stop,
    late_projection,
    lazy_branches,
    direct_rows,
)


def rewrite(tree: exp.Query, rules: tuple[QueryRule, ...] = QUERY_RULES) -> exp.Query:
    """Return the bound query with every rewrite applied, in order; its rows stay the same.

    A query without text functions is the database's to run, as it is.
    """
    for rule in rules if has_text(tree) else ():
        tree = rule(tree)
    return tree


def optimize(plan: LogicalPlan, rules: tuple[Rule, ...] = RULES) -> LogicalPlan:
    """Return the plan with every rule applied to every block, in order; the rows of its result stay the same."""
    return [plan, *(after for _, after in steps(plan, rules))][-1]


def steps(plan: LogicalPlan, rules: tuple[Rule, ...] = RULES) -> Iterator[tuple[str, LogicalPlan]]:
    for rule in rules:
        stages = tuple(rule(stage) if isinstance(stage, TextBlock) else stage for stage in plan.stages)
        plan = replace(plan, stages=stages)
        yield rule.__name__, plan
