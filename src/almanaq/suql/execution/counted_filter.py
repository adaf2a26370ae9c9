"""A text filter that asks about rows drawn at random, to estimate how many pass."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import numpy as np

from almanaq.suql.accuracy.estimates import CountEstimate, Counting
from almanaq.suql.execution.candidates import Candidate
from almanaq.suql.execution.stage_rows import StageCounts, StageRow
from almanaq.suql.execution.text_stage import StageRun


class CountedFilter:
    """One run of a text filter over a sample; the interface is that of a StageRun, and no row is kept.

    Args:
        stage_run: makes a run that asks about the rows it is given.
    """

    def __init__(self, counting: Counting, stage_run: Callable[[], StageRun]) -> None:
        self._counting, self._stage_run = counting, stage_run
        self.counts = StageCounts()

    async def batches(self, candidates: AsyncIterator[Candidate]) -> AsyncIterator[list[StageRow]]:
        """Ask until the estimate is good enough; yield nothing."""
        passing, undecided = await self._stage_run().without_asking(candidates, self.counts)
        surely = len(passing)
        order = np.random.default_rng(self._counting.seed).permutation(len(undecided)).tolist()
        asked = passed = 0
        while not self._counting.enough(len(order), asked, passed):
            batch = [undecided[place] for place in order[asked : asked + self._counting.batch(asked)]]
            passed += await self._passing(batch)
            asked += len(batch)
        found = self._counting.interval(len(order), asked, passed)
        guess = round(len(order) * passed / asked) if asked else 0
        confidence = self._counting.confidence
        self.counts.estimate = CountEstimate(
            surely + guess, surely + found.low, surely + found.high, confidence, asked, len(order)
        )
        yield []

    async def _passing(self, batch: list[Candidate]) -> int:
        run = self._stage_run()
        passed = await run.ask(batch)
        self.counts.add_asked(run.counts)
        return len(passed)

    @property
    def inference(self) -> None:
        """Nothing is inferred of any row."""

    def kept(self) -> list[StageRow]:
        """Give nothing: the rows are only counted."""
        return []

    sure = kept
