"""Which rows of a run that was stopped are those of the full result."""

from __future__ import annotations

from sqlglot import exp

from almanaq.suql.plan.blocks import keeps_each_row
from almanaq.suql.plan.stages import Plan, TextStage


def rows_are_sure(plan: Plan, stage: TextStage) -> bool:
    """Return whether each row that passed a stopped filter is in the full result: nothing above looks across rows."""
    output = plan.output
    texts = [other for other in plan.stages if isinstance(other, TextStage)]
    if stage.predicate is None or texts[-1] is not stage or not isinstance(output.select, exp.Select):
        return False
    made = {stage.block, *(other.name for other in plan.stages)}
    alone = [block for block, _ in output.evidence] == [stage.block]
    return alone and keeps_each_row(output.select, made, cut=stage.stop_after is not None)
