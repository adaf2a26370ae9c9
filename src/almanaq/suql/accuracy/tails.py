"""Audited tails: which rows of a semantic filter are asked, and what holds of those that are not.

A proxy scores every row. Some rows at random are asked to learn what the scores are worth; from them alone two
thresholds are chosen. Every row between is asked. Above, rows are accepted and below rejected unasked, and both
tails are *audited*: rows of theirs, drawn at random, are asked until bounds on the errors that are left are good
enough for the targets. A tail that never gets there is asked completely, and then exact. So the guarantee rests on
the audit alone, for any scores.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from almanaq.options import Accuracy
from almanaq.suql.accuracy.counts import CountBound
from almanaq.suql.accuracy.targets import Certificate
from almanaq.suql.accuracy.thresholds import PlannedTail, Thresholds, choose_thresholds

Rows = NDArray[np.intp]
_BATCH = 10


class AuditedTails:
    """One filter: says what to ask next, and takes the answers, until the targets are reached.

    Args:
        scores: one per row, on any scale, higher where the row more likely passes; NaN counts as the lowest.
        labels: rows asked before, drawn at random from all rows, with what was said.
        seed: draws the audits.
    """

    def __init__(
        self, scores: NDArray[np.float64], accuracy: Accuracy, labels: Mapping[int, bool], *, seed: int
    ) -> None:
        self._accuracy, self._labels = accuracy, dict(labels)
        self.thresholds: Thresholds = choose_thresholds(scores, self._labels, accuracy)
        low, high = self.thresholds.low, self.thresholds.high
        self._between = np.ones(len(scores), bool)
        for decided in (np.array(list(labels), np.intp), low.rows, high.rows):
            self._between[decided] = False
        share = accuracy.delta / max(1, sum(len(tail.rows) > 0 for tail in (low, high)))
        draws = np.random.default_rng(seed)
        self._low, self._high = _Tail(low, share, draws), _Tail(high, share, draws)

    def next(self) -> Rows:
        """Return the rows to ask next, none of which was asked; empty when the targets are reached."""
        middle: Rows = np.flatnonzero(self._between)
        certificate = self.certificate()
        if len(middle) or certificate.certified:
            return middle
        return self._tail_to_audit(certificate).next_batch()

    def tell(self, rows: Rows, passed: NDArray[np.bool_]) -> None:
        """Take what was said of rows, each of which `next` gave."""
        for row, positive in zip(rows.tolist(), passed.tolist(), strict=True):
            self._labels[row] = positive
        self._between[rows] = False
        self._low.count(self._labels, error=True)
        self._high.count(self._labels, error=False)

    def accepted(self) -> Rows:
        """Return the rows that are accepted unasked."""
        return self._high.unasked()

    def certificate(self) -> Certificate:
        """Return what is known now.

        Rows between the thresholds that are not asked yet count as rejected, and missing.
        """
        found, middle = sum(self._labels.values()), int(self._between.sum())
        accepted, rejected = self._high.left, self._low.left + middle
        wrong, missed = self._high.errors_left(), self._low.errors_left() + middle
        right = found + accepted - wrong
        recall = 1.0 if missed == 0 else right / (right + missed)
        precision = 1.0 if wrong == 0 else right / (found + accepted)
        return Certificate(
            len(self._labels),
            found,
            accepted,
            rejected,
            wrong,
            missed,
            recall,
            precision,
            recall >= self._accuracy.recall and precision >= self._accuracy.precision,
        )

    def _tail_to_audit(self, certificate: Certificate) -> _Tail:
        low, high = self._low, self._high
        if not high.left:
            return low
        if not low.left:
            return high
        precise = certificate.precision >= self._accuracy.precision
        complete = certificate.recall >= self._accuracy.recall
        if precise != complete:
            return low if precise else high
        return low if low.progress() <= high.progress() else high


class _Tail:
    def __init__(self, planned: PlannedTail, alpha: float, draws: np.random.Generator) -> None:
        self._planned, self._asked, self._errors = planned, 0, 0
        self._order: Rows = draws.permutation(np.sort(planned.rows))
        self._bound = CountBound(len(planned.rows), alpha, planned.prior)

    @property
    def left(self) -> int:
        return len(self._order) - self._asked

    def next_batch(self) -> Rows:
        size = max(_BATCH, self._asked // 10)
        return self._order[self._asked : self._asked + size]

    def count(self, labels: Mapping[int, bool], *, error: bool) -> None:
        while self._asked < len(self._order) and int(self._order[self._asked]) in labels:
            self._errors += labels[int(self._order[self._asked])] == error
            self._asked += 1

    def errors_left(self) -> int:
        return self._bound.errors(self._asked, self._errors) - self._errors if self.left else 0

    def unasked(self) -> Rows:
        return self._order[self._asked :]

    def progress(self) -> float:
        return self._asked / self._planned.audit if self._planned.audit else math.inf
