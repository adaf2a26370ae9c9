"""Makes the run of each text stage: exact, or approximate where the caller gave targets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from almanaq.engines.protocols import Session
from almanaq.models.protocols import Models
from almanaq.options import Options
from almanaq.suql.accuracy.estimates import Averaging, Counting, GroupCounting
from almanaq.suql.execution.approximate_filter import ApproximateFilter
from almanaq.suql.execution.calls import TextCalls
from almanaq.suql.execution.candidates import Candidate, PassageSelection
from almanaq.suql.execution.computed import ComputedAtoms
from almanaq.suql.execution.counted_filter import CountedFilter
from almanaq.suql.execution.guards import call_budget, may_infer
from almanaq.suql.execution.proxies import ModelProxy, Proxy, open_proxy
from almanaq.suql.execution.render import Renderer
from almanaq.suql.execution.sampled_values import SampledValues
from almanaq.suql.execution.text_stage import StageRun
from almanaq.suql.execution.watch import Watch, current_watch
from almanaq.suql.plan.stages import TextStage

AnyRun = StageRun | ApproximateFilter | CountedFilter | SampledValues


@dataclass(frozen=True, slots=True)
class StageRuns:
    """What the runs of one plan's text stages share.

    Attributes:
        calls: those that the model is asked; equal ones are shared by all stages.
        selection: reads only the best passages of each document; None reads all.
    """

    models: Models
    proxy_models: Callable[[str], Models] | None
    session: Session
    renderer: Renderer
    options: Options
    calls: TextCalls
    selection: PassageSelection | None

    def of(self, stage: TextStage) -> AnyRun:
        """Return the run of a stage."""
        accuracy, counting = self.options.accuracy, self.options.counting
        if counting is not None:
            return self._counting(stage, counting)
        if accuracy is None or not may_infer(stage):
            return self._asking(stage, self.calls, current_watch())
        proxy = self._proxy(stage, accuracy.proxy)
        return ApproximateFilter(accuracy, proxy, lambda: self._asking(stage, self.calls), self._room)

    def _counting(self, stage: TextStage, counting: Counting | GroupCounting | Averaging) -> AnyRun:
        """Return the run that only asks about a sample."""
        if not isinstance(counting, Counting):
            return SampledValues(counting, stage.inputs[0].site.id, lambda: self._asking(stage, self.calls), self._room)
        proxy = None if counting.proxy is None else self._proxy(stage, counting.proxy)
        return CountedFilter(counting, lambda: self._asking(stage, self.calls), self._room, proxy)

    def _asking(self, stage: TextStage, calls: TextCalls, watch: Watch | None = None) -> StageRun:
        in_order = stage.values_ordered and self.options.candidates is None  # else they come in order of similarity
        return StageRun(
            stage if in_order or not stage.values_ordered else replace(stage, values_wanted=None, values_ordered=False),
            calls,
            ComputedAtoms(self.session, self.renderer, stage.source.args.get("with_")),
            # Where every row is asked about, as many as fill requests that several share.
            rows_at_once=2 * self.options.concurrency * (calls.company if stage.predicate is None else 1),
            speculation=max(1.0, self.options.speculation),
            selection=self.selection,
            # A call that costs nothing may be waited for, so that the same query gives the same rows.
            steady=not self.models.reader.paid,
            watch=watch,
        )

    def _room(self) -> int | None:
        """Return the calls that the budget has left."""
        budget = call_budget(self.options, self.models)
        return None if budget is None else budget - self.calls.made

    def _proxy(self, stage: TextStage, name: str) -> Proxy:
        if ":" not in name or self.proxy_models is None:
            return open_proxy(name, stage.inputs, self.models.embedder)
        sites = [item.site for item in stage.inputs]
        reader = self.proxy_models(name).reader
        calls = TextCalls(reader, sites, max_calls=None, strict=False, concurrency=self.options.concurrency)

        async def ask(candidates: Sequence[Candidate]) -> dict[int, float]:
            run = self._asking(stage, calls)
            passed = {row.number for row in await run.ask(candidates)}
            sure = {candidate.number: float(candidate.number in passed) for candidate in candidates}
            return sure | await run.chances(candidates)

        return ModelProxy(ask)
