"""Measures of fact verification: verdicts true, false and "not enough" against gold labels true and false."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

LABELS = ("true", "false")


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
    """Give the means over (verdict, gold label) pairs; all are 0 where there are none."""
    if not pairs:
        return VerificationScores(0.0, 0.0, 0.0, 0.0, 0.0)
    answered = [pair for pair in pairs if pair[0] in LABELS]
    precision = recall = f1 = 0.0
    for label in LABELS:
        right = sum(verdict == gold == label for verdict, gold in pairs)
        said = sum(verdict == label for verdict, _ in pairs)
        held = sum(gold == label for _, gold in pairs)
        share = held / len(pairs)
        precision += share * (right / said if said else 0.0)
        recall += share * (right / held if held else 0.0)
        f1 += share * (2 * right / (said + held) if said + held else 0.0)
    right_answered = sum(verdict == gold for verdict, gold in answered)
    recall_answered = right_answered / len(answered) if answered else 0.0
    return VerificationScores(precision, recall, f1, recall_answered, len(answered) / len(pairs))
