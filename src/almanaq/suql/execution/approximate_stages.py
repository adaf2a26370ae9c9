"""Text stages that ask about some rows and infer the others (accuracy targets), and which run a stage gets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from almanaq.engines.protocols import Session
from almanaq.errors import BudgetExceeded, UsageError, suggest
from almanaq.models.protocols import Embedder, Models
from almanaq.options import Accuracy, Options
from almanaq.suql.accuracy.counts import Interval
from almanaq.suql.accuracy.estimates import Averaging, CountEstimate, Counting, GroupCounting, Sample
from almanaq.suql.accuracy.tails import AuditedTails, Rows
from almanaq.suql.accuracy.targets import Inference
from almanaq.suql.accuracy.thresholds import Floats, fitted, margins, probabilities
from almanaq.suql.execution.calls import TextCalls
from almanaq.suql.execution.candidates import Candidate, Listed, PassageSelection, passages_of, totals
from almanaq.suql.execution.guards import call_budget
from almanaq.suql.execution.render import Renderer
from almanaq.suql.execution.report import Watch, current_watch
from almanaq.suql.execution.row_evaluation import ComputedAtoms
from almanaq.suql.execution.similarity import EmbedderSimilarity
from almanaq.suql.execution.stage_rows import StageCounts, StageRow
from almanaq.suql.execution.text_stage import StageRun
from almanaq.suql.execution.threads import in_thread
from almanaq.suql.plan.stages import SiteInput, TextStage

Ask = Callable[[Sequence[Candidate]], Awaitable[Mapping[int, float]]]
"""Asks a model about rows; gives by number how likely each passes, 1 or 0 where it does not say how likely."""

PROXIES = ("local", "regression")
_FOLDS = 10
_SCALE, _RIDGE = 4.0, 1.0
"""Unit vectors have small coordinates: so scaled, this ridge fits a hundred labels and does not learn them by heart."""


class Proxy(Protocol):
    """Scores rows; higher where a row more likely passes.

    Attributes:
        labels: rows that are asked before it scores, drawn at random.
    """

    labels: int

    async def scores(self, candidates: Sequence[Candidate], labelled: Mapping[int, bool], /) -> Floats:
        """Return a score for each row; `labelled` says by place which of those asked passed."""
        ...


class SimilarityProxy:
    """Scores a row by how like its documents are to what is asked of them."""

    labels = 60

    def __init__(self, inputs: Sequence[SiteInput], embedder: Embedder) -> None:
        self._inputs = inputs
        self._similarity = EmbedderSimilarity(embedder.embed_documents, embedder.embed_questions)

    async def scores(self, candidates: Sequence[Candidate], labelled: Mapping[int, bool], /) -> Floats:
        """Return the similarity; where several things are asked, weighed as the labels tell."""
        single = [in_thread(totals, candidates, [item], self._similarity) for item in self._inputs]
        features = np.column_stack(await asyncio.gather(*single))
        if features.shape[1] == 1:
            return features[:, 0]
        rows, passed = np.array(list(labelled), np.intp), np.array(list(labelled.values()), bool)
        return margins(features, fitted(features[rows], passed, _RIDGE))


class RegressionProxy:
    """Scores a row by a regression over its documents' vectors, learned from the rows that were asked."""

    labels = 150

    def __init__(self, inputs: Sequence[SiteInput], embedder: Embedder) -> None:
        self._documents = tuple(dict.fromkeys(item.document for item in inputs))
        self._embedder = embedder

    async def scores(self, candidates: Sequence[Candidate], labelled: Mapping[int, bool], /) -> Floats:
        """Return the log odds; those of a labelled row come from a regression that has not seen its label."""
        return await in_thread(self._scores, candidates, labelled)

    def _scores(self, candidates: Sequence[Candidate], labelled: Mapping[int, bool]) -> Floats:
        features = np.hstack([self._vectors(candidates, name) for name in self._documents]) * _SCALE
        rows = np.array(list(labelled), np.intp)
        passed = np.array(list(labelled.values()), bool)
        scores = margins(features, fitted(features[rows], passed, _RIDGE))
        folds = np.arange(len(rows)) % _FOLDS
        for fold in range(min(_FOLDS, len(rows))):
            seen = folds != fold
            weights = fitted(features[rows[seen]], passed[seen], _RIDGE)
            scores[rows[~seen]] = margins(features[rows[~seen]], weights)
        return scores

    def _vectors(self, candidates: Sequence[Candidate], document: str) -> NDArray[np.float64]:
        """Return the mean vector of each row's passages; zeros where there is nothing to read."""
        documents = [passages_of(candidate.values[document]) for candidate in candidates]
        texts = list(dict.fromkeys(passage for passages in documents for passage in passages))
        if not texts:
            return np.zeros((len(candidates), 1))
        vectors = self._embedder.embed_documents(texts)
        place = {text: i for i, text in enumerate(texts)}
        found = np.zeros((len(candidates), vectors.shape[1]))
        for i, passages in enumerate(documents):
            if passages:
                found[i] = vectors[[place[passage] for passage in passages]].mean(axis=0)
        return found


