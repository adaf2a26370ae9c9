"""Measures of fact verification: verdicts true, false and "not enough" against gold labels true and false."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

LABELS = ("true", "false")
_VERDICTS = (*LABELS, "")
_KINDS = tuple((verdict, gold) for verdict in _VERDICTS for gold in LABELS)


@dataclass(frozen=True, slots=True)
class VerificationScores:
    """Means over statements, each from 0 to 1.

    Attributes:
        precision, recall, f1: of the two labels, weighted by how many statements have each; a verdict that is neither
            label is an unmatched prediction: it lowers recall, and precision is not asked about it.
        recall_answered: of the statements that got a verdict alone.
        coverage: the share of statements that got one.
    """

    precision: float
    recall: float
    f1: float
    recall_answered: float
    coverage: float


def score_verdicts(pairs: Sequence[tuple[str, str]]) -> VerificationScores:
    """Return the means over (verdict, gold label) pairs; all are 0 where there are none.

    >>> scores = score_verdicts([("true", "true"), ("false", "true"), ("not enough", "false")])
    >>> round(scores.coverage, 2), scores.recall_answered
    (0.67, 0.5)
    """
    sums = verdict_counts(pairs).sum(axis=0, keepdims=True)
    return VerificationScores(*map(float, verification_measures(sums)[0]))


def verdict_counts(pairs: Sequence[tuple[str, str]]) -> Values:
    """Return what the measures are computed of, shape (statements, 6): 1 in the column of verdict and gold label."""
    counts = np.zeros((len(pairs), len(_KINDS)))
    for row, (verdict, gold) in enumerate(pairs):
        counts[row, _KINDS.index((verdict if verdict in LABELS else "", gold))] = 1
    return counts


def verification_measures(sums: Values) -> Values:
    """Return the fields of VerificationScores in their order, shape (samples, 5), of summed `verdict_counts`."""
    table = sums.reshape(len(sums), len(_VERDICTS), len(LABELS))
    predicted, held = table.sum(axis=2)[:, : len(LABELS)], table.sum(axis=1)
    right = np.stack([table[:, place, place] for place in range(len(LABELS))], axis=1)
    total, answered = held.sum(axis=1), predicted.sum(axis=1)
    share = _ratio(held, np.broadcast_to(total[:, None], held.shape))
    columns = [
        (share * _ratio(right, predicted)).sum(axis=1),
        (share * _ratio(right, held)).sum(axis=1),
        (share * _ratio(2 * right, predicted + held)).sum(axis=1),
        _ratio(right.sum(axis=1), answered),
        _ratio(answered, total),
    ]
    return np.stack(columns, axis=1)


def _ratio(part: Values, whole: Values) -> Values:
    """Divide; 0 where there is nothing to divide by."""
    found: Values = np.divide(part, whole, out=np.zeros(whole.shape), where=whole > 0)
    return found
