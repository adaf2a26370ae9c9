"""Running a plan to its result, whole or row by row, and leaving nothing behind."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine
from typing import Any

import pyarrow as pa

from almanaq.errors import BudgetExceeded, DeadlineExceeded
from almanaq.models.budget import Budget, spending
from almanaq.models.retrying import raise_public_errors
from almanaq.options import Options
from almanaq.suql.execution.bounds import interrupted_at_errors
from almanaq.suql.execution.collecting import collecting_seldom
from almanaq.suql.execution.context import ExecutionContext
from almanaq.suql.execution.guards import call_budget
from almanaq.suql.execution.report import RunReport
from almanaq.suql.execution.run import Run, Sink
from almanaq.suql.execution.statements import Statements
from almanaq.suql.execution.streaming import run_in_batches
from almanaq.suql.execution.watch import Interrupted
from almanaq.suql.plan.stages import Plan
from almanaq.suql.result import Result
from almanaq.suql.row_values import python_rows


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
) -> tuple[Result, RunReport]:
    """Return the rows of a plan, and what each stage did. Cancelling stops the database and every call under way.

    Args:
        statements: the SQL texts that earlier runs of the plan wrote.
        sink: is given the rows as they are found; the Result then holds those given last.
        row_by_row: whether that is wanted as soon as a row is found, rather than when it costs least.
        cited: whether the quotes that rows rest on are wanted.
    """
    started = time.perf_counter()
    max_calls = call_budget(options, context.models)
    limit = _limit(max_calls, options.max_money)
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
                    table, evidence = await _work(run, plan, sink, row_by_row=row_by_row)
                left = None if options.deadline is None else options.deadline - (time.perf_counter() - started)
                await run.calls.finish(left)
        except (TimeoutError, DeadlineExceeded) as error:
            late = DeadlineExceeded(f"the query ran longer than its deadline of {options.deadline:g} s")
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
    run.calls.refuse_if_none_answered()
    return result, run.report


def _limit(calls: int | None, money: float | None) -> Budget | None:
    """Return what a query may spend; None: anything."""
    if calls is None and money is None:
        return None
    return Budget(calls, money=money, setting="--max-calls", money_setting="--max-money")


def _work(
    run: Run, plan: Plan, sink: Sink | None, *, row_by_row: bool
) -> Coroutine[Any, Any, tuple[pa.Table, tuple[Any, ...]]]:
    if sink is None:
        return run.all()
    return run_in_batches(run, plan, sink) if row_by_row else run.pieces(sink)


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
