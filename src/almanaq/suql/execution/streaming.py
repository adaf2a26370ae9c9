"""Rows as they are found: what follows a text filter, run for each batch of rows that pass."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
from sqlglot import exp

from almanaq.suql.execution.run import Run, Sink
from almanaq.suql.plan.blocks import is_plain
from almanaq.suql.plan.references import quoted
from almanaq.suql.plan.stages import Materialize, Plan, Stage, TextStage, selects_of
from almanaq.suql.syntax.nodes import nodes_of


async def run_in_batches(run: Run, plan: Plan, sink: Sink) -> tuple[pa.Table, tuple[Any, ...]]:
    """Run a plan and give its rows to a sink: one by one where each stands by itself, else when all are there."""
    number = next((i for i, stage in enumerate(plan.stages) if _goes_on_row_by_row(plan, i)), None)
    if number is None:
        return await run.pieces(sink)
    filter_ = plan.stages[number]
    assert isinstance(filter_, TextStage)
    await run.link()
    await run.run_stages(plan.stages[:number])
    names = [stage.name for stage in plan.stages[number:]]
    batch = 0
    found = _nothing(plan)
    named = {name: f"{name}_{batch}" for name in names}
    batches = run.batches(filter_, lambda: f"{filter_.name}_{batch}")
    try:
        async for _ in batches:
            rest = [_renamed(stage, named) for stage in plan.stages[number + 1 :]]
            await run.run_stages(rest)
            found = await run.output(_rename(plan.output.tree, named))
            await sink(found[0])
            batch += 1
            named = {name: f"{name}_{batch}" for name in names}
    finally:
        await batches.aclose()  # type: ignore[attr-defined]
    return found


def _goes_on_row_by_row(plan: Plan, number: int) -> bool:
    """Return whether what follows a text filter treats each row by itself, so that rows can be given one by one."""
    stage, rest, output = plan.stages[number], plan.stages[number + 1 :], plan.output
    if not isinstance(stage, TextStage) or stage.predicate is None or not isinstance(output.select, exp.Select):
        return False
    if not all(isinstance(other, Materialize | TextStage) for other in rest):
        return False
    selects = [select for other in rest for select in selects_of(other)]
    selects += nodes_of(output.select, exp.Select)
    cut = any(
        select.args.get("offset") or (select.args.get("limit") and stage.stop_after is None) for select in selects
    )
    sorted_ = output.tree.args.get("order") is not None and not stage.ordered
    blocks = {other.block for other in rest if isinstance(other, TextStage)} | {block for block, _ in output.evidence}
    return blocks == {stage.block} and not cut and not sorted_ and is_plain(output.select)


def _nothing(plan: Plan) -> tuple[pa.Table, tuple[Any, ...]]:
    return pa.table({f"c{i}": pa.nulls(0) for i in range(len(plan.output.names))}).rename_columns(
        list(plan.output.names)
    ), ()


def _renamed(stage: Stage, names: dict[str, str]) -> Stage:
    if isinstance(stage, Materialize):
        return replace(stage, name=names[stage.name], select=_rename(stage.select, names))
    assert isinstance(stage, TextStage)
    source = _rename(stage.source, names)
    assert isinstance(source, exp.Select)
    return replace(stage, name=names[stage.name], source=source)


def _rename(tree: exp.Query, names: dict[str, str]) -> exp.Query:
    """Return a tree in which the tables of one batch stand for those of the plan."""

    def rename(node: exp.Expr) -> exp.Expr:
        return quoted(names[node.name]) if isinstance(node, exp.Identifier) and node.name in names else node

    renamed = tree.transform(rename)
    assert isinstance(renamed, exp.Query)
    return renamed
