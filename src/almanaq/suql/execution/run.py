"""One run of a plan: stage after stage, and what is known so far."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from almanaq.engines.protocols import Database, Session
from almanaq.errors import BudgetExceeded, DatabaseError, DeadlineExceeded
from almanaq.models.budget import Spending, operator
from almanaq.models.prompts import one_fence
from almanaq.models.protocols import Models
from almanaq.options import Options
from almanaq.suql.catalog.relations import Catalog
from almanaq.suql.execution.approximate_stages import AnyRun, ApproximateFilter, StageRuns
from almanaq.suql.execution.calls import TextCalls
from almanaq.suql.execution.candidates import (
    Candidates,
    CandidateStream,
    FewestNewCalls,
    Listed,
    MostSimilarFirst,
    PassageSelection,
    Similarity,
    is_of_pairs,
    totals,
    tries_by_similarity,
)
from almanaq.suql.execution.evidence import (
    EvidenceBook,
    ProjectedRows,
    Spellings,
    StageRow,
    UnknownAnswers,
    payload_of,
    warn_unsorted,
)
from almanaq.suql.execution.forecast import (
    Course,
    Forecast,
    NewCalls,
    at_most,
    count_rows,
    current_confirmation,
    current_watch,
    expected_calls,
)
from almanaq.suql.execution.guards import (
    call_budget,
    cut_rows,
    fetch_result,
    limit_rows,
    refuse_large,
    refuse_over_budget,
    rows_are_sure,
)
from almanaq.suql.execution.render import AnswerCasts, Renderer, Statements, find_options, link_literals
from almanaq.suql.execution.report import RunReport, list_warnings, table_order
from almanaq.suql.execution.row_evaluation import calls_of, cells_read
from almanaq.suql.execution.similarity import TextVectors, compared
from almanaq.suql.execution.text_stage import StageRun
from almanaq.suql.execution.threads import in_thread
from almanaq.suql.plan.estimate import Sharing, text_estimate
from almanaq.suql.plan.stages import Materialize, NativeQuery, Plan, Stage, TextStage
from almanaq.suql.result import Trace


@dataclass(frozen=True)
class ExecutionContext:
    database: Database
    catalog: Catalog
    models: Models
    similarity: Similarity
    vectors: TextVectors
    proxy_models: Callable[[str], Models] | None = None


Rows = tuple[pa.Table, tuple[Any, ...]]
"""Rows of a result, with the evidence of each."""
Sink = Callable[[pa.Table], Awaitable[None]]
"""Takes rows of a result as they are found."""
_PIECE_ROWS = 10_000
_GRACE_SECONDS = 0.5
"""What was found before the deadline is fetched within so many seconds after it, or is lost."""
_FEWEST_ROWS = 8
"""At least so many rows are fetched first under a LIMIT; else twice as many as it wants."""


class Run:
    """One run: the session, the calls, and what is known so far.

    Args:
        cited: keep the quotes that rows rest on; without them, a run of many rows needs a fraction of the memory.
    """

    def __init__(
        self,
        context: ExecutionContext,
        plan: Plan,
        options: Options,
        session: Session,
        statements: Statements | None = None,
        *,
        cited: bool = True,
    ) -> None:
        self._cited = cited
        self._context, self._plan, self._options, self._session = context, plan, options, session
        database = context.database
        self._renderer = Renderer(session, context.catalog, database.dialect, statements=statements)
        reader, budget = context.models.reader, call_budget(options, context.models)
        sites = [item.site for stage in plan.stages if isinstance(stage, TextStage) for item in stage.inputs]
        self.calls = TextCalls(
            reader,
            sites,
            max_calls=budget,
            strict=options.strict,
            concurrency=options.concurrency,
            cited=cited,
            unknown_answers=UnknownAnswers(context.catalog),
            spellings=plan.spellings,
            beside=[i.site for s in plan.stages if isinstance(s, TextStage) for i in Sharing.of(reader).beside(s)],
        )
        self._casts = self._renderer.casts = AnswerCasts(self.calls.cast, session, self._renderer)
        several = len(sites) > 1 or any(site.type == "list" for site in sites)
        self._spellings = Spellings(plan.spellings, several=several)
        self._budget = budget
        self._selection: PassageSelection | None = None
        if options.passages is not None:
            self._selection = PassageSelection(context.similarity, options.passages)
        self._stage_runs = StageRuns(
            context.models, context.proxy_models, session, self._renderer, options, self.calls, self._selection
        )
        self._shown: pa.Table | None = None
        self.stopped: BudgetExceeded | None = None
        """The budget's error, when it stopped the run and what was found is surely in the full result."""
        self._found: tuple[TextStage, list[StageRow]] | None = None
        self._started = time.perf_counter()
        self.interrupted = False
        self._asked = self._cut = False
        self._confirmation = current_confirmation() if reader.paid else None
        self._evidence = EvidenceBook()
        self._sent: Counter[str] = Counter()
        self._candidates = 0
        self._links: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
        self._approximate: ApproximateFilter | None = None
        self._similar: list[MostSimilarFirst] = []
        self.inferred: tuple[bool, ...] = ()
        self._warnings: list[str] = []
        self.report = RunReport()

    async def result(self) -> Rows:
        if self._shown is None:
            return await self.output(self._plan.output.select)
        return await self._finish(refuse_large(self._shown, self._options))

    async def pieces(self, sink: Sink) -> Rows:
        """Give the result's rows to a sink, some at a time; give the last that it was given.

        They are never held all at once, so that no bound of memory is set to them.
        """
        found: Rows | None = None
        if self._shown is None and self._context.database.typed:
            select = self._plan.output.select
            bound = (None, select.parameters) if isinstance(select, NativeQuery) and select.parameters else ()
            batches = await in_thread(self._session.stream, self._renderer.sql(select), _PIECE_ROWS, *bound)
            try:
                while (batch := await in_thread(next, batches, None)) is not None:
                    found = await self._finish(pa.Table.from_batches([batch]))
                    await sink(found[0])
            finally:
                with contextlib.suppress(ValueError):  # it is under way in another thread: the session's end stops it
                    await in_thread(batches.close)  # type: ignore[attr-defined]
        if found is None:
            shown = self._shown
            found = await self._finish(shown) if shown is not None else await self.output(self._plan.output.select)
            await sink(found[0])
        return found

    async def link(self) -> None:
        """Find what the literals mean that wait for it."""
        if self._plan.links:
            with operator("link"):
                self._links = await link_literals(self._plan.links, self._context.models.linker, self._renderer)
            self._warnings += [
                f"no value of {column} means {literal!r}: nothing equals it"
                for column, literal, values in self._links
                if not values
            ]

    async def run_stages(self, stages: Sequence[Stage]) -> None:
        for stage in stages:
            started = time.perf_counter()
            with one_fence():
                await self._run_stage(stage)
            self.report.seconds[stage.name] = time.perf_counter() - started
        if self.calls.cast or self._casts.refused:
            self._warnings += await in_thread(self._casts.describe)

    async def _run_stage(self, stage: Stage) -> None:
        if isinstance(stage, Materialize):
            self.report.rows[stage.name] = await in_thread(self._renderer.create, stage.name, stage.select)
        elif not isinstance(stage, TextStage):
            made = await compared(stage, self._context.vectors, self._session, self._renderer)
            await in_thread(self._renderer.store, stage.name, made)
            self.report.rows[stage.name] = made.num_rows
        else:
            with operator(stage.name):
                await self._text(stage)

    async def output(self, select: exp.Query | NativeQuery) -> Rows:
        parameters = select.parameters if isinstance(select, NativeQuery) else ()
        sql = self._renderer.sql(limit_rows(select, self._options.max_rows))
        return await self._finish(await in_thread(fetch_result, self._session, sql, parameters, self._options))

    async def _text(self, stage: TextStage) -> None:
        if stage.predicate is None:
            await self._project(stage)
            return
        rows: list[StageRow] = []
        run = self._stage_run(stage)
        try:
            async for _ in self._batches(stage, run):
                pass
            rows = run.kept()
        except (BudgetExceeded, DeadlineExceeded, asyncio.CancelledError) as end:
            if not rows_are_sure(self._plan, stage):
                raise
            rows = run.sure()
            if not self._goes_on_after(end):
                self._found = (stage, rows) if rows and self._is_late else None
                raise
        await self._keep(stage, rows)

    def _goes_on_after(self, end: BaseException) -> bool:
        """Return whether the rows that a stage found before its end become the result, and take note of it."""
        if isinstance(end, BudgetExceeded):
            self.stopped = end
            self.calls.stop(end)
            return True
        watch, task = current_watch(), asyncio.current_task()
        if watch is None or not watch.keeps or task is None or self._is_late or isinstance(end, DeadlineExceeded):
            return False
        task.uncancel()
        self.interrupted = True
        return True

    async def _keep(self, stage: TextStage, rows: list[StageRow]) -> None:
        """Make the table of the rows that passed a filter, or the result where they hold all that it shows."""
        if stage is self._plan.stages[-1] and rows and all(row.payload for row in rows):
            self._keep_evidence(stage, rows)
            self._shown = payload_of(rows)
        else:
            await self._store(stage, rows)

    async def found_in_time(self) -> Rows | None:
        """Return the rows that are sure of a run that the deadline ended; None where there are none."""
        if self._found is None or not await in_thread(self._session.give_grace, _GRACE_SECONDS):
            return None
        self.interrupted = True
        try:
            await self._keep(*self._found)
            return await self.result()
        except DatabaseError:  # no time, or no room; the deadline is reported
            return None

    async def _project(self, stage: TextStage) -> None:
        projected = ProjectedRows(stage, self._spellings)
        async for rows in self._batches(stage, self._stage_run(stage)):
            self._keep_evidence(stage, rows)
            projected.add(rows)
        table = await in_thread(projected.table)
        self._warnings += warn_unsorted(stage, table)
        await in_thread(self._renderer.store, stage.name, table)

    async def batches(self, stage: TextStage) -> AsyncGenerator[None]:
        async with contextlib.aclosing(self._batches(stage, self._stage_run(stage))) as found:
            async for rows in found:
                await self._store(stage, rows)
                yield

    async def _batches(self, stage: TextStage, run: AnyRun) -> AsyncGenerator[list[StageRow]]:
        await find_options(stage, self.calls, self._session, self._renderer)
        # Candidates that are tried as the database finds them are found before they are counted: that spends nothing.
        as_found = self._options.candidates is None and not tries_by_similarity(stage, self._options)
        candidates = await self._order_candidates(stage) if as_found else None
        try:
            await self._count(stage, run, candidates)
        except BaseException:
            if candidates is not None:
                await candidates.aclose()
            raise
        candidates = candidates or await self._order_candidates(stage)
        batches = run.batches(candidates)
        try:
            async for rows in batches:
                yield rows
        finally:
            await batches.aclose()  # type: ignore[attr-defined]
            await candidates.aclose()
            self._candidates += run.counts.candidates
            self._sent.update(run.counts.cells)

    async def _count(self, stage: TextStage, run: AnyRun, candidates: Candidates | None) -> None:
        """Refuse what the query is expected to take, where it is too much, and have a stage tell how far it is."""
        watch, confirmation = current_watch(), self._confirmation
        first, self._asked = not self._asked, True
        if not isinstance(run, StageRun):
            return
        budget = self._budget if first else None
        tells = watch is not None or confirmation is not None
        if budget is None and not tells:
            return
        most_rows = self._options.candidates
        own, *after = expected_calls(self._plan, self._context.catalog, self.report.rows, most_rows, stage)
        later = sum(after)
        rows, most = None, None
        if stage.stop_after is None:
            rows = await in_thread(count_rows, stage, candidates, self._session, self._renderer)
            asked = rows * len(stage.inputs) if stage.predicate is None else rows  # in a filter often one decides
            own = at_most(stage, asked, most_rows)
        # A long text may cost ten times what is usual.
        enough = budget if budget is None or confirmation is None else min(budget, confirmation.above // 10)
        if budget is not None and enough is not None and own + later > enough:
            new, before = await self._look(stage, run, budget, rows, candidates)
            later = math.ceil(later * new.share)
            if rows is None:  # a LIMIT ends the stage
                own, most = (at_most(stage, each, most_rows) for each in new.until_enough(before))
            else:
                own, most = new.of(own, rows), new.most(rows)
            refuse_over_budget(own + later, budget)
            if confirmation is not None:
                forecast, dearest = (self._forecast(stage, each + later, new.text_tokens) for each in (own, most))
                await in_thread(confirmation.check, replace(forecast, most=dearest if rows is None else None))
        if tells:

            async def count_new() -> int:
                new, before = await self._look(stage, run, 0, rows, None)
                return new.most(before)

            sharing = Sharing.of(self._context.models.reader)
            run.course = Course(
                stage, self.calls, sharing, watch, confirmation, rows=rows, later=later, most=most, count_new=count_new
            )

    async def _look(
        self, stage: TextStage, run: StageRun, enough: int, rows: int | None, candidates: Candidates | None
    ) -> tuple[NewCalls, int]:
        """Return the calls that a stage has to make, and the number of its rows."""
        new = NewCalls(stage, self.calls, whole=self._selection is None)
        await new.look(self._session, self._renderer, enough, run.decided)
        if rows is None:
            rows = await in_thread(count_rows, stage, candidates, self._session, self._renderer)
        return new, rows

    def _forecast(self, stage: TextStage, calls: int, text_tokens: float) -> Forecast:
        models = self._context.models
        found = text_estimate(stage, 0, calls, text_tokens, Sharing.of(models.reader))
        money = None if models.price is None else models.price.of(found.tokens, found.output_tokens)
        return Forecast(found.calls, found.requests, found.tokens, money)

    def _stage_run(self, stage: TextStage) -> AnyRun:
        run = self._stage_runs.of(stage)
        if isinstance(run, ApproximateFilter):
            self._approximate = run
        self.report.text[stage.name] = run.counts
        return run

    async def _store(self, stage: TextStage, rows: list[StageRow]) -> None:
        self._keep_evidence(stage, rows)
        await in_thread(self._renderer.store_rows, stage.name, [row.row for row in rows])

    def _keep_evidence(self, stage: TextStage, rows: list[StageRow]) -> None:
        for row in rows if self._cited else ():
            self._evidence.add(stage.block, row)

    @property
    def _is_late(self) -> bool:
        deadline = self._options.deadline
        return deadline is not None and time.perf_counter() - self._started >= deadline

    async def _order_candidates(self, stage: TextStage) -> Candidates:
        similarity = self._context.similarity
        most = self._options.candidates if stage.predicate is not None else None
        by_similarity = tries_by_similarity(stage, self._options)
        payload = self._plan.output.payload if stage is self._plan.stages[-1] else ()
        cells = cells_read(stage)
        sql = self._renderer.sql(stage.source)
        if most is not None:
            found = [candidate async for candidate in CandidateStream(self._session, sql, cells=cells)]
            scores = await in_thread(totals, found, stage.inputs, similarity)
            return Listed([found[i] for i in np.argsort(-scores, kind="stable")[:most]])
        if by_similarity:
            pairs = is_of_pairs(stage)
            similar = MostSimilarFirst(
                self._session, sql, stage.inputs, similarity, payload, cells=cells, learns=not pairs
            )
            self._similar.append(similar)
            return FewestNewCalls(similar, calls_of(stage.inputs, self.calls)) if pairs else similar
        surely = None if stage.stop_after is None else max(_FEWEST_ROWS, 2 * stage.stop_after)
        return CandidateStream(self._session, sql, first_rows=surely, payload=payload, cells=cells)

    async def _finish(self, table: pa.Table) -> Rows:
        output = self._plan.output
        table, cut = cut_rows(table, self._options.max_rows)
        self._cut = self._cut or bool(cut)
        self._warnings += cut
        if isinstance(output.select, NativeQuery) and not output.names:
            return table, ((),) * table.num_rows
        visible = table.select(range(len(output.names))).rename_columns(list(output.names))
        evidence: list[tuple[Any, ...]] = [()] * table.num_rows
        for i, (block, _) in enumerate(output.evidence if self._cited else ()):
            hidden = table.column(len(output.names) + i).to_pylist()
            evidence = [(*e, *self._evidence.of(block, rows)) for e, rows in zip(evidence, hidden, strict=True)]
        hidden = iter(table.columns[len(output.names) :])
        for block, place in output.cited if self._cited else ():
            answers, key = next(hidden).to_pylist(), [next(hidden).to_pylist() for _ in range(place.key)]
            found = self._evidence.placed(block, answers, place, key)
            evidence = [tuple(dict.fromkeys((*e, *quotes))) for e, quotes in zip(evidence, found, strict=True)]
        if self._approximate is not None:
            self.inferred = self._evidence.inferred(output.evidence, table.columns[len(output.names) :])
        return visible, tuple(evidence)

    def trace(self, seconds: float, account: Spending) -> Trace:
        """Return the trace of the run; where the models kept an account, it also knows of calls that failed."""
        usage = account.usage if account.lines else self.calls.usage
        inference = None if self._approximate is None else self._approximate.inference
        problems = (each.problem for each in self._similar if each.problem is not None)
        self._warnings += dict.fromkeys(map(table_order, problems))
        self._warnings += list_warnings(self.calls, account, self._selection, inference, certain=self._plan.certain)
        approximations = (self._options.candidates, self._options.passages, inference)
        remote = self._context.models.reader.remote
        return Trace(
            text_calls=self.calls.made,
            cached_calls=self.calls.cached,
            unknown_calls=self.calls.unknown,
            candidate_rows=self._candidates,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cached_input_tokens=usage.cached_input_tokens,
            seconds=seconds,
            money=usage.money,
            physical_calls=usage.calls,
            spending=account.lines,
            dropped_quotes=account.dropped_quotes,
            partial=self.stopped is not None or self.interrupted or self._cut,
            exact=not (self.calls.unknown or self.calls.unknown_answers.count) and approximations == (None, None, None),
            inference=inference,
            links=self._links,
            columns_sent=tuple(sorted(self._sent.items())) if remote else (),
            warnings=tuple(self._warnings),
            unknown_answers=self.calls.unknown_answers.count,
            unknown=self.calls.unknown_answers.first,
        )