class ModelProxy:
    """Scores a row by what a cheaper model says of it."""

    labels = 60

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def scores(self, candidates: Sequence[Candidate], _: Mapping[int, bool], /) -> Floats:
        """Return how likely each row passes by the cheaper model; 1 or 0 where its server does not tell."""
        verdicts = await self._ask(candidates)
        return np.array([verdicts[candidate.number] for candidate in candidates], np.float64)


def open_proxy(name: str, inputs: Sequence[SiteInput], embedder: Embedder) -> Proxy:
    """Return a proxy that needs no language model; raise UsageError for a name that is none."""
    match name:
        case "local":
            return SimilarityProxy(inputs, embedder)
        case "regression":
            return RegressionProxy(inputs, embedder)
    raise UsageError(f"no proxy is called {name!r}{suggest(name, PROXIES)}; another model is named as openai:MODEL")


class ApproximateFilter:
    """One run of a text filter under targets; the interface is that of a StageRun.

    Args:
        stage_run: makes a run that asks about the rows it is given.
        room: model calls that the budget has left; None: any number.
    """

    def __init__(
        self,
        accuracy: Accuracy,
        proxy: Proxy,
        stage_run: Callable[[], StageRun],
        room: Callable[[], int | None],
    ) -> None:
        self._accuracy, self._proxy, self._stage_run, self._room = accuracy, proxy, stage_run, room
        self._rows: list[StageRow] = []
        self._audit: AuditedTails | None = None
        self._undecided = 0
        self.counts = StageCounts()

    @property
    def inference(self) -> Inference | None:
        """What was inferred; None before the first rows were asked, and where all were."""
        if self._audit is None:
            return None
        return Inference(
            self._accuracy, self._undecided, round(self._audit.thresholds.calls), self._audit.certificate()
        )

    async def batches(self, candidates: AsyncIterator[Candidate]) -> AsyncIterator[list[StageRow]]:
        """Yield the rows that pass, once the targets are reached.

        Raises:
            BudgetExceeded: the targets are expected to need more calls than the budget has left, or needed them.
        """
        undecided = await self._decide(candidates)
        draws = np.random.default_rng(self._accuracy.seed)
        pilot = draws.permutation(len(undecided))[: self._proxy.labels]
        labelled = await self._ask(undecided, pilot)
        if len(labelled) < len(undecided):
            scores = await self._proxy.scores(undecided, labelled)
            self._audit = AuditedTails(scores, self._accuracy, labelled, seed=self._accuracy.seed)
            self._refuse_what_is_too_dear()
            while len(rows := self._audit.next()):
                verdicts = await self._ask(undecided, rows)
                self._audit.tell(rows, np.array([verdicts[row] for row in rows.tolist()]))
            self._rows += [self._infer_row(undecided[row]) for row in self._audit.accepted().tolist()]
            self.counts.inference = self.inference
        yield self.kept()

    def kept(self) -> list[StageRow]:
        """Return the rows that the run kept, in source order."""
        self.counts.passed = len(self._rows)
        return sorted(self._rows, key=lambda row: row.number)

    def sure(self) -> list[StageRow]:
        """Return the rows that passed when they were asked, before the run was stopped."""
        return self.kept()

    async def _decide(self, candidates: AsyncIterator[Candidate]) -> list[Candidate]:
        """Return the rows that only the model can decide; keep those that pass without it."""
        passing, undecided = await self._stage_run().without_asking(candidates, self.counts)
        self._rows += [StageRow(each.number, each.row, {}, payload=each.payload) for each in passing]
        self._undecided = len(undecided)
        return undecided

    async def _ask(self, candidates: Sequence[Candidate], rows: Rows) -> dict[int, bool]:
        """Ask about the rows at some places; give which of them passed, by place."""
        run = self._stage_run()
        asked = [candidates[row] for row in rows.tolist()]
        try:
            await run.ask(asked)
        finally:
            passed = run.kept()
            self._rows += passed
            self.counts.add_asked(run.counts)
        numbers = {row.number for row in passed}
        return {row: candidates[row].number in numbers for row in rows.tolist()}

    def _refuse_what_is_too_dear(self) -> None:
        """Raise BudgetExceeded where more calls are expected than the budget has left."""
        assert self._audit is not None
        room, expected = self._room(), round(self._audit.thresholds.calls) - self._audit.certificate().asked
        if room is not None and expected > room:
            raise BudgetExceeded(
                f"the targets are expected to need about {expected:,} more model calls for {self._undecided:,} rows, "
                f"and the budget has {room:,} left: raise --max-calls, lower the targets, or narrow the structured "
                "conditions"
            )

    @staticmethod
    def _infer_row(candidate: Candidate) -> StageRow:
        return StageRow(candidate.number, candidate.row, {}, payload=candidate.payload, inferred=True)


