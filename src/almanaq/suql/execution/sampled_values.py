"""A text projection that asks about rows drawn at random, to estimate what all of them say."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import numpy as np

from almanaq.errors import BudgetExceeded
from almanaq.suql.accuracy.estimates import Averaging, GroupCounting, Sample
from almanaq.suql.execution.candidates import Candidate, Listed
from almanaq.suql.execution.stage_rows import StageCounts, StageRow
from almanaq.suql.execution.text_stage import StageRun


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
