"""Running a plan to its result: as the engine runs it, whole, or row by row, leaving nothing behind."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pyarrow as pa
from sqlglot import exp

from almanaq.engines.protocols import Database
from almanaq.errors import BudgetExceeded, DeadlineExceeded
from almanaq.models.budget import Budget, spending
from almanaq.models.retrying import raise_public_errors
from almanaq.options import Options
from almanaq.suql.execution.guards import call_budget, cut_rows, fetch_result, interrupted_at_errors, late_error
from almanaq.suql.execution.render import Statements, write_native
from almanaq.suql.execution.report import Interrupted, RunReport
from almanaq.suql.execution.run import ExecutionContext, Rows, Run, Sink
from almanaq.suql.execution.threads import collecting_seldom, in_thread
from almanaq.suql.plan.blocks import is_plain
from almanaq.suql.plan.stages import Materialize, NativeQuery, Plan, TextStage, selects_of
from almanaq.suql.result import Result, Trace, python_rows
from almanaq.suql.syntax.nodes import nodes_of

_LATE_SECONDS = 1.0
"""How long a query is waited for after its deadline: an engine may not look up from one row for minutes."""


async def run_native(database: Database, plan: Plan, options: Options, suql: str) -> Result:
    query = plan.output.select
    assert isinstance(query, NativeQuery)
    started = time.perf_counter()

    with database.session(options.deadline) as session:

        def fetch() -> pa.Table:
            return fetch_result(session, write_native(query, session, database.dialect), query.parameters, options)

        late = None if options.deadline is None else max(0.0, options.deadline) + _LATE_SECONDS
        try:
            with interrupted_at_errors(session):
                async with asyncio.timeout(late):
                    table = await in_thread(fetch)
        except (DeadlineExceeded, TimeoutError) as error:
            raise late_error(options) from error
    if plan.output.names:
        table = table.rename_columns(list(plan.output.names))
    table, cut = cut_rows(table, options.max_rows)
    trace = Trace(seconds=time.perf_counter() - started, partial=bool(cut), warnings=cut)
    return Result(table, ((),) * table.num_rows, trace, suql)


async def _run_plan(run: Run, plan: Plan, sink: Sink | None, *, row_by_row: bool) -> Rows:
    """Return the rows of a plan, or those that a sink was given last: one by one where each stands by itself."""
    await run.link()
    places = range(len(plan.stages)) if sink is not None and row_by_row else ()
    number = next((place for place in places if _goes_on_row_by_row(plan, place)), None)
    if sink is None or number is None:
        await run.run_stages(plan.stages)
        return await run.result() if sink is None else await run.pieces(sink)
    filter_ = plan.stages[number]
    assert isinstance(filter_, TextStage)
    await run.run_stages(plan.stages[:number])
    names = list(plan.output.names)
    found: Rows = pa.table([pa.nulls(0)] * len(names), names=names), ()
    async with aclosing(run.batches(filter_)) as batches:
        async for _ in batches:
            await run.run_stages(plan.stages[number + 1 :])
            found = await run.output(plan.output.select)
            await sink(found[0])
    return found


def _goes_on_row_by_row(plan: Plan, number: int) -> bool:
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


async def execute(
    context: ExecutionContext,
    plan: Plan,
    options: Options,
    *,
    suql: str = "",
    statements: Statements | None = None,
    sink: Sink | None = None,
    row_by_row: bool = True,
    cited: bool = True,
    of_one_row: bool = False,
) -> tuple[Result, RunReport]:
    """Return the rows of a plan, and what each stage did. Cancelling stops the database and every call under way.

    Args:
        sink: is given the rows as they are found; the Result then holds those given last.
        row_by_row: whether that is wanted as soon as a row is found, rather than when it costs least.
        of_one_row: one failed call is all that there may be, and is what the result is to say.
    """
    started = time.perf_counter()
    calls, money = call_budget(options, context.models), options.max_money
    limit = Budget(calls, money=money, setting="--max-calls", money_setting="--max-money")
    session_of = context.database.session
    with (
        raise_public_errors(),
        session_of(options.deadline) as session,
        spending(limit) as account,
        collecting_seldom(),
    ):
        session.order_as_planned()
        run = Run(context, plan, options, session, statements, cited=cited)
        try:
            with interrupted_at_errors(session):
                async with asyncio.timeout(options.deadline):
                    table, evidence = await _run_plan(run, plan, sink, row_by_row=row_by_row)
                left = None if options.deadline is None else options.deadline - (time.perf_counter() - started)
                await run.calls.finish(left)
        except (TimeoutError, DeadlineExceeded) as error:
            late = late_error(options, account.goes_on)
            if (found := await run.found_in_time()) is not None:
                trace = run.trace(time.perf_counter() - started, account)
                late.partial = Result(*found, trace, suql, run.inferred)
            raise late from error
        finally:
            await run.calls.cancel()
    result = Result(table, evidence, run.trace(time.perf_counter() - started, account), suql, run.inferred)
    if run.interrupted:
        raise Interrupted(result)
    if run.stopped is not None:
        raise BudgetExceeded(str(run.stopped), partial=result) from run.stopped
    if not of_one_row:
        run.calls.refuse_if_none_answered()
    return result, run.report


async def stream(context: ExecutionContext, plan: Plan, options: Options) -> AsyncIterator[tuple[Any, ...]]:
    """Yield the rows of a plan as they are found; closing the iterator stops every call under way."""
    rows: asyncio.Queue[tuple[Any, ...] | None] = asyncio.Queue(maxsize=1)

    async def put(table: pa.Table) -> None:
        for row in python_rows(table):
            await rows.put(row)

    async def produce() -> None:
        await execute(context, plan, options, sink=put)
        await rows.put(None)

    producer = asyncio.ensure_future(produce())
    try:
        while True:
            following = asyncio.ensure_future(rows.get())
            await asyncio.wait((following, producer), return_when=asyncio.FIRST_COMPLETED)
            if not following.done():
                following.cancel()
                producer.result()  # it failed, or it would have put the end
            row = following.result()
            if row is None:
                return
            yield row
    finally:
        producer.cancel()
        await asyncio.gather(producer, return_exceptions=True)
