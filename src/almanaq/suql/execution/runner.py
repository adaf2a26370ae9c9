"""Running a plan from its first stage to the rows of the result."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from sqlglot import exp

from almanaq.errors import BudgetExceeded, DeadlineExceeded, RefusedQueryError
from almanaq.models.budget import Budget
from almanaq.models.protocols import Models
from almanaq.models.spending import Spending, operator, spending
from almanaq.suql.catalog.relations import Catalog
from almanaq.suql.databases.protocol import Database, Session
from almanaq.suql.execution.calls import TextCalls
from almanaq.suql.execution.candidates import (
    Candidate,
    PassageSelection,
    Similarity,
    similar_candidates,
    stream_candidates,
)
from almanaq.suql.execution.computed import ComputedAtoms
from almanaq.suql.execution.evidence import EvidenceBook
from almanaq.suql.execution.linker import link_literals
from almanaq.suql.execution.render import Renderer
from almanaq.suql.execution.result import Result, Trace
from almanaq.suql.execution.text_stage import StageCounts, StageRow, StageRun
from almanaq.suql.options import Options
from almanaq.suql.plan.blocks import is_plain
from almanaq.suql.plan.estimate import estimate
from almanaq.suql.plan.references import aliased, column, quoted
from almanaq.suql.plan.sites import Site
from almanaq.suql.plan.stages import ROW, Materialize, Plan, TextStage

DEFAULT_MAX_CALLS = 1000


@dataclass
class RunReport:
    """What each stage did, by the name of the table it made: rows for SQL stages, counts for text stages."""

    rows: dict[str, int] = field(default_factory=dict)
    text: dict[str, StageCounts] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def figures(self) -> dict[str, dict[str, Any]]:
        """Give what each stage took, as EXPLAIN shows it."""
        found: dict[str, dict[str, Any]] = {name: {"rows": rows} for name, rows in self.rows.items()}
        for name, counts in self.text.items():
            found[name] = {"rows": counts.passed, "candidates": counts.candidates, "calls": counts.calls}
        for name, seconds in self.seconds.items():
            found[name]["seconds"] = round(seconds, 4)
        return found


@dataclass(frozen=True)
class Runner:
    """Runs plans over one database with one set of models."""

    database: Database
    catalog: Catalog
    models: Models
    similarity: Similarity

    async def run(self, plan: Plan, options: Options, *, suql: str = "") -> tuple[Result, RunReport]:
        """Give the rows of a plan, and what each stage did. Cancelling stops the database and every call under way."""
        started = time.perf_counter()
        check_privacy(plan, self.catalog, self.models)
        max_calls = call_budget(options, self.models)
        limit = None if max_calls is None else Budget(calls=max_calls, setting="--max-calls")
        with self.database.session(options.deadline) as session, spending(limit) as account:
            run = _Run(self, plan, options, session)
            try:
                async with asyncio.timeout(options.deadline):
                    table, evidence = await run.all()
            except TimeoutError as error:
                session.interrupt()
                raise DeadlineExceeded(f"the query ran longer than its deadline of {options.deadline:g} s") from error
            except BaseException:
                session.interrupt()
                raise
            finally:
                await run.calls.cancel()
        result = Result(table, evidence, run.trace(time.perf_counter() - started, account), suql)
        if run.stopped is not None:
            raise BudgetExceeded(str(run.stopped), partial=result) from run.stopped
        return result, run.report


class _Run:
    """One run: the session, the calls, and what is known so far."""

    def __init__(self, runner: Runner, plan: Plan, options: Options, session: Session) -> None:
        self._runner, self._plan, self._options, self._session = runner, plan, options, session
        self._renderer = Renderer(session, runner.catalog, runner.database.dialect)
        reader, budget = runner.models.reader, call_budget(options, runner.models)
        sites = [item.site for stage in plan.stages if isinstance(stage, TextStage) for item in stage.inputs]
        self.calls = TextCalls(reader, sites, max_calls=budget, strict=options.strict, concurrency=options.concurrency)
        self._budget = budget
        self._selection: PassageSelection | None = None
        if options.passages is not None:
            self._selection = PassageSelection(runner.similarity, options.passages)
        self._stopped: BudgetExceeded | None = None
        self._evidence = EvidenceBook()
        self._sent: Counter[str] = Counter()
        self._candidates = 0
        self._links: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
        self._warnings: list[str] = []
        self.report = RunReport()

    async def all(self) -> tuple[pa.Table, tuple[Any, ...]]:
        """Run every stage; give the result's rows and the evidence for each."""
        if self._plan.links:
            with operator("link"):
                self._links = await link_literals(self._plan.links, self._runner.models.linker, self._renderer)
        for stage in self._plan.stages:
            started = time.perf_counter()
            if isinstance(stage, Materialize):
                sql = self._renderer.sql(stage.select)
                self.report.rows[stage.name] = await asyncio.to_thread(self._session.create, stage.name, sql)
                self._renderer.add_table(stage.name)
            else:
                with operator(stage.name):
                    await self._text(stage)
            self.report.seconds[stage.name] = time.perf_counter() - started
        table = await asyncio.to_thread(self._session.fetch, self._renderer.sql(self._plan.output.select))
        return self._finish(table)

    @property
    def stopped(self) -> BudgetExceeded | None:
        """The budget's error, when it stopped the run and what was found is surely in the full result."""
        return self._stopped

    async def _text(self, stage: TextStage) -> None:
        computed = ComputedAtoms(self._session, self._renderer, stage.source.args.get("with_"))
        run = StageRun(
            stage,
            self.calls,
            computed,
            rows_at_once=2 * self._options.concurrency,
            speculation=max(1.0, self._options.speculation),
            selection=self._selection,
        )
        if not self.report.text:
            await self._refuse_over_budget(stage)
        candidates = self._ordered(stage)
        try:
            rows = await run.run(candidates)
        except BudgetExceeded as error:
            if not self._rows_are_sure(stage):
                raise
            self._stopped, rows = error, run.sure()
        finally:
            await candidates.aclose()  # type: ignore[attr-defined]
            self._candidates += run.counts.candidates
            self.report.text[stage.name] = run.counts
        self._keep(stage, rows)
        await asyncio.to_thread(self._session.store, stage.name, self._table(stage, rows))
        self._renderer.add_table(stage.name, empty=not rows)

    async def _refuse_over_budget(self, stage: TextStage) -> None:
        """Raise BudgetExceeded before the first call if more are expected than the budget allows (semantics 13)."""
        if self._budget is None:
            return
        expected = estimate(self._plan, self._runner.catalog, self.report.rows)
        calls = {name: figures.calls for name, figures in expected.items()}
        if stage.enough is None:
            calls[stage.name] = await asyncio.to_thread(self._distinct_calls, stage)
        total = sum(calls.values())
        if total > self._budget:
            raise BudgetExceeded(
                f"the query is expected to make about {total:,} model calls, above the budget of {self._budget:,}: "
                "narrow its structured conditions, add a LIMIT, or raise --max-calls; nothing was asked"
            )

    def _distinct_calls(self, stage: TextStage) -> int:
        """Count the distinct texts that a stage without a LIMIT will ask about."""
        source = exp.Subquery(this=stage.source.copy(), alias=exp.TableAlias(this=quoted("_asked")))
        parts = [(item.document, item.question_column) for item in stage.inputs]
        counted = [
            aliased(exp.Count(this=exp.Distinct(expressions=[column("_asked", document)])), f"n{i}")
            for i, (document, _) in enumerate(parts)
        ]
        found = self._session.fetch(self._renderer.sql(exp.Select(expressions=counted, from_=exp.From(this=source))))
        counts = [found.column(i)[0].as_py() for i in range(len(parts))]
        return sum(counts) if stage.predicate is None else max(counts)

    def _rows_are_sure(self, stage: TextStage) -> bool:
        """Say whether each row that passed a stopped filter is in the full result: nothing above looks across rows."""
        output = self._plan.output
        texts = [other for other in self._plan.stages if isinstance(other, TextStage)]
        if stage.predicate is None or texts[-1] is not stage or not isinstance(output.select, exp.Select):
            return False
        return [block for block, _ in output.evidence] == [stage.block] and is_plain(output.select)

    async def _ordered(self, stage: TextStage) -> AsyncIterator[Candidate]:
        """Yield a stage's candidates in the order in which they are to be tried (semantics 9)."""
        sql = self._renderer.sql(stage.source)
        approximate = self._options.candidates if stage.predicate is not None else None
        by_similarity = self._options.order == "similarity" and stage.enough is not None and not stage.ordered
        if by_similarity or approximate is not None:
            similarity = self._runner.similarity
            ranked = await similar_candidates(self._session, sql, stage.inputs, similarity, approximate)
            for candidate in ranked:
                yield candidate
            return
        stream = stream_candidates(self._session, sql)
        try:
            async for candidate in stream:
                yield candidate
        finally:
            await stream.aclose()  # type: ignore[attr-defined]

    def _keep(self, stage: TextStage, rows: list[StageRow]) -> None:
        for row in rows:
            self._evidence.add(stage.block, row)
        self._sent.update(self.report.text[stage.name].cells)

    def _table(self, stage: TextStage, rows: list[StageRow]) -> pa.Table:
        """Give a stage's rows as the table that later SQL joins on ROW."""
        columns: dict[str, pa.Array] = {ROW: pa.array([row.row for row in rows], None if rows else pa.int64())}
        for item in stage.inputs if stage.predicate is None else ():
            site: Site = item.site
            values = [row.values.get(site.id) for row in rows]
            spelled = [value if value is None else self.calls.spell(value) for value in values]
            columns[site.id] = pa.array(spelled, pa.string())
            for name in site.columns[1:]:
                columns[name] = pa.array([row.values.get(name) for row in rows], pa.bool_())
        return pa.table(columns)

    def _finish(self, table: pa.Table) -> tuple[pa.Table, tuple[Any, ...]]:
        """Name the visible columns, and turn the hidden ones into evidence."""
        output = self._plan.output
        visible = table.select(range(len(output.names))).rename_columns(list(output.names))
        evidence: list[tuple[Any, ...]] = [()] * table.num_rows
        for i, (block, _) in enumerate(output.evidence):
            hidden = table.column(len(output.names) + i).to_pylist()
            evidence = [(*e, *self._evidence.of(block, rows)) for e, rows in zip(evidence, hidden, strict=True)]
        return visible, tuple(evidence)

    def trace(self, seconds: float, account: Spending) -> Trace:
        """Give the trace of the run; where the models kept an account, it also knows of calls that failed."""
        usage = account.usage if account.lines else self.calls.usage
        if self.calls.unparsed:
            self._warnings.append(
                f"{self.calls.unparsed} answer(s) could not be read as the type asked for; they are NULL"
            )
        if self.calls.unknown:
            self._warnings.append(f"{self.calls.unknown} call(s) failed after their retries; their answers are unknown")
        if self._selection is not None:
            self._warnings.append(f"approximate: read {self._selection.read} of {self._selection.total} passages")
        remote = self._runner.models.reader.remote
        return Trace(
            text_calls=self.calls.made,
            cached_calls=self.calls.cached,
            unknown_calls=self.calls.unknown,
            candidate_rows=self._candidates,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            seconds=seconds,
            money=usage.money,
            physical_calls=usage.calls,
            spending=account.lines,
            partial=self._stopped is not None,
            exact=self._options.candidates is None and self._options.passages is None,
            links=self._links,
            columns_sent=tuple(sorted(self._sent.items())) if remote else (),
            warnings=tuple(self._warnings),
        )


def call_budget(options: Options, models: Models) -> int | None:
    """Give the most calls that a query may make; None: any number."""
    if options.max_calls is not None:
        return options.max_calls
    return DEFAULT_MAX_CALLS if models.reader.paid else None


def check_privacy(plan: Plan, catalog: Catalog, models: Models) -> None:
    """Raise RefusedQueryError if a private column would be sent to a remote model (semantics 16)."""
    if not models.reader.remote:
        return
    for stage in plan.stages:
        for item in stage.inputs if isinstance(stage, TextStage) else ():
            relation = catalog.find(item.relation) if item.relation else None
            column = relation.column(item.column) if relation is not None else None
            if column is not None and column.private:
                raise RefusedQueryError(
                    f"{item.relation}.{item.column} is private and would be sent to the model {models.name!r}; "
                    "use --model local, or change `private` in the schema file"
                )
