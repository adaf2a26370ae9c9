"""The optimizer: RULES, in order, one rewrite per file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from almanaq.suql.optimizer.direct_rows import direct_rows
from almanaq.suql.optimizer.late_projection import late_projection
from almanaq.suql.optimizer.limit_stop import limit_stop
from almanaq.suql.optimizer.text_filter import text_filter
from almanaq.suql.optimizer.weakest_condition import weakest_condition
from almanaq.suql.plan.stages import LogicalPlan, TextBlock

Rule = Callable[[TextBlock], TextBlock]

RULES: tuple[Rule, ...] = (
    weakest_condition,
    text_filter,
    limit_stop,
    late_projection,
    direct_rows,
)


def optimize(plan: LogicalPlan, rules: tuple[Rule, ...] = RULES) -> LogicalPlan:
    """Give the plan with every rule applied to every block, in order; the rows of its result stay the same."""
    for _, plan in steps(plan, rules):  # noqa: B020 - each step goes on from the last
        pass
    return plan


def steps(plan: LogicalPlan, rules: tuple[Rule, ...] = RULES) -> Iterator[tuple[str, LogicalPlan]]:
    """Yield the name of each rule and the plan after it."""
    for rule in rules:
        stages = tuple(rule(stage) if isinstance(stage, TextBlock) else stage for stage in plan.stages)
        plan = replace(plan, stages=stages)
        yield rule.__name__, plan
