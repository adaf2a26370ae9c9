"""Text stages that ask about some rows and infer the others (accuracy targets), and which run a stage gets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from almanaq.engines.protocols import Session
from almanaq.errors import BudgetExceeded, UsageError, suggest
from almanaq.models.protocols import Embedder, Models
from almanaq.options import Accuracy, Options
from almanaq.suql.accuracy import Inference
from almanaq.suql.accuracy.estimates import Sample, Sampling
from almanaq.suql.accuracy.tails import AuditedTails, Floats, Rows, fitted, margins, probabilities
from almanaq.suql.execution.calls import TextCalls
from almanaq.suql.execution.candidates import Candidate, Listed, PassageSelection, passages_of, totals
from almanaq.suql.execution.evidence import StageCounts, StageRow
from almanaq.suql.execution.guards import call_budget
from almanaq.suql.execution.render import Renderer
from almanaq.suql.execution.row_evaluation import ComputedAtoms
from almanaq.suql.execution.similarity import EmbedderSimilarity
from almanaq.suql.execution.text_stage import StageRun
from almanaq.suql.execution.threads import in_thread
from almanaq.suql.plan.stages import SiteInput, TextStage

_FOLDS = 10
_SCALE, _RIDGE = 4.0, 1.0
"""Unit vectors have small coordinates: so scaled, this ridge fits a hundred labels and does not learn them by heart."""


@dataclass(frozen=True, slots=True)
class Proxy:
    """Scores rows; higher where a row more likely passes.

    Attributes:
        labels: rows that are asked before it scores, drawn at random.
        scores: gives a score for each row; its second argument says by place which of those asked passed.
    """

    labels: int
    scores: Callable[[Sequence[Candidate], Mapping[int, bool]], Awaitable[Floats]]


def _similarity_proxy(inputs: Sequence[SiteInput], embedder: Embedder) -> Proxy:
    """Score a row by how like its documents are to what is asked; of several questions, weighed by the labels."""
    similarity = EmbedderSimilarity(embedder.embed_documents, embedder.embed_questions)

    async def scores(candidates: Sequence[Candidate], labelled: Mapping[int, bool]) -> Floats:
        single = [in_thread(totals, candidates, [item], similarity) for item in inputs]
        features = np.column_stack(await asyncio.gather(*single))
        if features.shape[1] == 1:
            return features[:, 0]
        rows, passed = np.array(list(labelled), np.intp), np.array(list(labelled.values()), bool)
        return margins(features, fitted(features[rows], passed, _RIDGE))

    return Proxy(60, scores)


def _regression_proxy(inputs: Sequence[SiteInput], embedder: Embedder) -> Proxy:
    """Score a row by a regression over its documents' vectors, learned from the rows that were asked."""
    documents = tuple(dict.fromkeys(item.document for item in inputs))

    def score(candidates: Sequence[Candidate], labelled: Mapping[int, bool]) -> Floats:
        features = np.hstack([_mean_vectors(candidates, name, embedder) for name in documents]) * _SCALE
        rows, passed = np.array(list(labelled), np.intp), np.array(list(labelled.values()), bool)
        scores = margins(features, fitted(features[rows], passed, _RIDGE))
        folds = np.arange(len(rows)) % _FOLDS
        for fold in range(min(_FOLDS, len(rows))):  # a labelled row is scored by a regression without its label
            seen = folds != fold
            weights = fitted(features[rows[seen]], passed[seen], _RIDGE)
            scores[rows[~seen]] = margins(features[rows[~seen]], weights)
        return scores

    async def scores(candidates: Sequence[Candidate], labelled: Mapping[int, bool]) -> Floats:
        return await in_thread(score, candidates, labelled)

    return Proxy(150, scores)


