"""Audited tails: which rows of a semantic filter are asked, and what holds of those that are not.

A proxy scores every row. Some rows at random are asked to learn what the scores are worth; from them alone two
thresholds are chosen: the cheapest pair, as far as a few labels tell. Every row between is asked. Above, rows are
accepted and below rejected unasked, and both tails are *audited*: rows of theirs, drawn at random, are asked until
bounds on the errors that are left are good enough for the targets. A tail that never gets there is asked completely,
and then exact. So the guarantee rests on the audit alone, for any scores.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from almanaq.options import Accuracy
from almanaq.suql.accuracy import Certificate
from almanaq.suql.accuracy.estimates import CountBound

Floats = NDArray[np.float64]
_CUTS = 40
_STEPS = 30
_SHARES = np.array([0, 0.005, 0.01, 0.02, 0.035, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.55, 0.7, 0.85, 1.0])
"""Shares of a tail that its audit may take, as they are weighed against each other."""
_PRIOR_STRENGTH = 4.0
"""Rows that the expected share of errors in a tail is worth beside those that its audit asks."""


@dataclass(frozen=True, slots=True)
class PlannedTail:
    rows: NDArray[np.intp]
    prior: tuple[float, float]
    audit: float


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What is to be rejected and accepted unasked, and the rows that are expected to be asked in all."""

    low: PlannedTail
    high: PlannedTail
    calls: float


def choose_thresholds(scores: Floats, labels: Mapping[int, bool], accuracy: Accuracy) -> Thresholds:
    """Return the thresholds with the least expected calls, from the labels that are there and nothing else."""
    chances = chances_of(scores, labels)
    unasked = np.ones(len(scores), bool)
    unasked[list(labels)] = False
    rows = np.flatnonzero(unasked)
    rows = rows[np.argsort(chances[rows], kind="stable")]
    costs = _Costs(chances[rows], labels, accuracy)
    pairs = itertools.combinations_with_replacement(range(len(costs.cuts)), 2)
    first, last = 0, len(costs.cuts) - 1
    everything = (float(len(rows)), first, last, 0.0, 0.0)
    calls, i, j, low_audit, high_audit = min(
        [everything, *(costs.of(i, j) for i, j in pairs)], key=lambda found: found[0]
    )
    low = PlannedTail(rows[: costs.cuts[i]], _prior(costs.low_rate[i]), low_audit)
    high = PlannedTail(rows[costs.cuts[j] :], _prior(costs.high_rate[j]), high_audit)
    return Thresholds(low, high, len(labels) + calls)


def chances_of(scores: Floats, labels: Mapping[int, bool]) -> Floats:
    """Return each row's probability of passing, as its score and the labels tell.

    What is no number counts as lowest.
    """
    finite = np.isfinite(scores)
    lowest = float(scores[finite].min()) if finite.any() else 0.0
    filled = np.where(finite, scores, lowest)
    spread = float(filled.std())
    scaled = ((filled - filled.mean()) / spread if spread > 0 else np.zeros(len(filled)))[:, None]
    asked = np.array(list(labels), np.intp)
    positive = np.array(list(labels.values()), bool)
    return probabilities(margins(scaled, fitted(scaled[asked], positive, ridge=0.1)))


