"""Running a query that the engine runs as it is: no stage, no model, no quotes."""

from __future__ import annotations

import time

import pyarrow as pa

from almanaq.engines.protocols import Database
from almanaq.errors import DeadlineExceeded
from almanaq.options import Options
from almanaq.suql.catalog.reading import written_name
from almanaq.suql.execution.bounds import interrupted_at_errors, refuse_if_larger
from almanaq.suql.execution.threads import in_thread
from almanaq.suql.plan.native import NativeQuery
from almanaq.suql.plan.stages import Plan
from almanaq.suql.result import Result, Trace


async def run_native(database: Database, plan: Plan, options: Options, suql: str) -> Result:
    """Return the rows of a plan without stages.

    Raises:
        DeadlineExceeded, OperationalError, BudgetExceeded: as of any other query.
    """
    query = plan.output.select
    assert isinstance(query, NativeQuery)
    started = time.perf_counter()
    most = options.max_rows
    bytes_held = None if options.max_result_mb is None else options.max_result_mb * 1_000_000

    with database.session(options.deadline) as session:

        def fetch() -> pa.Table:
            sql = query.looked_up(lambda name: written_name(session.locate(name), database.dialect), values_of)
            return session.fetch(sql, bytes_held, query.parameters, None if most is None else most + 1)

        def values_of(sql: str) -> list[str]:
            return [str(value) for value in session.fetch(sql).column(0).to_pylist()]

        try:
            with interrupted_at_errors(session):
                table = await in_thread(fetch)
        except DeadlineExceeded as error:
            raise DeadlineExceeded(f"the query ran longer than its deadline of {options.deadline:g} s") from error
    if plan.output.names:
        table = table.rename_columns(list(plan.output.names))
    refuse_if_larger(table, options.max_result_mb)
    cut = most is not None and table.num_rows > most
    warnings = [*plan.notes, *([f"there are more rows: only the first {most:,} were read"] if cut else [])]
    table = table.slice(0, most) if cut else table
    trace = Trace(seconds=time.perf_counter() - started, partial=cut, warnings=tuple(warnings))
    return Result(table, ((),) * table.num_rows, trace, suql)