def _mean_vectors(candidates: Sequence[Candidate], document: str, embedder: Embedder) -> NDArray[np.float64]:
    """Return the mean vector of each row's passages; zeros where there is nothing to read."""
    documents = [passages_of(candidate.values[document]) for candidate in candidates]
    texts = list(dict.fromkeys(passage for passages in documents for passage in passages))
    if not texts:
        return np.zeros((len(candidates), 1))
    vectors = embedder.embed_documents(texts)
    place = {text: i for i, text in enumerate(texts)}
    found = np.zeros((len(candidates), vectors.shape[1]))
    for i, passages in enumerate(documents):
        if passages:
            found[i] = vectors[[place[passage] for passage in passages]].mean(axis=0)
    return found


_PROXIES = {"local": _similarity_proxy, "regression": _regression_proxy}
"""Those that need no language model."""


class _PartialRun:
    """One run of a text stage that asks about some of its rows; the interface is that of a StageRun.

    Args:
        room: model calls that the budget has left; None: any number.
    """

    def __init__(self, stage_run: Callable[[], StageRun], room: Callable[[], int | None]) -> None:
        self._stage_run, self._room = stage_run, room
        self._rows: list[StageRow] = []
        self.counts = StageCounts()

    def kept(self) -> list[StageRow]:
        self.counts.passed = len(self._rows)
        return sorted(self._rows, key=lambda row: row.number)

    def sure(self) -> list[StageRow]:
        return self.kept()


class ApproximateFilter(_PartialRun):
    def __init__(
        self, accuracy: Accuracy, proxy: Proxy, stage_run: Callable[[], StageRun], room: Callable[[], int | None]
    ) -> None:
        super().__init__(stage_run, room)
        self._accuracy, self._proxy = accuracy, proxy
        self._audit: AuditedTails | None = None
        self._undecided = 0

    @property
    def inference(self) -> Inference | None:
        """What was inferred; None before the first rows were asked, and where all were."""
        if self._audit is None:
            return None
        return Inference(
            self._accuracy, self._undecided, round(self._audit.thresholds.calls), self._audit.certificate()
        )

    async def batches(self, candidates: AsyncIterator[Candidate]) -> AsyncIterator[list[StageRow]]:
        """Yield the rows that pass, once the targets are reached."""
        passing, undecided = await self._stage_run().without_asking(candidates, self.counts)
        self._rows += [StageRow(each.number, each.row, {}, payload=each.payload) for each in passing]
        self._undecided = len(undecided)
        draws = np.random.default_rng(self._accuracy.seed)
        pilot = draws.permutation(len(undecided))[: self._proxy.labels]
        labelled = await self._ask(undecided, pilot)
        if len(labelled) < len(undecided):
            scores = await self._proxy.scores(undecided, labelled)
            self._audit = AuditedTails(scores, self._accuracy, labelled, seed=self._accuracy.seed)
            self._refuse_over_budget()
            while len(rows := self._audit.next()):
                verdicts = await self._ask(undecided, rows)
                self._audit.tell(rows, np.array([verdicts[row] for row in rows.tolist()]))
            accepted = [undecided[row] for row in self._audit.accepted().tolist()]
            self._rows += [StageRow(row.number, row.row, {}, payload=row.payload, inferred=True) for row in accepted]
            self.counts.inference = self.inference
        yield self.kept()

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

    def _refuse_over_budget(self) -> None:
        assert self._audit is not None
        room, expected = self._room(), round(self._audit.thresholds.calls) - self._audit.certificate().asked
        if room is not None and expected > room:
            raise BudgetExceeded(
                f"the targets are expected to need about {expected:,} more model calls for {self._undecided:,} rows, "
                f"and the budget has {room:,} left: raise --max-calls, lower the targets, or narrow the structured "
                "conditions"
            )