class _Costs:
    def __init__(self, chances: Floats, labels: Mapping[int, bool], accuracy: Accuracy) -> None:
        size = len(chances)
        self.cuts = np.unique(np.linspace(0, size, _CUTS + 1).round().astype(int))
        self._found, self._accuracy = sum(labels.values()), accuracy
        self._passing = np.concatenate([[0.0], np.cumsum(chances)])[self.cuts]
        self._high = size - self.cuts
        least = 0.5 / max(1, len(labels))  # so few labels cannot tell that there is none
        failing_above = self._high - (self._passing[-1] - self._passing)
        self.low_rate = np.maximum(self._passing / np.maximum(1, self.cuts), least)
        self.high_rate = np.maximum(failing_above / np.maximum(1, self._high), least)
        self._missed = _errors_left(self.cuts, self.low_rate, accuracy.delta / 2)
        self._wrong = _errors_left(self._high, self.high_rate, accuracy.delta / 2)

    def of(self, i: int, j: int) -> tuple[float, int, int, float, float]:
        """Return the expected calls with thresholds at cuts i and j, these, and the rows that each audit takes."""
        below, above = (self.cuts[i] * _SHARES)[:, None], (self._high[j] * _SHARES)[None, :]
        passing = self._found + self._passing[j] - self._passing[i]
        passing = passing + self.low_rate[i] * below + (1 - self.high_rate[j]) * above
        returned = passing + self._high[j] - above
        right = returned - self._wrong[j][None, :]
        precise = right >= self._accuracy.precision * returned
        complete = right >= self._accuracy.recall * (right + self._missed[i][:, None])
        asked = np.where(precise & complete, below + above, np.inf)
        a, b = np.unravel_index(int(np.argmin(asked)), asked.shape)
        middle = float(self.cuts[j] - self.cuts[i])
        return float(asked[a, b]) + middle, i, j, float(below[a, 0]), float(above[0, b])


def _errors_left(size: NDArray[np.int_], rate: Floats, alpha: float) -> Floats:
    """Return the bound on the errors left in tails, [tail, share], where each share is audited and errs at the rate.

    It stands in for the audit's own bound, which is more expensive to compute, where only the cost is weighed.
    """
    audited = size[:, None] * _SHARES[None, :]
    left = size[:, None] - audited
    with np.errstate(divide="ignore", invalid="ignore"):
        doubt = (np.log(1 / alpha) + 0.5 * np.log1p(audited)) / audited * (left / np.maximum(1, size[:, None]))
        above = np.sqrt(2 * rate[:, None] * (1 - rate[:, None]) * doubt) + 0.7 * doubt
        bound = np.minimum(left, left * (rate[:, None] + above))
    found: Floats = np.where(audited >= 1, bound, left)
    return found


def _prior(rate: float) -> tuple[float, float]:
    likely = min(0.95, max(0.005, float(rate)))
    return max(0.15, _PRIOR_STRENGTH * likely), max(0.15, _PRIOR_STRENGTH * (1 - likely))


# --- logistic regression with a ridge, for scores learned from a few labels -------------------------------------------


def fitted(features: Floats, labels: NDArray[np.bool_], ridge: float) -> Floats:
    """Return the weights of a logistic regression, the constant's last; found by Newton's method."""
    design = _with_constant(features)
    penalty = np.full(design.shape[1], ridge)
    penalty[-1] = 1e-3  # labels of one kind alone have no finite constant
    weights = np.zeros(design.shape[1])
    target = labels.astype(np.float64)
    for _ in range(_STEPS):
        chance = probabilities(design @ weights)
        slope = design.T @ (chance - target) + penalty * weights
        curvature = (design.T * np.maximum(chance * (1 - chance), 1e-9)) @ design + np.diag(penalty)
        step = np.linalg.solve(curvature, slope)
        # Far from the minimum a whole step may overshoot where the curve is flat.
        weights -= step * min(1.0, 5.0 / max(1e-12, float(np.abs(step).max())))
        if float(np.abs(step).max()) < 1e-8:
            break
    return weights


def margins(features: Floats, weights: Floats) -> Floats:
    found: Floats = _with_constant(features) @ weights
    return found


def probabilities(log_odds: Floats) -> Floats:
    found: Floats = 1 / (1 + np.exp(-np.clip(log_odds, -40, 40)))
    return found


def _with_constant(features: Floats) -> Floats:
    return np.column_stack([features, np.ones(len(features))])


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
        for row, positive in zip(rows.tolist(), passed.tolist(), strict=True):
            self._labels[row] = positive
        self._between[rows] = False
        self._low.count(self._labels, error=True)
        self._high.count(self._labels, error=False)

    def accepted(self) -> Rows:
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