class CountedFilter:
    """One run of a text filter over a sample; the interface is that of a StageRun, and no row is kept.

    Args:
        stage_run: makes a run that asks about the rows it is given.
        room: model calls that the budget has left; None: any number.
        proxy: narrows the interval; None: nothing does.
    """

    def __init__(
        self,
        counting: Counting,
        stage_run: Callable[[], StageRun],
        room: Callable[[], int | None],
        proxy: Proxy | None = None,
    ) -> None:
        self._counting, self._stage_run, self._room, self._proxy = counting, stage_run, room, proxy
        self.counts = StageCounts()

    async def batches(self, candidates: AsyncIterator[Candidate]) -> AsyncIterator[list[StageRow]]:
        """Ask until the estimate is good enough, or the budget of one that stops at a width ends; yield nothing."""
        passing, undecided = await self._stage_run().without_asking(candidates, self.counts)
        surely = len(passing)
        order = np.random.default_rng(self._counting.seed).permutation(len(undecided)).tolist()
        self._counting.refuse_over(self._room(), len(order))
        verdicts: dict[int, bool] = {}
        stopped = ""
        while not self._counting.should_stop(len(order), len(verdicts), sum(verdicts.values())):
            places = order[len(verdicts) : len(verdicts) + self._counting.batch(len(verdicts))]
            try:
                passed = await self._passing([undecided[place] for place in places])
            except BudgetExceeded as error:
                if not verdicts or self._counting.width is None:
                    raise
                stopped = str(error)
                break
            verdicts |= {place: undecided[place].number in passed for place in places}
        asked, count = len(verdicts), sum(verdicts.values())
        found = self._counting.interval(len(order), asked, count)
        guess, method = round(len(order) * count / asked) if asked else 0, self._counting.method
        if self._proxy is not None and self._counting.may_assist(len(order), asked, count):
            guess, found = await self._narrow_interval(self._proxy, undecided, verdicts)
            method = "asymptotic"
        self.counts.estimate = CountEstimate(
            surely + guess,
            surely + found.low,
            surely + found.high,
            self._counting.confidence,
            asked,
            len(order),
            method,
            stopped,
        )
        yield []

    async def _narrow_interval(
        self, proxy: Proxy, rows: list[Candidate], said: dict[int, bool]
    ) -> tuple[int, Interval]:
        """Return a guess and an interval that the proxy's scores have narrowed."""
        scores = probabilities(await proxy.scores(rows, said))
        return self._counting.assisted(
            len(rows), list(said.values()), scores[np.array(list(said), np.intp)], float(scores.mean())
        )

    async def _passing(self, batch: list[Candidate]) -> set[int]:
        run = self._stage_run()
        passed = await run.ask(batch)
        self.counts.add_asked(run.counts)
        return {row.number for row in passed}

    @property
    def inference(self) -> None:
        """Nothing is inferred of any row."""

    def kept(self) -> list[StageRow]:
        """Return nothing: the rows are only counted."""
        return []

    sure = kept


class SampledValues:
    """One run of a text projection over a sample; the interface is that of a StageRun, and no row is kept.

    Args:
        site: the one text function of the projection.
        stage_run: makes a run that asks about the rows it is given.
        room: model calls that the budget has left; None: any number.
    """

    def __init__(
        self,
        sampling: GroupCounting | Averaging,
        site: str,
        stage_run: Callable[[], StageRun],
        room: Callable[[], int | None],
    ) -> None:
        self._sampling, self._site, self._stage_run, self._room = sampling, site, stage_run, room
        self.counts = StageCounts()

    async def batches(self, candidates: AsyncIterator[Candidate]) -> AsyncIterator[list[StageRow]]:
        """Ask until the estimate is good enough, or the budget of one that stops at a width ends; yield nothing."""
        rows = [candidate async for candidate in candidates]
        self.counts.candidates = len(rows)
        order = np.random.default_rng(self._sampling.counting.seed).permutation(len(rows)).tolist()
        self._sampling.counting.refuse_over(self._room(), len(rows))
        values: list[str | None] = []
        stopped = ""
        while not self._sampling.should_stop(len(rows), values):
            places = order[len(values) : len(values) + self._sampling.batch(len(values))]
            try:
                values += await self._values([rows[place] for place in places])
            except BudgetExceeded as error:
                if not values or self._sampling.counting.width is None:
                    raise
                stopped = str(error)
                break
        self.counts.sample = Sample(len(rows), values, stopped)
        yield []

    async def _values(self, batch: list[Candidate]) -> list[str | None]:
        run = self._stage_run()
        found = [row async for rows in run.batches(Listed(batch)) for row in rows]
        self.counts.add_asked(run.counts)
        return [row.values.get(self._site) for row in found]

    @property
    def inference(self) -> None:
        """Nothing is inferred of any row."""

    def kept(self) -> list[StageRow]:
        """Return nothing: the rows are only drawn from."""
        return []

    sure = kept


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
        if accuracy is None or not stage.may_infer:
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
            rows_at_once=2 * self.options.concurrency * (1 if stage.stop_after is not None else calls.company),
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
