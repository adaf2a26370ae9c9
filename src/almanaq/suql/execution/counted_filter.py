"""A text filter that asks about rows drawn at random, to estimate how many pass."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import numpy as np

from almanaq.errors import BudgetExceeded
from almanaq.suql.accuracy.counts import Interval
from almanaq.suql.accuracy.estimates import CountEstimate, Counting
from almanaq.suql.accuracy.regression import probabilities
from almanaq.suql.execution.candidates import Candidate
from almanaq.suql.execution.proxies import Proxy
from almanaq.suql.execution.stage_rows import StageCounts, StageRow
from almanaq.suql.execution.text_stage import StageRun


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
            guess, found = await self._assisted(self._proxy, undecided, verdicts)
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

    async def _assisted(self, proxy: Proxy, rows: list[Candidate], said: dict[int, bool]) -> tuple[int, Interval]:
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
