"""A text projection that asks about rows drawn at random, to estimate what all of them say."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import numpy as np

from almanaq.suql.accuracy.estimates import Averaging, GroupCounting
from almanaq.suql.execution.candidates import Candidate, Listed
from almanaq.suql.execution.stage_rows import StageCounts, StageRow
from almanaq.suql.execution.text_stage import StageRun


class SampledValues:
    """One run of a text projection over a sample; the interface is that of a StageRun, and no row is kept.

    Args:
        site: the one text function of the projection.
        stage_run: makes a run that asks about the rows it is given.
    """

    def __init__(self, sampling: GroupCounting | Averaging, site: str, stage_run: Callable[[], StageRun]) -> None:
        self._sampling, self._site, self._stage_run = sampling, site, stage_run
        self.counts = StageCounts()

    async def batches(self, candidates: AsyncIterator[Candidate]) -> AsyncIterator[list[StageRow]]:
        """Ask until the estimate is good enough; yield nothing."""
        rows = [candidate async for candidate in candidates]
        self.counts.candidates = len(rows)
        order = np.random.default_rng(self._sampling.counting.seed).permutation(len(rows)).tolist()
        values: list[str | None] = []
        while not self._sampling.should_stop(len(rows), values):
            places = order[len(values) : len(values) + self._sampling.batch(len(values))]
            values += await self._values([rows[place] for place in places])
        self.counts.sample = (values, len(rows))
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
