"""A text filter that asks about as many rows as its targets need, and infers the others."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence

import numpy as np

from almanaq.errors import BudgetExceeded
from almanaq.options import Accuracy
from almanaq.suql.accuracy.tails import AuditedTails, Rows
from almanaq.suql.accuracy.targets import Inference
from almanaq.suql.execution.candidates import Candidate
from almanaq.suql.execution.proxies import Proxy
from almanaq.suql.execution.stage_rows import StageCounts, StageRow
from almanaq.suql.execution.text_stage import StageRun


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
            self._rows += [self._inferred(undecided[row]) for row in self._audit.accepted().tolist()]
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
    def _inferred(candidate: Candidate) -> StageRow:
        return StageRow(candidate.number, candidate.row, {}, payload=candidate.payload, inferred=True)