class SampledStage(_PartialRun):
    """One run of a text stage over rows drawn at random; no row is kept.

    Args:
        site: the one text function of a projection; None: of a filter, whether a row passes.
        proxy: narrows the interval of a count; None: nothing does.
    """

    inference: None = None

    def __init__(
        self,
        sampling: Sampling,
        site: str | None,
        stage_run: Callable[[], StageRun],
        room: Callable[[], int | None],
        proxy: Proxy | None = None,
    ) -> None:
        super().__init__(stage_run, room)
        self._sampling, self._site, self._proxy = sampling, site, proxy

    async def batches(self, candidates: AsyncIterator[Candidate]) -> AsyncIterator[list[StageRow]]:
        """Ask until the estimate is good enough, or the budget of one that stops at a width ends; yield nothing."""
        counting = self._sampling.counting
        passing, undecided = await self._stage_run().without_asking(candidates, self.counts)
        order = np.random.default_rng(counting.seed).permutation(len(undecided)).tolist()
        counting.refuse_over(self._room(), len(order))
        values: list[Any] = []
        stopped, scores = "", None
        while not self._sampling.should_stop(len(order), values):
            places = order[len(values) : len(values) + counting.batch(len(values))]
            try:
                values += await self._values([undecided[place] for place in places])
            except BudgetExceeded as error:
                if not values or counting.width is None:
                    raise
                stopped = str(error)
                break
        if self._proxy is not None and counting.may_assist(len(order), len(values), sum(values)):
            labelled = dict(zip(order, values, strict=False))
            scores = probabilities(await self._proxy.scores(undecided, labelled))[np.array(order, np.intp)]
        self.counts.sample = Sample(len(order), values, stopped, len(passing), scores)
        yield []

    async def _values(self, batch: list[Candidate]) -> list[Any]:
        run = self._stage_run()
        found = {row.number: row.values async for rows in run.batches(Listed(batch)) for row in rows}
        self.counts.add_asked(run.counts)
        if self._site is None:
            return [candidate.number in found for candidate in batch]
        return [found[candidate.number].get(self._site) for candidate in batch]


AnyRun = StageRun | ApproximateFilter | SampledStage


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
        accuracy, sampling = self.options.accuracy, self.options.counting
        if sampling is not None:
            site = None if stage.predicate is not None else stage.inputs[0].site.id
            name = sampling.counting.proxy
            proxy = None if name is None else self._proxy(stage, name)
            return SampledStage(sampling, site, lambda: self._asking(stage, self.calls), self._room, proxy)
        if accuracy is None or not stage.may_infer:
            return self._asking(stage, self.calls)
        proxy = self._proxy(stage, accuracy.proxy)
        return ApproximateFilter(accuracy, proxy, lambda: self._asking(stage, self.calls), self._room)

    def _asking(self, stage: TextStage, calls: TextCalls) -> StageRun:
        if self.options.candidates is not None:  # they come in order of similarity
            if stage.values_ordered:
                stage = replace(stage, values_wanted=None, values_ordered=False)
            if stage.ordered:
                stage = replace(stage, semi_join_key=None)
        return StageRun(
            stage,
            calls,
            ComputedAtoms(self.session, self.renderer, stage.source.args.get("with_")),
            # Where every row is asked about, as many as fill requests that several share.
            rows_at_once=2 * self.options.concurrency * (1 if stage.stop_after is not None else calls.company),
            speculation=max(1.0, self.options.speculation),
            selection=self.selection,
            # A call that costs nothing may be waited for, so that the same query gives the same rows.
            steady=not self.models.reader.paid,
        )

    def _room(self) -> int | None:
        budget = call_budget(self.options, self.models)
        return None if budget is None else budget - self.calls.made

    def _proxy(self, stage: TextStage, name: str) -> Proxy:
        if ":" not in name or self.proxy_models is None:
            if name not in _PROXIES:
                known = f"no proxy is called {name!r}{suggest(name, _PROXIES)}"
                raise UsageError(f"{known}; another model is named as openai:MODEL")
            return _PROXIES[name](stage.inputs, self.models.embedder)
        sites = [item.site for item in stage.inputs]
        reader = self.proxy_models(name).reader
        calls = TextCalls(reader, sites, max_calls=None, strict=False, concurrency=self.options.concurrency)

        async def scores(candidates: Sequence[Candidate], _: Mapping[int, bool]) -> Floats:
            run = self._asking(stage, calls)
            passed = {row.number for row in await run.ask(candidates)}
            sure = {candidate.number: float(candidate.number in passed) for candidate in candidates}
            verdicts = sure | await run.chances(candidates)
            return np.array([verdicts[candidate.number] for candidate in candidates], np.float64)

        return Proxy(60, scores)
